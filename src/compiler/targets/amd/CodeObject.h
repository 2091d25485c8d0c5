#pragma once
/// LLVM IR to code for AMD's GPUs.

#include "base/Result.h"

#include <memory>
#include <string>

namespace llvm {
class Module;
class TargetMachine;
} // namespace llvm

namespace costate::compiler {

/// A code object (ELF, for HSA) with a kernel `deviceSymbol(name)` per device
/// function `name` of `module`, for `gfx942` and the like. Kernels take their
/// words by value, as their only argument. Consumes `module`. Bits depend
/// neither on the chip nor on what is inlined: nothing is contracted, division
/// and roots are rounded correctly; denormals are kept, but by additions to
/// f32 in global memory where the chip has an instruction for these.
Result<std::string> emitCodeObject(llvm::Module &module,
                                   const std::string &chip);

/// The same kernels for this machine: see HostForm.h.
Result<std::string> emitAmdForHost(llvm::Module &module,
                                   const std::string &chip);

/// Internal if LLVM does not know `chip`.
Result<std::unique_ptr<llvm::TargetMachine>>
amdMachine(const std::string &chip);

} // namespace costate::compiler
