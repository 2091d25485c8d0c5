#pragma once
/// Launches of a recording.

#include "api/BoundLaunch.h"
#include "api/TapeEntry.h"

namespace costate::detail {

struct TapeImpl;

/// A primal launch, or the primal half of a tangent launch.
class LaunchEntry final : public TapeEntry {
public:
  /// Compiles the gradient, which says what it needs; a failure to
  /// differentiate is kept. Makes room for what is overwritten between the
  /// parts of the launch.
  LaunchEntry(const BoundLaunch &launch, TapeImpl &tape);

  /// The launch; keeps the versions that its gradient needs.
  void run();

  std::string title() const override { return call.kernel->title(); }
  std::string argumentText(size_t argument) const override;
  void requireGradient() const override;
  bool writesActive(size_t argument) const override;
  const VersionArrays &overwritten() const override { return versions; }
  void reverse(const Reversing &with) const override;

private:
  void recordParts(const std::vector<bool> &active, TapeImpl &tape);
  void wantBefore(runtime::VersionLog &log) override;
  void wantAfter(runtime::VersionLog &log) override;
  VersionArrays past(const Reversing &with) const;
  std::byte *find(const Reversing &with, const Want &want) const;

  const Call call;
  Chain chain;
  Compiled *compiled;
  Compiled *gradient = nullptr;   ///< null if no argument has a gradient
  std::optional<Failure> refusal; ///< why it cannot be differentiated
  VersionArrays versions;         ///< if it is a recording launch
  /// Of the gradient, by want.
  boost::container::small_vector<runtime::Parameter, 2> readers;
};

} // namespace costate::detail
