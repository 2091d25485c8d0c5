/// The reverse of private arrays. The forward sweep runs their stores again;
/// what the reverse sweep needs of their elements has been saved when it was
/// loaded.

#include "autodiff/reverse/Reverser.h"
#include "autodiff/rules/Rules.h"
#include "ir/Operations.h"

using namespace mlir;

namespace costate::autodiff {

/// Adjoints of all private arrays of `body`, a range's or the kernel's, where
/// its reverse sweep starts: whichever block declares one, only one lives at a
/// time.
void Reverser::declareAdjoints(Block &body, Builder &b) {
  auto range = dyn_cast<ir::RangeOp>(body.getParentOp());
  auto isOwn = [&](ir::LocalOp local) {
    return isActive(local) && local->getParentOfType<ir::RangeOp>() == range;
  };
  for (auto local : ir::all<ir::LocalOp>(body.getParentOp(), isOwn)) {
    b.setLoc(local.getLoc());
    adjointLocals[local] =
        ir::LocalOp::create(b, local.getType().getDerivative());
  }
}

static bool isInLoop(Operation *op) {
  for (op = op->getParentOp(); op && !isa<ir::RangeOp, ir::KernelOp>(op);
       op = op->getParentOp())
    if (isa<LoopLikeOpInterface>(op))
      return true;
  return !op; // a loop of the reverse sweep that is not finished
}

/// A declaration, or a clear, leaves zeros: what has come together in the
/// adjoints of these goes nowhere. The iteration before has other elements.
void Reverser::reverseLocal(Operation *op, Sweep &sweep) {
  if (auto load = dyn_cast<ir::LocalLoadOp>(op))
    return reverseLocalLoad(load, sweep);
  if (auto store = dyn_cast<ir::LocalStoreOp>(op))
    return reverseLocalStore(store, sweep);
  bool declares = isa<ir::LocalOp>(op);
  Value adjoint =
      adjointLocals.lookup(declares ? op->getResult(0) : ir::localOf(op));
  if (adjoint && (!declares || isInLoop(op)))
    ir::LocalClearOp::create(sweep.b, adjoint);
}

void Reverser::reverseLocalLoad(ir::LocalLoadOp load, Sweep &sweep) {
  Value g = sweep.adjoints.take(load.getValue());
  Value adjoint = adjointLocals.lookup(load.getLocal());
  if (!g || !adjoint)
    return;
  Value index = sweep.scope.use(load.getIndex());
  Value sum = ir::LocalLoadOp::create(sweep.b, g.getType(), adjoint, index);
  sum = arith::AddFOp::create(sweep.b, sum, g);
  ir::LocalStoreOp::create(sweep.b, sum, adjoint, index);
}

void Reverser::reverseLocalStore(ir::LocalStoreOp store, Sweep &sweep) {
  Value adjoint = adjointLocals.lookup(store.getLocal());
  if (!adjoint)
    return;
  Value index = sweep.scope.use(store.getIndex()), value = store.getValue();
  if (isActive(value)) {
    Value g = ir::LocalLoadOp::create(sweep.b, value.getType(), adjoint, index);
    add(sweep, value, g);
  }
  Value zero = floatConstant(sweep.b, value.getType(), 0);
  ir::LocalStoreOp::create(sweep.b, zero, adjoint, index);
}

} // namespace costate::autodiff
