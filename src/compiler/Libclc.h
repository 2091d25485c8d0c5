#pragma once
/// Maths as bitcode in this binary: libclc, for devices without a libm, and
/// HostMaths.c for CPUs.

#include "base/Result.h"

#include "llvm/ADT/StringRef.h"

namespace llvm {
class Module;
}

namespace costate::compiler {

/// HostMaths.c. GPUs have libraries of their own (targets/NAME/Library.h).
llvm::StringRef hostLibrary();

/// Adds the definitions of the functions that `module` declares and the library
/// has: those of libclc (`_Z3sind`) and ours (`costate_device_...`,
/// `costate_host_sinf16`). They become part of the module: internal, and
/// inlined where that pays.
Result<> linkLibrary(llvm::Module &module, llvm::StringRef bitcode);

} // namespace costate::compiler
