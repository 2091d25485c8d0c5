#include "compiler/RowPrefetch.h"

#include "conversion/KernelToLLVM/Runtime.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace costate::compiler {
namespace {

/// In bytes; half a page, which is what the prefetchers of processors stay in.
constexpr int64_t distance = 2048, line = 64;

/// A form whose extents are some large number.
struct Estimate : SCEVRewriteVisitor<Estimate> {
  using SCEVRewriteVisitor::SCEVRewriteVisitor;
  const SCEV *visitUnknown(const SCEVUnknown *extent) {
    return extent->getType()->isIntegerTy()
               ? SE.getConstant(extent->getType(), 1024)
               : extent;
  }
};

Value *placeOf(Instruction &one) {
  if (auto *call = dyn_cast<IntrinsicInst>(&one)) {
    Intrinsic::ID id = call->getIntrinsicID();
    return id == Intrinsic::masked_load    ? call->getArgOperand(0)
           : id == Intrinsic::masked_store ? call->getArgOperand(1)
                                           : nullptr;
  }
  return getLoadStorePointerOperand(&one);
}

/// Those of `bytes` that begin `ahead` of `place`, in front of `one`.
void prefetchLines(Instruction &one, Value *place, int64_t ahead,
                   int64_t bytes) {
  IRBuilder<> b(&one);
  for (int64_t end = ahead + bytes; ahead < end; ahead += line) {
    Value *next = b.CreateConstGEP1_64(b.getInt8Ty(), place, ahead);
    b.CreateIntrinsic(Intrinsic::prefetch, {next->getType()},
                      {next, b.getInt32(0), b.getInt32(3), b.getInt32(1)});
  }
}

/// The loop over a row, after vectorisation.
class Row {
public:
  Row(const Loop &loop, ScalarEvolution &evolution)
      : loop(loop), evolution(evolution) {}

  void prefetch() {
    for (BasicBlock *block : loop.blocks())
      for (Instruction &one : *block)
        if (Value *place = placeOf(one))
          consider({&one, place, one.mayReadFromMemory()});
    for (auto &[array, access] : foremost)
      if (access.isLoaded)
        prefetchLines(*access.op, access.place, distance, strideOf(access));
  }

private:
  struct Access {
    Instruction *op;
    Value *place;
    bool isLoaded;
  };

  void consider(Access access) {
    if (strideOf(access) == 0)
      return;
    const SCEV *array =
        evolution.getPointerBase(evolution.getSCEV(access.place));
    auto [found, isNew] = foremost.try_emplace(array, access);
    Access &other = found->second;
    access.isLoaded |= other.isLoaded;
    if (isNew || isAhead(access, other))
      other = access;
    other.isLoaded = access.isLoaded;
  }

  /// From iteration to iteration, in bytes; 0 unless that is one of vectors.
  int64_t strideOf(const Access &access) const {
    auto *places = dyn_cast<SCEVAddRecExpr>(evolution.getSCEV(access.place));
    if (!places || places->getLoop() != &loop)
      return 0;
    auto *step = dyn_cast<SCEVConstant>(places->getStepRecurrence(evolution));
    int64_t bytes = step ? step->getAPInt().getSExtValue() : 0;
    return bytes >= line / 2 && bytes <= 8 * line ? bytes : 0;
  }

  bool isAhead(const Access &a, const Access &b) const {
    const SCEV *difference = evolution.getMinusSCEV(evolution.getSCEV(a.place),
                                                    evolution.getSCEV(b.place));
    auto *bytes = dyn_cast<SCEVConstant>(Estimate(evolution).visit(difference));
    return bytes && bytes->getAPInt().isStrictlyPositive();
  }

  const Loop &loop;
  ScalarEvolution &evolution;
  MapVector<const SCEV *, Access> foremost; ///< by array
};

/// Where work items are lanes, the loop of a work item that comes to another
/// row of memory with each iteration, and has loops of its own.
class RowsOfLanes {
public:
  RowsOfLanes(const Loop &loop, ScalarEvolution &evolution)
      : loop(loop), evolution(evolution) {}

  /// What the next lanes load of the same rows.
  void prefetch() const {
    for (BasicBlock *block : loop.blocks())
      if (!isOfInner(block))
        for (Instruction &one : *block)
          if (Value *place = placeOf(one); place && one.mayReadFromMemory() &&
                                           isOfLanes(place, bytesOf(one)))
            prefetchLines(one, place, bytesOf(one), bytesOf(one));
  }

private:
  bool isOfInner(const BasicBlock *block) const {
    return any_of(loop,
                  [&](const Loop *inner) { return inner->contains(block); });
  }

  static int64_t bytesOf(const Instruction &one) {
    return int64_t(one.getDataLayout().getTypeStoreSize(one.getType()));
  }

  /// Whether the next lanes are neighbours, and the next rows are not.
  bool isOfLanes(Value *place, int64_t bytes) const {
    if (bytes < line)
      return false;
    auto *rows = dyn_cast<SCEVAddRecExpr>(evolution.getSCEV(place));
    if (!rows || rows->getLoop() != &loop ||
        isa<SCEVConstant>(rows->getStepRecurrence(evolution)))
      return false;
    auto *lanes = dyn_cast<SCEVAddRecExpr>(rows->getStart());
    if (!lanes || lanes->getLoop() != loop.getParentLoop())
      return false;
    auto *step = dyn_cast<SCEVConstant>(lanes->getStepRecurrence(evolution));
    return step && step->getAPInt() == uint64_t(bytes);
  }

  const Loop &loop;
  ScalarEvolution &evolution;
};

} // namespace

PreservedAnalyses PrefetchRows::run(Function &function,
                                    FunctionAnalysisManager &analyses) {
  bool isSplit = function.hasFnAttribute(conversion::threeLoopsAttr);
  auto &evolution = analyses.getResult<ScalarEvolutionAnalysis>(function);
  for (Loop *loop :
       analyses.getResult<LoopAnalysis>(function).getLoopsInPreorder())
    if (isSplit && loop->isInnermost())
      Row(*loop, evolution).prefetch();
    else if (!loop->isInnermost() && !loop->isOutermost())
      RowsOfLanes(*loop, evolution).prefetch();
  return PreservedAnalyses::none();
}

} // namespace costate::compiler
