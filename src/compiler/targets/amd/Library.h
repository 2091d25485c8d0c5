#pragma once
/// The bitcode of what kernels of AMD's GPUs call.

#include "llvm/ADT/StringRef.h"

namespace costate::compiler {

llvm::StringRef amdLibrary();

} // namespace costate::compiler
