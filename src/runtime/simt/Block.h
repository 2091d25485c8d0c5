#pragma once
/// The threads of one block of a GPU, on one OS thread.

#include "base/Result.h"
#include "runtime/Interrupt.h"
#include "runtime/simt/Callbacks.h"

#include <cstddef>

namespace costate::runtime::simt {

struct BlockWork {
  DeviceEntry entry;
  const uint64_t *words;
  int64_t block; ///< number of it
  int64_t blockThreads;
  int64_t lanes;   ///< of a warp
  int64_t threads; ///< of all blocks
  std::byte *memory;
  Interruptible *interruptible = nullptr; ///< looked at between threads

  bool mustEnd() const { return interruptible && interruptible->mustEnd(); }
};

/// Runs one thread after another; none of them may wait for another one.
Result<> runSerially(const BlockWork &work);

/// Runs the threads as fibres. Where one waits for others, which one runs next
/// is left to chance, that is to `seed`.
Result<> runTogether(const BlockWork &work, uint64_t seed);

} // namespace costate::runtime::simt
