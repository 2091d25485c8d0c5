#pragma once
/// Arguments that are checked once, for many launches.

#include "costate/kernel.h"

#include <atomic>

namespace costate::detail {

struct Call;
class KeptLaunches;

/// Those of one kernel, whose arrays it keeps alive. Safe to use from several
/// threads.
class BoundArguments {
public:
  /// Checks them as a launch does.
  BoundArguments(const Kernel &kernel, std::span<const ArgumentValue> values);

  /// A launch with these scalars instead, all of them in their order.
  void launch(Mode mode, std::span<const ArgumentValue> scalars);
  void launch(InitialState, Mode mode, std::span<const ArgumentValue> scalars);

  /// Arrays over memory of others (Device::adopt) are from now on over other
  /// memory of the same size, which holds something else: an address for each
  /// argument, and for its gradient, or null. Not while a launch runs.
  void move(std::span<void *const> memory, std::span<void *const> gradients);

  /// Whether the gradient that was launched, not from the initial state, looks
  /// at what an array holds. True where that is not certain. Not while a launch
  /// runs.
  bool gradientNeeds(size_t argument) const;

  const Kernel kernel;

private:
  class User;
  void setScalars(Call &call, std::span<const ArgumentValue> scalars) const;

  std::shared_ptr<const Call> given;
  std::vector<size_t> scalars;       ///< which arguments they are
  std::shared_ptr<KeptLaunches> own; ///< of the launch that has set `isUsed`
  std::atomic_flag isUsed;
};

} // namespace costate::detail
