#pragma once
/// A pass of LLVM.

#include "llvm/IR/PassManager.h"

namespace costate::compiler {

/// Fetches ahead what the loops over the rows of a stencil come to. They read
/// each array in several rows, which are more streams than processors follow by
/// themselves; of these only the first in the direction of the loop misses.
struct PrefetchRows : llvm::PassInfoMixin<PrefetchRows> {
  llvm::PreservedAnalyses run(llvm::Function &function,
                              llvm::FunctionAnalysisManager &analyses);
};

} // namespace costate::compiler
