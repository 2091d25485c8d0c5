#pragma once
/// LLVM IR of kernels for the machine of NVPTX to that for AMDGPU.

namespace llvm {
class Module;
class TargetMachine;
} // namespace llvm

namespace costate {
struct GpuShape;
}

namespace costate::compiler {

/// Expects kernels that everything with pointers is inlined into, optimised.
/// Intrinsics that it does not know stay.
void convertToAmd(llvm::Module &module, llvm::TargetMachine &machine,
                  const GpuShape &shape);

} // namespace costate::compiler
