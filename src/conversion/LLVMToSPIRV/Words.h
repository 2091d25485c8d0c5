#pragma once
/// What is said in the words of a SPIR-V module, as the dialect cannot say it.

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>

namespace costate::conversion {

/// Lets `words` say what its tables hold (base/VulkanTables.h).
void addTables(llvm::SmallVectorImpl<uint32_t> &words, llvm::StringRef bytes);

/// Lets the specialisation constants of SpirvModule.h decide the size of a
/// block and the length of its memory, of which the code needs the first
/// `blockBytes` itself.
void specialise(llvm::SmallVectorImpl<uint32_t> &words, uint64_t blockBytes);

/// Asks for SPV_KHR_maximal_reconvergence in all entry points.
void reconverge(llvm::SmallVectorImpl<uint32_t> &words);

} // namespace costate::conversion
