#pragma once
/// The functions of HostMaths.c.

#include "base/Result.h"

#include <string_view>
#include <vector>

namespace llvm {
class Module;
class TargetMachine;
} // namespace llvm

namespace costate::compiler {

/// Object files with them, for a family of functions (Host::maths); none for
/// others. Each has those of a number of lanes.
std::vector<std::string_view> hostMathsObjects(std::string_view family);

/// Makes those that `module` calls part of it, if they are few. Comes after the
/// loop vectoriser, which chooses between their forms.
Result<> inlineHostMaths(llvm::Module &module, llvm::TargetMachine &machine);

} // namespace costate::compiler
