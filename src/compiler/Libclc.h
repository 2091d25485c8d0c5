#pragma once
/// Maths for devices without a libm: libclc, as bitcode in this binary.

#include "base/Result.h"

namespace llvm {
class Module;
}

namespace costate::compiler {

/// Adds the definitions of the functions that `module` declares and libclc has
/// (`_Z3sind`), for NVIDIA GPUs. They become part of the module: internal, and
/// inlined where that pays.
Result<> linkLibclc(llvm::Module &module);

} // namespace costate::compiler
