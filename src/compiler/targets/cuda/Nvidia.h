#pragma once
/// LLVM IR to code for NVIDIA GPUs.

#include "base/Result.h"

#include <memory>
#include <string>

namespace llvm {
class Module;
class TargetMachine;
} // namespace llvm

namespace costate::compiler {

/// PTX with a kernel `deviceSymbol(name)` per device function `name` of
/// `module`, for `sm_90` and the like; of chips that are newer than the
/// compiler, the newest that it knows. Consumes `module`. Bits depend neither
/// on the chip nor on what is inlined: nothing is contracted, denormals are
/// kept, division and roots are rounded correctly.
Result<std::string> emitPtx(llvm::Module &module, const std::string &chip);

/// For `sm_90` and the like, and kernels of at most `words` words.
Result<std::unique_ptr<llvm::TargetMachine>>
nvidiaMachine(const std::string &chip, unsigned words);

} // namespace costate::compiler
