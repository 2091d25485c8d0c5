/// Which accesses of a range have to be watched for races?

#include "autodiff/replay/Replay.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace costate::autodiff {
namespace {

/// The accesses of one range to one array.
class Watch {
public:
  Watch(ir::RangeOp range, Value array, ArrayRef<ArrayAccess> accesses)
      : range(range), array(cast<BlockArgument>(array)), accesses(accesses) {}

  /// Whether two work items could use one element in ways that exclude each
  /// other.
  bool mayConflict() const {
    auto isOwnUpdate = [](const ArrayAccess &access) {
      return isExclusive(access.op);
    };
    auto isFetch = [](const ArrayAccess &access) {
      return ir::fetchesElement(access.op);
    };
    int kinds = any<ir::LoadOp>() + any<ir::AtomicAddOp>() +
                any<ir::AtomicMinOp>() + any<ir::AtomicMaxOp>() +
                llvm::any_of(accesses, isFetch);
    return any<ir::StoreOp>() || llvm::any_of(accesses, isOwnUpdate) ||
           kinds > 1;
  }

  bool isTangent() const { return has(ir::tangentOfAttr); }
  bool isOrderFree() const {
    return ir::holdsOwners(array) || ir::isDirectory(array);
  }

  void mark() {
    for (const ArrayAccess &access : accesses)
      access.op->setAttr(
          ir::watchedAttr,
          StringAttr::get(access.op->getContext(), has(ir::adjointOfAttr)
                                                       ? useOfAdjoint(access.op)
                                                       : useOf(access.op)));
    if (!has(ir::adjointOfAttr))
      numberStoredValues();
  }

private:
  template <class Op> bool any() const {
    return llvm::any_of(
        accesses, [](const ArrayAccess &access) { return isa<Op>(access.op); });
  }

  bool has(StringRef attribute) const {
    auto kernel = cast<ir::KernelOp>(array.getOwner()->getParentOp());
    return bool(kernel.getArgAttr(array.getArgNumber(), attribute));
  }

  /// A function that is called twice stores two values at one place.
  void numberStoredValues() {
    llvm::MapVector<Location, SmallVector<OpFoldResult>> stored;
    for (const ArrayAccess &access : accesses) {
      auto store = dyn_cast<ir::StoreOp>(access.op);
      if (!store || useOf(store) != "shared_store")
        continue;
      OpFoldResult value = getAsOpFoldResult(store.getValue());
      SmallVector<OpFoldResult> &values = stored[store.getLoc()];
      auto known = llvm::find(values, value);
      if (known != values.begin())
        store->setAttr(ir::storedValueAttr, OpBuilder(store).getI64IntegerAttr(
                                                known - values.begin()));
      if (known == values.end())
        values.push_back(value);
    }
  }

  StringRef useOf(Operation *op) {
    if (isa<ir::LoadOp>(op))
      return "load";
    if (auto store = dyn_cast<ir::StoreOp>(op))
      return isUniform(store.getValue(), range) ? "shared_store" : "store";
    // One that is not atomic stores what it has loaded.
    if (isExclusive(op))
      return "store";
    if (isa<ir::CompareExchangeOp>(op))
      return "exchange";
    auto fetch = dyn_cast<ir::AtomicFetchOp>(op);
    return llvm::StringSwitch<StringRef>(fetch ? fetch.getKind()
                                         : isa<ir::AtomicMinOp>(op) ? "min"
                                         : isa<ir::AtomicMaxOp>(op) ? "max"
                                                                    : "add")
        .Case("min", "minimum")
        .Case("max", "maximum")
        .Cases({"and", "or", "xor"}, "bits")
        .Cases({"exchange", "mul"}, "exchange")
        .Default("update");
  }

  /// A load of the primal is reversed by an update, an update by a load, a
  /// store by a load and a store, by an atomic take if work items may share it,
  /// or by a store if the value has no derivative.
  StringRef useOfAdjoint(Operation *op) const {
    if (auto update = dyn_cast<ir::AtomicAddOp>(op))
      return update.getExclusive() ? "store" : "load";
    if (isa<ir::AtomicTakeOp>(op))
      return isExclusive(op) ? "store" : "maximum";
    if (isa<ir::LoadOp>(op))
      return hasPartner<ir::StoreOp>(op) ? "store" : "update";
    return hasPartner<ir::LoadOp>(op) ? "store" : "shared_store";
  }

  /// Whether an access of kind `Op` comes from the same place as `op`.
  template <class Op> bool hasPartner(Operation *op) const {
    return llvm::any_of(accesses, [&](const ArrayAccess &access) {
      return isa<Op>(access.op) && access.op->getLoc() == op->getLoc();
    });
  }

  ir::RangeOp range;
  BlockArgument array;
  ArrayRef<ArrayAccess> accesses;
};

} // namespace

void watchAccesses(ir::KernelOp kernel) {
  kernel.walk([](ir::RangeOp range) {
    llvm::DenseSet<Value> exclusive = exclusiveArrays(range);
    for (auto &[array, accesses] : accessesByArray(range)) {
      Watch watch(range, array, accesses);
      if (!exclusive.contains(array) && !watch.isTangent() &&
          !watch.isOrderFree() && watch.mayConflict())
        watch.mark();
    }
  });
}

} // namespace costate::autodiff
