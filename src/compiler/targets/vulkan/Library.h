#pragma once
/// The bitcode of what kernels of Vulkan devices call.

#include "llvm/ADT/StringRef.h"

namespace costate::compiler {

llvm::StringRef vulkanLibrary();

} // namespace costate::compiler
