/// What is done lane by lane.

#include "conversion/Lanes/LaneBody.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace costate::conversion {

bool isForEachLane(Operation *op) {
  return isa<ir::AtomicAddOp, ir::AtomicMinOp, ir::AtomicMaxOp,
             ir::AtomicTakeOp, ir::AtomicFetchOp, ir::CompareExchangeOp,
             ir::TripCountOp, ir::AssertOp, func::CallOp>(op);
}

/// A loop over the lanes of the mask: takes the lowest bit of those that are
/// left.
void LaneBody::emitEachLane(Operation *op) {
  Type i64 = b.getI64Type();
  bool isOfSome = adding && isa<ir::AtomicAddOp>(op);
  Values inits = {b.bitsOf(isOfSome ? b.both(active, adding) : active)};
  for (Value result : op->getResults())
    inits.push_back(b.zero(b.vectorOf(result.getType())));
  Values operands = handOn(op->getOperands(), op->getOperands());
  auto loop = scf::WhileOp::create(
      b, TypeRange(ValueRange(inits)), inits,
      [&](OpBuilder &builder, Location loc, ValueRange carried) {
        LaneBuilder inner(loc, builder, b.lanes);
        Value some = arith::CmpIOp::create(inner, arith::CmpIPredicate::ne,
                                           carried[0], inner.number(i64, 0));
        scf::ConditionOp::create(inner, some, carried);
      },
      [&](OpBuilder &builder, Location loc, ValueRange carried) {
        LaneBuilder inner(loc, builder, b.lanes);
        Value bits = carried[0];
        Value lane = LLVM::CountTrailingZerosOp::create(
            inner, i64, bits, /*is_zero_poison=*/true);
        IRMapping mapping;
        for (auto [operand, here] :
             llvm::zip_equal(op->getOperands(), operands))
          mapping.map(operand,
                      isUniform(operand) ? here : inner.extract(here, lane));
        Operation *one = inner.clone(*op, mapping);
        Value less = arith::SubIOp::create(inner, bits, inner.number(i64, 1));
        Values next = {arith::AndIOp::create(inner, bits, less)};
        for (auto [vector, value] :
             llvm::zip_equal(carried.drop_front(), one->getResults()))
          next.push_back(inner.insert(vector, value, lane));
        scf::YieldOp::create(inner, next);
      });
  for (auto [k, result] : llvm::enumerate(op->getResults()))
    vectors[result] = loop.getResult(k + 1);
}

/// Only lanes whose condition is false have something to say.
void LaneBody::emitAssert(ir::AssertOp op) {
  Value failing = b.butNot(active, vector(op.getCondition()));
  auto branch = scf::IfOp::create(b, b.any(failing));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  Masked masked(*this, failing);
  emitEachLane(op);
}

} // namespace costate::conversion
