#pragma once
/// Launches as the user asks for them: all checks, the run, and all who want to
/// know.

#include "api/BoundLaunch.h"

namespace costate::detail {

void launch(const Call &call, Chain chain);

/// A gradient, or tangents of one, of a launch that has not run yet: runs it,
/// reverses it, and puts back what it wrote.
void launchFromInitialState(const Call &call, Chain chain);

/// Launches of one call, whose scalars may change in between; by one thread at
/// a time. What follows from its arrays is found once.
class KeptLaunches {
public:
  explicit KeptLaunches(const Call &call) : call(call) {}
  KeptLaunches(const KeptLaunches &) = delete;
  KeptLaunches &operator=(const KeptLaunches &) = delete;

  Call call;
  void launch(Chain chain);
  void launchFromInitialState(Chain chain);
  /// Its arrays are over other memory than before.
  void forgetMemory();
  /// See BoundArguments.
  bool gradientNeeds(size_t argument) const;

private:
  /// One, or a gradient and what records for it.
  struct Kept {
    Chain chain;
    std::unique_ptr<BoundLaunch> launch, recording;
  };
  std::vector<Kept> byHand, fromStart;
};

} // namespace costate::detail
