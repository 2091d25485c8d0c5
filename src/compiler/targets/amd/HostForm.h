#pragma once
/// Kernels for AMD's GPUs as functions of this machine, which simulates one:
/// all but the back end of AMDGPU and the linker is that of the GPU.

#include "base/Result.h"

#include <string>

namespace llvm {
class Module;
}

namespace costate::compiler {

/// A shared library with a function of each kernel's name, a
/// simt::DeviceEntry, and `costate_amd_calls`, the address of an AmdHostCalls
/// (base/AmdHost.h). Consumes `module`, as convertToAmd has made it.
Result<std::string> emitForHost(llvm::Module &module);

} // namespace costate::compiler
