#pragma once
/// Memory that ends while LLVM works.

#include "base/Result.h"

namespace costate::compiler {

/// Whether the system has what compiling a kernel usually takes.
bool hasMemoryToCompile();
Failure noMemoryToCompile();

/// From here on LLVM throws bad_alloc where it would end the process.
void throwWhenMemoryEnds();

} // namespace costate::compiler
