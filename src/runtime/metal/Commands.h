#pragma once
/// What a GPU is to run, in the order of the calls.

#include "runtime/metal/ObjectiveC.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace costate::runtime::metal {

/// MTLSize.
struct Size {
  unsigned long width = 1, height = 1, depth = 1;
};

struct Dispatch {
  Object pipeline;
  uint64_t words, locks; ///< costate_launch of Prelude.metal
  size_t blockBytes;
  int64_t blocks;
  int blockThreads;
};

class Commands {
public:
  Commands(const Api &api, Object queue) : api(api), queue(queue) {}

  void dispatch(const Dispatch &work);
  /// Until all that was queued has been run. KernelFailed.
  Result<> wait();

private:
  void begin();

  const Api &api;
  const Object queue;
  Owned buffer, encoder; ///< of what has not been given to the GPU
};

/// What NSError says.
std::string errorText(const Api &api, Object error);

} // namespace costate::runtime::metal
