#include "conversion/KernelToLLVM/Runtime.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace costate::conversion {
#define GEN_PASS_DEF_EXPANDCHECKS
#include "conversion/KernelToLLVM/Passes.h.inc"

namespace {

/// Opens a branch for `condition`; the builder then stands in it.
void enterIf(ImplicitLocOpBuilder &builder, Value condition) {
  auto branch =
      scf::IfOp::create(builder, condition, /*withElseRegion=*/false);
  builder.setInsertionPointToStart(branch.thenBlock());
}

void checkStep(Runtime &runtime, ir::TripCountOp op) {
  APInt step;
  if (matchPattern(op.getStep(), m_ConstantInt(&step)) && !step.isZero())
    return;
  ImplicitLocOpBuilder builder(op.getLoc(), op);
  Value zero = constant(builder, 0);
  Value bad = arith::CmpIOp::create(builder, arith::CmpIPredicate::eq,
                                    op.getStep(), zero);
  enterIf(builder, bad);
  runtime.callStepZero(builder, workerOf(op));
}

void checkIndices(Runtime &runtime, Operation *op, Value array,
                  ValueRange indices) {
  ArrayView view(array);
  for (auto [dim, index] : llvm::enumerate(indices)) {
    ImplicitLocOpBuilder builder(op->getLoc(), op);
    Value extent = view.extents[dim];
    Value bad = arith::CmpIOp::create(builder, arith::CmpIPredicate::uge, index,
                                      extent);
    enterIf(builder, bad);
    runtime.callIndexError(builder, workerOf(op), view.argument, dim, index,
                           extent);
  }
}

struct ExpandChecks : impl::ExpandChecksBase<ExpandChecks> {
  using ExpandChecksBase::ExpandChecksBase;

  void runOnOperation() override {
    Runtime runtime(getOperation());
    getOperation()->walk(
        [&](ir::TripCountOp op) { checkStep(runtime, op); });
    if (!indexChecks)
      return;
    getOperation()->walk([&](Operation *op) {
      if (auto load = dyn_cast<ir::LoadOp>(op))
        checkIndices(runtime, op, load.getArray(), load.getIndices());
      else if (auto store = dyn_cast<ir::StoreOp>(op))
        checkIndices(runtime, op, store.getArray(), store.getIndices());
      else if (auto add = dyn_cast<ir::AtomicAddOp>(op))
        checkIndices(runtime, op, add.getArray(), add.getIndices());
    });
  }
};

} // namespace
} // namespace costate::conversion
