#include "conversion/KernelToLLVM/Runtime.h"

#include "mlir/IR/Matchers.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace costate::conversion {
#define GEN_PASS_DEF_EXPANDCHECKS
#include "conversion/KernelToLLVM/Passes.h.inc"

namespace {

/// Opens a branch for `condition`; the builder then stands in it.
void enterIf(ImplicitLocOpBuilder &builder, Value condition) {
  auto branch = scf::IfOp::create(builder, condition, /*withElseRegion=*/false);
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
    runtime.callIndexError(builder, workerOf(op), view.parameter, dim, index,
                           extent);
  }
}

std::optional<ElementUse> watchedUse(Operation *op) {
  using Use = std::optional<ElementUse>;
  auto name = op->getAttrOfType<StringAttr>(ir::watchedAttr);
  if (!name)
    return std::nullopt;
  return llvm::StringSwitch<Use>(name.getValue())
      .Case("load", ElementUse::Load)
      .Case("store", ElementUse::Store)
      .Case("update", ElementUse::Update)
      .Case("shared_store", ElementUse::SharedStore)
      .Default(std::nullopt);
}

void reportUse(Runtime &runtime, Operation *op, Value array,
               ValueRange indices) {
  std::optional<ElementUse> use = watchedUse(op);
  if (!use)
    return;
  ArrayView view(array);
  ImplicitLocOpBuilder builder(op->getLoc(), op);
  Value element = rowMajor(builder, indices, view.extents);
  runtime.callUse(builder, workerOf(op), view.parameter, element, *use);
}

struct ExpandChecks : impl::ExpandChecksBase<ExpandChecks> {
  using ExpandChecksBase::ExpandChecksBase;

  void runOnOperation() override {
    Runtime runtime(getOperation());
    getOperation()->walk([&](ir::TripCountOp op) { checkStep(runtime, op); });
    getOperation()->walk([&](Operation *op) {
      if (auto load = dyn_cast<ir::LoadOp>(op))
        checkAccess(runtime, op, load.getArray(), load.getIndices());
      else if (auto store = dyn_cast<ir::StoreOp>(op))
        checkAccess(runtime, op, store.getArray(), store.getIndices());
      else if (auto add = dyn_cast<ir::AtomicAddOp>(op))
        checkAccess(runtime, op, add.getArray(), add.getIndices());
    });
  }

  void checkAccess(Runtime &runtime, Operation *op, Value array,
                   ValueRange indices) {
    if (indexChecks)
      checkIndices(runtime, op, array, indices);
    reportUse(runtime, op, array, indices);
  }
};

} // namespace
} // namespace costate::conversion
