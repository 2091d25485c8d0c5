#pragma once
/// What the runtime offers to compiled code on the host, and is told of it.

#include <cstdint>
#include <span>

namespace costate::runtime {

struct RuntimeFunction {
  const char *name; ///< the symbol that compiled code calls
  void *address;
};

/// Those of code/KernelCode.h, and what device code of the host as a GPU calls.
std::span<const RuntimeFunction> runtimeFunctions();

/// Where compiled code stands; only there may an interrupt leave it.
void addCompiledCode(uintptr_t begin, uintptr_t end);
void removeCompiledCode(uintptr_t begin);

} // namespace costate::runtime
