#pragma once
/// What is said in the words of a SPIR-V module, as the dialect cannot say it.

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>

namespace costate::conversion {

struct Additions {
  uint64_t blockBytes;    ///< of the memory of a block, for the code itself
  llvm::StringRef tables; ///< their bytes
  bool reconverges; ///< SPV_KHR_maximal_reconvergence, in all entry points
};

/// Adds what the dialect cannot say, and lets the specialisation constants of
/// SpirvModule.h decide the size of a block and the length of its memory.
void complete(llvm::SmallVectorImpl<uint32_t> &words,
              const Additions &additions);

} // namespace costate::conversion
