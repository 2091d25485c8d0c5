#include "autodiff/activity/Influence.h"

#include "autodiff/activity/Flow.h"
#include "autodiff/rules/Rules.h"

using namespace mlir;

namespace costate::autodiff {

Influence::Influence(ir::KernelOp kernel,
                     llvm::function_ref<bool(Value)> isActive) {
  kernel.walk([&](ir::ElementAccess access) {
    if (ir::writesElement(access) && isActive(access.getArray()))
      for (Value operand : access->getOperands())
        mark(operand);
  });
  while (!pending.empty())
    follow(pending.pop_back_val());
}

void Influence::mark(Value value) {
  auto local = dyn_cast<ir::LocalType>(value.getType());
  if ((isa<FloatType>(value.getType()) || (local && local.isFloat())) &&
      influential.insert(value).second)
    pending.push_back(value);
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
