#pragma once
/// The functions of HostMaths.c.

#include "base/Result.h"

#include <string>

namespace llvm {
class Module;
class TargetMachine;
} // namespace llvm

namespace costate::compiler {

/// Defines those that `module` calls, inlined where that pays. Comes after the
/// loop vectoriser, which chooses between their forms.
Result<> defineHostMaths(llvm::Module &module, llvm::TargetMachine &machine);

/// One of numbers, for whoever does not run compiled code; null if there is
/// none.
void *findHostMaths(const std::string &name);

} // namespace costate::compiler
