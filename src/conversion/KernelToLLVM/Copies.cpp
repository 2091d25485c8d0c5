#include "conversion/KernelToLLVM/Copies.h"
#include "conversion/KernelToLLVM/Runtime.h"

#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace costate::conversion {

static bool isInLoop(Operation *op, Operation *around) {
  for (op = op->getParentOp(); op != around; op = op->getParentOp())
    if (isa<LoopLikeOpInterface>(op))
      return true;
  return false;
}

static bool isCopiedWith(ir::AtomicAddOp add) {
  Type type = cast<ir::ArrayType>(add.getArray().getType()).getElementType();
  return !add.getExclusive() && !add->hasAttr(slabAttr) &&
         (type.isF32() || type.isF64());
}

/// Whether `range` does nothing else with the array than such additions.
static bool isOnlyAdded(Value array, ir::RangeOp range) {
  return llvm::all_of(array.getUsers(), [&](Operation *user) {
    auto add = dyn_cast<ir::AtomicAddOp>(user);
    return !range->isAncestor(user) || isa<ir::ExtentOp>(user) ||
           (add && isCopiedWith(add));
  });
}

SmallVector<CopiedArray> markCopied(ir::RangeOp range) {
  llvm::MapVector<Value, SmallVector<ir::AtomicAddOp>> additions;
  range.getBodyRegion().walk([&](ir::AtomicAddOp add) {
    if (isCopiedWith(add) && isOnlyAdded(add.getArray(), range))
      additions[add.getArray()].push_back(add);
  });
  SmallVector<CopiedArray> arrays;
  for (auto &[array, adds] : additions) {
    Attribute number = Builder(range).getI64IntegerAttr(arrays.size());
    for (ir::AtomicAddOp add : adds)
      add->setAttr(copyAttr, number);
    arrays.push_back({array, llvm::any_of(adds, [&](ir::AtomicAddOp add) {
                        return isInLoop(add, range);
                      })});
  }
  return arrays;
}

} // namespace costate::conversion
