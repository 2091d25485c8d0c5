#pragma once
/// Custom launches of a recording.

#include "api/TapeEntry.h"
#include "costate/custom_launch.h"

namespace costate::detail {

/// A CustomLaunch.
class CustomEntry final : public TapeEntry {
public:
  /// `repeats`: launch.primal() can run again.
  CustomEntry(CustomLaunch launch, bool repeats);

  std::string title() const override;
  std::string argumentText(size_t argument) const override;
  void requireGradient() const override;
  bool writesActive(size_t argument) const override;
  bool isForeign() const override { return launch.gradient != nullptr; }
  void reverse(const Reversing &with) const override;
  std::string obstacle() const override;
  bool needsRun() const override { return launch.gradient != nullptr; }

  bool findsArrays() const { return launch.finds_arrays; }
  /// What `primal` was found to use.
  void setFound(std::vector<TapeArgument> found);
  /// runtime::writeCount() after `primal`.
  uint64_t endCount() const { return writesAfter; }
  /// The argument that is `array`, if it is named or found.
  std::optional<size_t> find(const runtime::ArrayStorage &array) const;
  /// Whether `gradient` may look at its values.
  bool isNeeded(size_t argument) const;

private:
  void runAgain() override { launch.primal(); }
  void wantBefore(runtime::VersionLog *log) override;
  void wantAfter(runtime::VersionLog *log) override;

  const CustomLaunch launch;
  const bool repeats;
  std::map<uint64_t, size_t> positions; ///< of what is found, by identity
  uint64_t writesAfter = 0;
};

/// "custom launch `segment` (demo.cpp:7)"
std::string titleOf(const CustomLaunch &launch);

} // namespace costate::detail
