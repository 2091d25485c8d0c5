#pragma once
/// The machine for which device functions are LLVM IR, whatever becomes of it:
/// NVPTX, with its address spaces, its intrinsics of threads and its costs.

#include "base/Result.h"

#include <memory>
#include <string>

namespace llvm {
class Target;
class TargetMachine;
} // namespace llvm

namespace costate::compiler {

/// Null, with a reason, where LLVM has no NVPTX.
const llvm::Target *findNvptx(std::string &error);

/// One of its chips, with features as LLVM names them.
Result<std::unique_ptr<llvm::TargetMachine>>
nvptxMachine(const std::string &chip, const std::string &features);

/// For code that becomes something else than PTX.
Result<std::unique_ptr<llvm::TargetMachine>> genericGpuMachine();

} // namespace costate::compiler
