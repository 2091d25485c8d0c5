#pragma once
/// A pass of LLVM.

#include "llvm/IR/PassManager.h"

namespace costate::compiler {

/// Addresses in loops with atomic additions of floats go from one iteration to
/// the next by additions. Code generation sees to that in innermost loops
/// alone, and has made a loop of each such addition by then, so that each
/// iteration would multiply for each of its addresses.
struct ReduceAtomicLoops : llvm::PassInfoMixin<ReduceAtomicLoops> {
  llvm::PreservedAnalyses run(llvm::Function &function,
                              llvm::FunctionAnalysisManager &analyses);
};

} // namespace costate::compiler
