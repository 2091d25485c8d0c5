#pragma once
/// LLVM IR to code for NVIDIA GPUs.

#include "base/Result.h"

#include <string>

namespace llvm {
class Module;
}

namespace costate::compiler {

/// A function with this attribute, a number N, and the signature
/// `void (ptr words, i64 thread, i64 threads)` is called by every thread of a
/// launch, with the N words of the launch, which are global addresses or plain
/// numbers.
constexpr const char *deviceWordsAttr = "costate-words";
/// On one that runs in tiles (base/DeviceTape.h): a second kernel, SYMBOL.shared,
/// has its tapes in shared memory.
constexpr const char *deviceTilesAttr = "costate-tiles";

/// PTX with a kernel `deviceSymbol(name)` per device function `name` of
/// `module`, for `sm_90` and the like; of chips that are newer than the
/// compiler, the newest that it knows. Consumes `module`. Bits depend neither
/// on the chip nor on what is inlined: nothing is contracted, denormals are
/// kept, division and roots are rounded correctly.
Result<std::string> emitPtx(llvm::Module &module, const std::string &chip);

} // namespace costate::compiler
