#include "autodiff/Passes.h"

#include "autodiff/Differentiate.h"
#include "autodiff/Normalize.h"
#include "autodiff/Prune.h"
#include "autodiff/gather/Gather.h"
#include "autodiff/gather/Remainders.h"
#include "autodiff/replay/Fetches.h"
#include "autodiff/replay/Replay.h"
#include "autodiff/replay/Stores.h"
#include "ir/Functions.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

namespace costate::autodiff {

#define GEN_PASS_DEF_DIFFERENTIATEREVERSE
#define GEN_PASS_DEF_DIFFERENTIATEFORWARD
#define GEN_PASS_DEF_DROPUNITDIMENSIONS
#define GEN_PASS_DEF_INLINELOOPSTHATRUNONCE
#define GEN_PASS_DEF_NORMALIZELOOPS
#define GEN_PASS_DEF_INLINECALLS
#define GEN_PASS_DEF_PRUNE
#define GEN_PASS_DEF_EXPANDFETCHES
#define GEN_PASS_DEF_ERASEOVERWRITTEN
#define GEN_PASS_DEF_FORWARDSTORES
#define GEN_PASS_DEF_MARKEXCLUSIVE
#define GEN_PASS_DEF_WATCHACCESSES
#define GEN_PASS_DEF_CHOOSEREMAINDERS
#define GEN_PASS_DEF_GATHERADDITIONS
#include "autodiff/Passes.h.inc"

using namespace mlir;

namespace {

SmallVector<bool> activeArguments(ir::KernelOp kernel,
                                  ArrayRef<unsigned> chosen) {
  SmallVector<bool> active;
  for (auto [index, type] : llvm::enumerate(kernel.getArgumentTypes())) {
    auto array = dyn_cast<ir::ArrayType>(type);
    bool wanted = chosen.empty() || llvm::is_contained(chosen, index);
    active.push_back(array && array.isFloat() && wanted);
  }
  return active;
}

using Mode = llvm::function_ref<FailureOr<Derivative>(
    ir::KernelOp, ArrayRef<bool>, Refusal &)>;

/// Kernels that have the derivative already stay as they are, so a pass can be
/// repeated for higher ones.
LogicalResult differentiateAll(ModuleOp module, ArrayRef<unsigned> chosen,
                               StringRef suffix, Mode mode) {
  Refusal refusal;
  SymbolTable symbols(module);
  for (auto kernel : llvm::to_vector(module.getOps<ir::KernelOp>()))
    if (!symbols.lookup((kernel.getName() + suffix).str()) &&
        failed(mode(kernel, activeArguments(kernel, chosen), refusal)))
      return failure();
  return success();
}

struct DifferentiateReverse
    : impl::DifferentiateReverseBase<DifferentiateReverse> {
  using DifferentiateReverseBase::DifferentiateReverseBase;
  void runOnOperation() override {
    auto mode = [&](ir::KernelOp kernel, ArrayRef<bool> flags,
                    Refusal &refusal) -> FailureOr<Derivative> {
      return reverse(kernel, flags, refusal);
    };
    if (failed(differentiateAll(getOperation(), *active, ".grad", mode)))
      signalPassFailure();
  }

  Checks checks() const {
    if (!check)
      return Checks::None;
    return fastMath ? Checks::UpToRounding : Checks::OfBits;
  }

  sizing::Policy policy() const {
    using Choice = sizing::Policy::Choice;
    return {.costs = sizing::Costs(target),
            .choice = saveAll ? Choice::SaveAll : Choice::Cheapest,
            .keepsPlans = plan};
  }

  FailureOr<Derivative> reverse(ir::KernelOp kernel, ArrayRef<bool> flags,
                                Refusal &refusal) {
    auto derivative = differentiateReverse(
        kernel, flags, refusal, Owners::Asked,
        {.measured = measured, .byBudget = byBudget}, policy(), checks(),
        fromMemory ? Unkept::FromMemory : Unkept::Refused);
    if (failed(derivative) || !derivative->overwrite)
      return derivative;
    if (finalState) {
      refuse(*derivative->overwrite);
      return failure();
    }
    recordVersions(kernel, derivative->versions)->moveAfter(derivative->kernel);
    return derivative;
  }
};

struct DifferentiateForward
    : impl::DifferentiateForwardBase<DifferentiateForward> {
  using DifferentiateForwardBase::DifferentiateForwardBase;
  void runOnOperation() override {
    auto mode = [&](ir::KernelOp kernel, ArrayRef<bool> flags,
                    Refusal &refusal) {
      return differentiateForward(kernel, flags, {order, directions}, refusal);
    };
    if (failed(differentiateAll(getOperation(), *active, ".jvp", mode)))
      signalPassFailure();
  }
};

struct ForwardStores : impl::ForwardStoresBase<ForwardStores> {
  void runOnOperation() override { forwardStores(getOperation()); }
};

struct EraseOverwritten : impl::EraseOverwrittenBase<EraseOverwritten> {
  void runOnOperation() override { eraseOverwritten(getOperation()); }
};

struct NormalizeLoops : impl::NormalizeLoopsBase<NormalizeLoops> {
  void runOnOperation() override { normalizeLoops(getOperation()); }
};

/// Makes a change, and folds what follows from it if there was one.
template <class Base, bool (*change)(Operation *)>
struct ThenCanonicalized : Base {
  void runOnOperation() override {
    if (!change(this->getOperation()))
      return;
    OpPassManager passes(this->getOperation()->getName());
    passes.addPass(createCanonicalizerPass());
    if (failed(this->runPipeline(passes, this->getOperation())))
      this->signalPassFailure();
  }
};

struct DropUnitDimensions
    : ThenCanonicalized<impl::DropUnitDimensionsBase<DropUnitDimensions>,
                        dropUnitDimensions> {};

struct InlineLoopsThatRunOnce
    : ThenCanonicalized<
          impl::InlineLoopsThatRunOnceBase<InlineLoopsThatRunOnce>,
          inlineLoopsThatRunOnce> {};

struct InlineCalls : impl::InlineCallsBase<InlineCalls> {
  void runOnOperation() override {
    if (failed(ir::verifyFunctions(getOperation())))
      return signalPassFailure();
    ir::inlineCalls(getOperation());
    ir::eraseUncalled(getOperation());
  }
};

struct Prune : impl::PruneBase<Prune> {
  void runOnOperation() override { prune(getOperation()); }
};

struct ExpandFetches : impl::ExpandFetchesBase<ExpandFetches> {
  void runOnOperation() override { expandFetches(getOperation()); }
};

struct MarkExclusive : impl::MarkExclusiveBase<MarkExclusive> {
  void runOnOperation() override { markExclusive(getOperation()); }
};

struct GatherAdditions : impl::GatherAdditionsBase<GatherAdditions> {
  using GatherAdditionsBase::GatherAdditionsBase;

  void runOnOperation() override { gatherAdditions(getOperation(), numbered); }
};

struct ChooseRemainders : impl::ChooseRemaindersBase<ChooseRemainders> {
  using ChooseRemaindersBase::ChooseRemaindersBase;

  void runOnOperation() override { chooseRemainders(getOperation(), splits); }
};

struct WatchAccesses : impl::WatchAccessesBase<WatchAccesses> {
  void runOnOperation() override { watchAccesses(getOperation()); }
};

} // namespace
} // namespace costate::autodiff
