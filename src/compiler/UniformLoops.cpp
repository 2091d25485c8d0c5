#include "compiler/UniformLoops.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Transforms/Utils/LoopUtils.h"

using namespace llvm;

namespace costate::compiler {
namespace {

/// How many values the vectoriser looks at to know whether one is uniform.
class UniformSearch {
public:
  explicit UniformSearch(const Loop &loop) : loop(loop) {}

  bool isLong() {
    return any_of(loop.blocks(), [&](const BasicBlock *block) {
      return any_of(*block, [&](const Instruction &one) {
        return of(one).steps > mostSteps;
      });
    });
  }

private:
  struct Outcome {
    bool isUniform;
    uint64_t steps;
  };
  static constexpr uint64_t mostSteps = 1 << 14;

  Outcome of(const Value &value) {
    auto *instruction = dyn_cast<Instruction>(&value);
    if (!instruction || !loop.contains(instruction))
      return {true, 1};
    if (isa<PHINode>(instruction))
      return {false, 1};
    if (auto known = seen.find(instruction); known != seen.end())
      return known->second;
    Outcome all = {true, 1};
    for (const Use &operand : instruction->operands()) {
      Outcome one = of(*operand);
      all = {one.isUniform, SaturatingAdd(all.steps, one.steps)};
      if (!all.isUniform)
        break;
    }
    return seen[instruction] = all;
  }

  const Loop &loop;
  DenseMap<const Instruction *, Outcome> seen;
};

} // namespace

PreservedAnalyses SpareUniformLoops::run(Function &function,
                                         FunctionAnalysisManager &analyses) {
  for (Loop *loop :
       analyses.getResult<LoopAnalysis>(function).getLoopsInPreorder())
    if (loop->isInnermost() && UniformSearch(*loop).isLong())
      addStringMetadataToLoop(loop, "llvm.loop.isvectorized", 1);
  return PreservedAnalyses::all();
}

} // namespace costate::compiler
