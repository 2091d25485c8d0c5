#pragma once
/// Maths for devices without a libm: libclc, as bitcode in this binary.

#include "base/Result.h"

namespace llvm {
class Module;
}

namespace costate::compiler {

/// Of what kernels call.
enum class DeviceLibrary { Nvidia, Vulkan };

/// Adds the definitions of the functions that `module` declares and the library
/// has: those of libclc (`_Z3sind`) and ours (`costate_device_...`). They
/// become part of the module: internal, and inlined where that pays.
Result<> linkLibrary(llvm::Module &module, DeviceLibrary library);

} // namespace costate::compiler
