#pragma once
/// LLVM IR to code for Metal devices.

#include "base/Result.h"

#include <memory>
#include <string>

namespace llvm {
class Module;
}

namespace costate::compiler {

/// Text of the Metal Shading Language, with a kernel
/// `metalName(deviceSymbol(name))` per device function `name` of `module`.
Result<std::string> emitMetal(std::unique_ptr<llvm::Module> module);

} // namespace costate::compiler
