#pragma once
/// The bitcode of what kernels of NVIDIA GPUs call.

#include "llvm/ADT/StringRef.h"

namespace costate::compiler {

llvm::StringRef cudaLibrary();

} // namespace costate::compiler
