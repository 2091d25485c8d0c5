#pragma once
/// How threads run together, in the intrinsics of AMDGPU.

namespace llvm {
class Module;
}

namespace costate {
struct GpuShape;
}

namespace costate::compiler {

/// Replaces intrinsics of NVPTX. What is a warp to these has 32 lanes, a half
/// of one with 64.
void replaceIntrinsics(llvm::Module &module, const GpuShape &shape);

} // namespace costate::compiler
