#include "autodiff/activity/Activity.h"

#include "autodiff/activity/Flow.h"
#include "autodiff/rules/Rules.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace costate::autodiff {

void FloatValues::mark(Value value) {
  auto local = dyn_cast<ir::LocalType>(value.getType());
  if (isa<FloatType>(value.getType()) || (local && local.isFloat()))
    values.insert(value);
}

//===-- Forward -----------------------------------------------------------===//

Activity::Activity(ir::KernelOp kernel,
                   llvm::function_ref<bool(Value)> isActive)
    : records(tape::recordsOf(kernel)) {
  auto flows = flowsIn(kernel);
  kernel.walk([&](ir::ElementAccess access) {
    if (isActive(access.getArray()))
      for (Value value : access->getResults())
        mark(value);
  });
  for (size_t k = 0; k < values.size(); ++k) {
    for (Value value : flows.lookup(values[k]))
      mark(value);
    for (OpOperand &use : values[k].getUses())
      follow(use);
  }
}

/// What is pushed without a number is not known where it is popped.
void Activity::follow(OpOperand &use) {
  Operation *user = use.getOwner();
  if (auto push = dyn_cast<tape::PushOp>(user)) {
    if (!push.getRecord())
      return;
    if (tape::PopOp pop = records.lookup(*push.getRecord()).pop)
      mark(pop.getResult(use.getOperandNumber()));
  } else if (auto store = dyn_cast<ir::LocalStoreOp>(user)) {
    mark(store.getLocal());
  } else if (!isDiscrete(user) && !isa<LoopLikeOpInterface>(user)) {
    for (Value result : user->getResults())
      mark(result);
  }
}

//===-- Backward ----------------------------------------------------------===//

Influence::Influence(ir::KernelOp kernel,
                     llvm::function_ref<bool(Value)> isActive) {
  kernel.walk([&](ir::ElementAccess access) {
    if (ir::writesElement(access) && isActive(access.getArray()))
      for (Value operand : access->getOperands())
        mark(operand);
  });
  for (size_t k = 0; k < values.size(); ++k)
    follow(values[k]);
}

void Influence::follow(Value value) {
  for (Value source : sourcesOf(value))
    mark(source);
  Operation *op = value.getDefiningOp();
  if (!op || isDiscrete(op))
    return;
  for (Operation *user : value.getUsers())
    if (auto store = dyn_cast<ir::LocalStoreOp>(user);
        store && store.getLocal() == value)
      mark(store.getValue());
  if (op->getNumRegions() == 0 || isa<ir::CustomOp>(op))
    for (Value operand : op->getOperands())
      mark(operand);
}

} // namespace costate::autodiff
