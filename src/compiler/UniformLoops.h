#pragma once
/// A pass of LLVM.

#include "llvm/IR/PassManager.h"

namespace costate::compiler {

/// Keeps the loop vectoriser from loops that compute much from nothing but
/// invariants. It asks which values are the same in all lanes by going through
/// their operands, again for each use: a value used twice by one that is used
/// twice, and so on, takes a time that doubles each time (LLVM 22,
/// `vputils::isUniformAcrossVFsAndUFs`).
struct SpareUniformLoops : llvm::PassInfoMixin<SpareUniformLoops> {
  llvm::PreservedAnalyses run(llvm::Function &function,
                              llvm::FunctionAnalysisManager &analyses);
};

} // namespace costate::compiler
