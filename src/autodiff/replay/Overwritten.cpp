#include "autodiff/replay/Overwritten.h"

#include "autodiff/replay/Accesses.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace costate::autodiff {
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
