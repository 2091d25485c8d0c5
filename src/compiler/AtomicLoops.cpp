#include "compiler/AtomicLoops.h"

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "llvm/Transforms/Scalar/LoopStrengthReduce.h"

using namespace llvm;

namespace costate::compiler {

static bool addsAtomically(const Loop &loop) {
  return any_of(loop.blocks(), [](const BasicBlock *block) {
    return any_of(*block, [](const Instruction &one) {
      auto *update = dyn_cast<AtomicRMWInst>(&one);
      return update && update->isFloatingPointOperation();
    });
  });
}

PreservedAnalyses ReduceAtomicLoops::run(Function &function,
                                         FunctionAnalysisManager &analyses) {
  auto loops = analyses.getResult<LoopAnalysis>(function).getLoopsInPreorder();
  if (none_of(loops, [](const Loop *loop) {
        return loop->isInnermost() && addsAtomically(*loop);
      }))
    return PreservedAnalyses::all();
  return createFunctionToLoopPassAdaptor(LoopStrengthReducePass())
      .run(function, analyses);
}

} // namespace costate::compiler
