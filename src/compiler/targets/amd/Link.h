#pragma once
/// The linker of code for AMD's GPUs, in this process.

#include "base/Result.h"

#include <string>

namespace costate::compiler {

/// The code object of one object file.
Result<std::string> linkCodeObject(const std::string &object);

/// A shared library for this machine, of which symbols may be elsewhere.
Result<std::string> linkForHost(const std::string &object);

} // namespace costate::compiler
