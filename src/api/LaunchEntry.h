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
  void run() { run(/*quiet=*/false); }

  std::string title() const override { return call.kernel->title(); }
  std::string argumentText(size_t argument) const override;
  void requireGradient() const override;
  bool writesActive(size_t argument) const override;
  const VersionArrays &overwritten() const override { return versions; }
  void reverse(const Reversing &with) const override;

  void forEachUse(const Visit &visit) const override;
  std::string obstacle() const override;
  bool needsRun() const override;
  bool leavesAll() const override;
  size_t partBytes() const override;
  void forget() override { versions = {}; }

private:
  void recordParts(const std::vector<bool> &active, TapeImpl &tape);
  void keepParts(runtime::VersionLog &log);
  void run(bool quiet);
  void runAgain() override { run(/*quiet=*/true); }
  void runToKeep(runtime::VersionLog &log) override;
  void wantBefore(runtime::VersionLog *log) override;
  void wantAfter(runtime::VersionLog *log) override;
  VersionArrays past(const Reversing &with) const;
  std::byte *find(const Reversing &with, const Want &want) const;

  const Call call;
  const Chain chain;
  Compiled *const compiled;
  Compiled *recorder = nullptr;   ///< runs if versions are kept
  Compiled *gradient = nullptr;   ///< null if no argument has a gradient
  std::optional<Failure> refusal; ///< why it cannot be differentiated
  VersionArrays versions;         ///< that are kept
  /// Of the gradient, by want.
  boost::container::small_vector<runtime::Parameter, 2> readers;
};

} // namespace costate::detail
