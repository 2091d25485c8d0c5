#pragma once
/// Work that is kept, to be done again and again.

#include "runtime/Device.h"

#include <array>
#include <functional>

namespace costate::runtime {

/// A LaunchRequest that owns what it needs, except for the code.
struct KeptLaunch {
  const KernelCode *code = nullptr;
  std::vector<uint64_t> arguments;
  std::vector<Buffer> adjoints;
  bool deterministic = false;
  bool quiet = false;
  size_t tapeBudget = 0;
  std::vector<uint64_t> countedFrom = {};

  LaunchRequest request() const {
    return {code,  arguments,  adjoints,   deterministic,
            quiet, tapeBudget, countedFrom};
  }
};

struct KeptFill {
  Buffer buffer;
  std::array<std::byte, 8> pattern;
  size_t patternBytes = 8;
};

/// Queues work of the device by itself; on a CPU it does anything.
struct KeptCall {
  std::function<Result<>()> body;
};

/// Does what `step` says.
Result<> perform(Device &device, const Step &step);

/// Steps of one device. Neither the device nor code nor buffers may go before
/// it.
class Graph {
public:
  virtual ~Graph() = default;
  /// Does all of them, in their order.
  virtual Result<> replay() = 0;
};

/// One that performs `steps` anew each time.
std::shared_ptr<Graph> graphOfSteps(Device &device, std::vector<Step> steps);

} // namespace costate::runtime
