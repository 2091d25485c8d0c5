#pragma once
/// Reading code objects.

#include "base/Result.h"

#include <cstdint>
#include <string>
#include <vector>

namespace costate::compiler {

/// All instructions, kernel by kernel, as LLVM's assembler takes them.
Result<std::string> disassemble(const std::string &codeObject);

/// What a code object says of a kernel.
struct KernelFacts {
  std::string name;
  uint64_t vgprs = 0, sgprs = 0, spilledVgprs = 0, spilledSgprs = 0;
  uint64_t privateBytes = 0; ///< of a thread
  uint64_t sharedBytes = 0;  ///< of a block, without what a launch adds
  uint64_t lanes = 0;
  uint64_t argumentBytes = 0; ///< of those that are not hidden
  uint64_t largestBlock = 0;
};

Result<std::vector<KernelFacts>> factsOf(const std::string &codeObject);

} // namespace costate::compiler
