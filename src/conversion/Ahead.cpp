#include "conversion/Ahead.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace costate::conversion {
namespace {

/// Those of nested operations as well, as far as they come from outside.
SmallVector<Value> operandsOf(Operation *op) {
  SmallVector<Value> operands;
  op->walk([&](Operation *nested) {
    for (Value operand : nested->getOperands())
      if (!op->isAncestor(operand.getParentRegion()->getParentOp()))
        operands.push_back(operand);
  });
  return operands;
}

bool isCheapAlone(Operation *op) {
  if (isa<ir::LoadOp, scf::YieldOp>(op))
    return true;
  if (auto count = dyn_cast<ir::TripCountOp>(op))
    return count.cannotFail();
  return op->getNumRegions() == 0 && isMemoryEffectFree(op) &&
         !op->hasTrait<ir::OpTrait::IsFunction>() &&
         !isa<math::MathDialect>(op->getDialect());
}

bool isCheap(Operation *op) {
  if (!isa<scf::IfOp>(op))
    return isCheapAlone(op);
  return !ir::contains(op, [&](Operation *nested) {
    return nested != op && !isCheapAlone(nested);
  });
}

/// Whether work items may write what `load` reads: two arguments may be one
/// array.
bool isWritten(ir::LoadOp load, Region &body) {
  Type element = load.getResult().getType();
  return body
      .walk([&](Operation *op) {
        auto access = dyn_cast<ir::ElementAccess>(op);
        bool writes =
            access && ir::writesElement(op) &&
            cast<ir::ArrayType>(access.getArray().getType()).getElementType() ==
                element;
        return writes ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

class Ahead {
public:
  Ahead(Region &body, int64_t &left) : body(body), left(left) {}

  /// `isIndex`: of a load, which must be in bounds.
  bool isKnown(Value value, bool isIndex) {
    if (!body.isAncestor(value.getParentRegion()))
      return true;
    if (auto argument = dyn_cast<BlockArgument>(value))
      return argument.getOwner() == &body.front();
    Operation *op = value.getDefiningOp();
    if (left == 0)
      return false;
    --left;
    // Within a branch, a load may be an index of another one.
    bool mayBeIndex = isIndex || op->getNumRegions() > 0;
    bool stays = !mayBeIndex || !ir::contains(op, [&](Operation *nested) {
      auto load = dyn_cast<ir::LoadOp>(nested);
      return load && isWritten(load, body);
    });
    bool areIndices = isIndex || ir::contains<ir::LoadOp>(op);
    return stays && isCheap(op) &&
           llvm::all_of(operandsOf(op), [&](Value operand) {
             return isKnown(operand, areIndices);
           });
  }

private:
  Region &body;
  int64_t &left;
};

} // namespace

bool isKnownAhead(Value value, Region &body, int64_t &left) {
  return Ahead(body, left).isKnown(value, /*isIndex=*/false);
}

Value computeAhead(Value value, Region &body, OpBuilder &b, IRMapping &done) {
  if (Value known = done.lookupOrNull(value))
    return known;
  if (!body.isAncestor(value.getParentRegion()))
    return value;
  for (Value operand : operandsOf(value.getDefiningOp()))
    (void)computeAhead(operand, body, b, done);
  b.clone(*value.getDefiningOp(), done);
  return done.lookup(value);
}

} // namespace costate::conversion
