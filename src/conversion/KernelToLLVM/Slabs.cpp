#include "conversion/KernelToLLVM/Slabs.h"
#include "conversion/KernelToLLVM/Runtime.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace costate::conversion {

namespace {

class Slabs {
public:
  explicit Slabs(ir::RangeOp range) : range(range) {}

  bool mark() {
    if (range.getExtents().size() < 2)
      return false;
    range.getBodyRegion().walk([&](Operation *op) { visit(op); });
    bool isAny = false;
    range.getBodyRegion().walk([&](ir::AtomicAddOp add) {
      if (add.getExclusive() || !isOwned(add.getArray()))
        return;
      add->setAttr(slabAttr, UnitAttr::get(add.getContext()));
      isAny = true;
    });
    return isAny;
  }

private:
  /// What writes to an array narrows down where its index stands.
  void visit(Operation *op) {
    if (isa<ir::LoadOp, ir::ExtentOp>(op))
      return;
    if (auto access = dyn_cast<ir::ElementAccess>(op))
      return meet(access.getArray(), llvm::to_vector(access.getIndices()));
    for (Value operand : op->getOperands())
      if (isa<ir::ArrayType>(operand.getType()))
        meet(operand, {});
  }

  void meet(Value array, SmallVector<Value> indices) {
    auto [place, isNew] = owners.try_emplace(array, indices);
    if (isNew)
      return;
    place->second.resize(std::min(place->second.size(), indices.size()));
    for (auto [known, index] : llvm::zip(place->second, indices))
      if (known != index)
        known = nullptr;
  }

  bool isOwned(Value array) {
    return llvm::any_of(owners.lookup(array), [&](Value index) {
      return index && isDistinct(index);
    });
  }

  /// Whether other first indices give other values.
  bool isDistinct(Value index) {
    if (index == range.getBody()->getArgument(0))
      return true;
    Operation *op = index.getDefiningOp();
    return isa_and_nonnull<arith::AddIOp, arith::SubIOp>(op) &&
           matchPattern(op->getOperand(1), m_Constant()) &&
           isDistinct(op->getOperand(0));
  }

  ir::RangeOp range;
  llvm::DenseMap<Value, SmallVector<Value>> owners;
};

} // namespace

bool markSlabs(ir::RangeOp range) { return Slabs(range).mark(); }

} // namespace costate::conversion
