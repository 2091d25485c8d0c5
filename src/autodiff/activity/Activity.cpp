#include "autodiff/activity/Activity.h"

#include "autodiff/rules/Rules.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace costate::autodiff {

Activity::Activity(ir::KernelOp kernel,
                   llvm::function_ref<bool(Value)> isActive)
    : records(tape::recordsOf(kernel)) {
  kernel.walk([&](ir::ElementAccess access) {
    if (isActive(access.getArray()))
      for (Value value : access->getResults())
        mark(value);
  });
  while (!pending.empty())
    for (OpOperand &use : pending.pop_back_val().getUses())
      follow(use);
}

void Activity::mark(Value value) {
  auto local = dyn_cast<ir::LocalType>(value.getType());
  if ((isa<FloatType>(value.getType()) || (local && local.isFloat())) &&
      varied.insert(value).second)
    pending.push_back(value);
}

void Activity::follow(OpOperand &use) {
  Operation *user = use.getOwner();
  if (isa<scf::YieldOp, scf::ConditionOp, ir::YieldOp>(user))
    return followTerminator(use);
  if (isa<scf::ForOp, scf::WhileOp>(user))
    return followLoop(use);
  if (auto push = dyn_cast<tape::PushOp>(user))
    return followRecord(push, use.getOperandNumber());
  if (auto store = dyn_cast<ir::LocalStoreOp>(user))
    return mark(store.getLocal());
  if (isDiscrete(user))
    return;
  for (Value result : user->getResults())
    mark(result);
}

/// What is pushed without a number is not known where it is popped.
void Activity::followRecord(tape::PushOp push, unsigned index) {
  if (!push.getRecord())
    return;
  if (tape::PopOp pop = records.lookup(*push.getRecord()).pop)
    mark(pop.getResult(index));
}

void Activity::followTerminator(OpOperand &use) {
  Operation *parent = use.getOwner()->getParentOp();
  unsigned index = use.getOperandNumber();
  if (auto loop = dyn_cast<scf::ForOp>(parent)) {
    mark(loop.getRegionIterArg(index));
    mark(loop.getResult(index));
  } else if (auto loop = dyn_cast<scf::WhileOp>(parent)) {
    if (isa<scf::YieldOp>(use.getOwner()))
      return mark(loop.getBeforeArguments()[index]);
    if (index == 0)
      return;
    mark(loop.getAfterArguments()[index - 1]);
    mark(loop.getResult(index - 1));
  } else {
    mark(parent->getResult(index));
  }
}

void Activity::followLoop(OpOperand &use) {
  unsigned index = use.getOperandNumber();
  if (auto loop = dyn_cast<scf::WhileOp>(use.getOwner()))
    return mark(loop.getBeforeArguments()[index]);
  auto loop = cast<scf::ForOp>(use.getOwner());
  if (index < loop.getNumControlOperands())
    return;
  unsigned carried = index - loop.getNumControlOperands();
  mark(loop.getRegionIterArg(carried));
  mark(loop.getResult(carried));
}

} // namespace costate::autodiff
