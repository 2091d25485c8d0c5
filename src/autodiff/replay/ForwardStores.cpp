#include "autodiff/replay/ForwardStores.h"

#include "autodiff/replay/Accesses.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace costate::autodiff {

static bool writes(Operation *op, Value array) {
  return llvm::any_of(accessesIn(op), [&](const ArrayAccess &access) {
    return access.isWrite() && access.array == array;
  });
}

/// What `load` finds, as far as the operation `op` before it tells: a value, or
/// null; then `isOpen` says whether to look further back.
static Value valueFrom(Operation *op, ir::LoadOp load, bool &isOpen) {
  if (op->getNumRegions()) {
    isOpen = !writes(op, load.getArray());
    return {};
  }
  std::optional<ArrayAccess> access = accessOf(op);
  if (!access || !access->isWrite() || access->array != load.getArray())
    return {};
  Relation relation = relate(access->indices, load.getIndices());
  isOpen = relation == Relation::Apart;
  auto store = dyn_cast<ir::StoreOp>(op);
  return store && relation == Relation::Same ? store.getValue() : Value();
}

/// The value that a store of the same work item has left for `load`, if any.
static Value storedValue(ir::LoadOp load) {
  bool isOpen = true;
  for (Operation *at = load; isOpen;) {
    if (Operation *before = at->getPrevNode()) {
      at = before;
      if (Value value = valueFrom(at, load, isOpen))
        return value;
      continue;
    }
    at = at->getParentOp();
    bool isLoop = isa<scf::ForOp, scf::WhileOp>(at);
    if ((!isLoop && !isa<scf::IfOp>(at)) ||
        (isLoop && writes(at, load.getArray())))
      return {};
  }
  return {};
}

/// What `value` is after a store.
static Value asElement(ir::LoadOp load, Value value) {
  Type element = load.getArray().getType().getElementType();
  if (!ir::isNarrow(element))
    return value;
  OpBuilder b(load);
  return b.createOrFold<ir::NarrowOp>(load.getLoc(), value, element);
}

void forwardStores(ir::KernelOp kernel) {
  kernel.walk([](ir::LoadOp load) {
    if (Value value = storedValue(load)) {
      value = asElement(load, value);
      load.replaceAllUsesWith(value);
      load.erase();
    }
  });
}

} // namespace costate::autodiff
