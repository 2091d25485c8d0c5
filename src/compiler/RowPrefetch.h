#pragma once
/// A pass of LLVM.

#include "llvm/IR/PassManager.h"

namespace costate::compiler {

/// Fetches ahead what the loops over the rows of a stencil come to. They read
/// each array in several rows, which are more streams than processors follow by
/// themselves; of these only the first in the direction of the loop misses.
/// Work items that are lanes and go through rows of an array one by one, as
/// through the rows of a matrix whose last index is theirs, miss at each row:
/// the next lanes find there what these have fetched.
struct PrefetchRows : llvm::PassInfoMixin<PrefetchRows> {
  llvm::PreservedAnalyses run(llvm::Function &function,
                              llvm::FunctionAnalysisManager &analyses);
};

} // namespace costate::compiler
