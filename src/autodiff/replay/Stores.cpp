#include "autodiff/replay/Stores.h"

#include "autodiff/replay/Accesses.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace costate::autodiff {

//===-- Forwarding --------------------------------------------------------===//

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

//===-- Stores that nobody sees -------------------------------------------===//

namespace {

/// What becomes of an element.
enum class Fate { Kept, Used, Overwritten };

/// Whether `op` may use what `store` has stored, in the same iteration of all
/// loops or in a `later` one.
bool mayUse(Operation *op, ir::StoreOp store, bool later) {
  return ir::contains(op, [&](Operation *use) {
    if (isa<ir::StoreOp, ir::ExtentOp>(use) ||
        !llvm::is_contained(use->getOperands(), store.getArray()))
      return false;
    std::optional<ArrayAccess> access = accessOf(use);
    return later || !access ||
           relate(access->indices, store.getIndices()) != Relation::Apart;
  });
}

Fate fateBetween(Block::iterator from, Block::iterator to, ir::StoreOp store);

Fate fateIn(Block &block, ir::StoreOp store) {
  return fateBetween(block.begin(), block.end(), store);
}

Fate fateAt(Operation *op, ir::StoreOp store) {
  if (auto other = dyn_cast<ir::StoreOp>(op))
    return other.getArray() == store.getArray() &&
                   relate(other.getIndices(), store.getIndices()) ==
                       Relation::Same
               ? Fate::Overwritten
               : Fate::Kept;
  auto branch = dyn_cast<scf::IfOp>(op);
  if (!branch || branch.getElseRegion().empty())
    return mayUse(op, store, /*later=*/false) ? Fate::Used : Fate::Kept;
  Fate yes = fateIn(*branch.thenBlock(), store);
  Fate no = fateIn(*branch.elseBlock(), store);
  if (yes == no)
    return yes;
  return yes == Fate::Used || no == Fate::Used ? Fate::Used : Fate::Kept;
}

Fate fateBetween(Block::iterator from, Block::iterator to, ir::StoreOp store) {
  for (Operation &op : llvm::make_range(from, to))
    if (Fate fate = fateAt(&op, store); fate != Fate::Kept)
      return fate;
  return Fate::Kept;
}

bool isOverwritten(ir::StoreOp store) {
  for (Operation *at = store;; at = at->getParentOp()) {
    bool isLoop = isa<scf::ForOp, scf::WhileOp>(at);
    if ((isLoop && mayUse(at, store, /*later=*/true)) ||
        isa<ir::RangeOp, ir::KernelOp>(at))
      return false;
    Fate fate =
        fateBetween(std::next(at->getIterator()), at->getBlock()->end(), store);
    if (fate != Fate::Kept)
      return fate == Fate::Overwritten;
  }
}

} // namespace

void eraseOverwritten(ir::KernelOp kernel) {
  kernel.walk([](ir::StoreOp store) {
    if (isOverwritten(store))
      store.erase();
  });
}

} // namespace costate::autodiff
