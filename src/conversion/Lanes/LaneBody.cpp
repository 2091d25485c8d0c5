#include "conversion/Lanes/LaneBody.h"

#include "conversion/KernelToLLVM/Patterns.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace costate::conversion {

bool isElementwise(Operation *op) {
  return OpTrait::hasElementwiseMappableTraits(op) ||
         op->hasTrait<ir::OpTrait::IsFunction>() ||
         isa<ir::DivOp, ir::RemOp, ir::ShlOp, ir::ShrOp, ir::ToIntOp,
             ir::NarrowOp, ir::StrongMulOp, ir::StopGradientOp, ir::ByOrderOp>(
             op);
}

void LaneBody::map(Value value, Value scalar, Value vector) {
  if (scalar)
    scalars[value] = scalar;
  if (vector)
    vectors[value] = vector;
}

Value LaneBody::scalar(Value value) const {
  auto found = scalars.find(value);
  return found == scalars.end() ? value : found->second;
}

Value LaneBody::vector(Value value) {
  auto found = vectors.find(value);
  if (found != vectors.end())
    return found->second;
  Attribute constant;
  if (matchPattern(value, m_Constant(&constant)))
    return arith::ConstantOp::create(
        b, DenseElementsAttr::get(b.vectorOf(value.getType()), constant));
  return b.splat(scalar(value));
}

void LaneBody::emit(Block &block, Value mask) {
  Masked masked(*this, mask);
  for (Operation &op : block.without_terminator()) {
    if (leftOut.contains(&op))
      continue;
    Location outer = b.getLoc();
    b.setLoc(op.getLoc());
    emit(&op);
    b.setLoc(outer);
  }
}

static bool isUniformOperation(const Shapes &shapes, Operation *op) {
  return op->getNumRegions() == 0 && shapes.areShared(op->getOperands()) &&
         shapes.areShared(op->getResults()) && !isOfOneLane(op) &&
         !isa<tape::PushOp, tape::PopOp>(op);
}

/// Whether no other lane is in the way of an access.
static bool isAlwaysOwn(Operation *op) {
  return isa<ir::LoadOp, ir::LocalLoadOp, ir::StoreOp, ir::LocalStoreOp>(op) ||
         isExclusive(op);
}

void LaneBody::emit(Operation *op) {
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return emitIf(branch);
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return emitFor(loop);
  if (auto loop = dyn_cast<scf::WhileOp>(op))
    return emitWhile(loop);
  if (auto push = dyn_cast<tape::PushOp>(op))
    return emitPush(push);
  if (auto pop = dyn_cast<tape::PopOp>(op))
    return emitPop(pop);
  if (auto local = dyn_cast<ir::LocalOp>(op))
    return emitLocal(local);
  if (auto clear = dyn_cast<ir::LocalClearOp>(op))
    return emitClear(clear);
  if (isUniformOperation(shapes, op))
    return emitScalar(op);
  if (const Interleaved *group = interleaved.of(op))
    return op == group->place() ? emitInterleaved(*group) : void();
  if (isAlwaysOwn(op))
    return emitAccess(op);
  if (auto assertion = dyn_cast<ir::AssertOp>(op))
    return emitAssert(assertion);
  if (auto count = dyn_cast<ir::TripCountOp>(op))
    return emitTripCount(count);
  if (auto random = dyn_cast<ir::PhiloxOp>(op)) {
    vectors[random] =
        philox(b, vector(random.getKey()), vector(random.getStream()),
               vector(random.getCounter()));
    return;
  }
  if (isElementwise(op))
    return emitIndex(op);
  if (!emitSharedAdd(op))
    emitEachLane(op);
}

void LaneBody::emitAccess(Operation *op) {
  if (isa<ir::LoadOp, ir::LocalLoadOp>(op))
    return emitLoad(op);
  isExclusive(op) ? emitExclusive(op) : emitStore(op);
}

void LaneBody::emitScalar(Operation *op) {
  IRMapping mapping;
  for (Value operand : op->getOperands())
    mapping.map(operand, scalar(operand));
  Operation *here = b.clone(*op, mapping);
  if (auto budget = dyn_cast<tape::BudgetOp>(here))
    budget.setLanes(b.lanes);
  for (auto [old, result] : llvm::zip(op->getResults(), here->getResults()))
    scalars[old] = result;
}

void LaneBody::emitWide(Operation *op) {
  OperationState state(op->getLoc(), op->getName());
  for (Value operand : op->getOperands())
    state.addOperands(vector(operand));
  for (Type type : op->getResultTypes())
    state.addTypes(b.vectorOf(type));
  state.addAttributes(op->getAttrs());
  Operation *here = b.create(state);
  for (auto [old, result] : llvm::zip(op->getResults(), here->getResults()))
    vectors[old] = result;
}

/// Of the first lane as well, if it says where the others are. A difference of
/// two indices may be the same in all lanes.
void LaneBody::emitIndex(Operation *op) {
  bool isOne = op->getNumResults() == 1;
  if (isOne && shapes.of(op->getResult(0)).kind != Shape::Varying)
    emitScalar(op);
  if (!isOne || !isUniform(op->getResult(0)))
    emitWide(op);
}

/// By a constant step; others may fail, and are counted lane by lane.
void LaneBody::emitTripCount(ir::TripCountOp op) {
  APInt step;
  if (!matchPattern(op.getStep(), m_ConstantInt(&step)) || step.isZero() ||
      step.isMinSignedValue())
    return emitEachLane(op);
  Value from = vector(op.getLo()), to = vector(op.getHi());
  if (step.isNegative())
    std::swap(from, to);
  Type type = from.getType();
  auto fill = [&](int64_t value) {
    return arith::ConstantOp::create(
        b, DenseElementsAttr::get(cast<ShapedType>(type),
                                  b.getI64IntegerAttr(value)));
  };
  Value some = arith::CmpIOp::create(b, arith::CmpIPredicate::sgt, to, from);
  Value count = arith::SubIOp::create(b, to, from);
  if (!step.abs().isOne()) {
    Value last = arith::SubIOp::create(b, count, fill(1));
    Value stride = fill(step.abs().getSExtValue());
    Value before =
        ir::DivOp::create(b, type, last, stride, /*isUnsigned=*/true);
    count = arith::AddIOp::create(b, before, fill(1));
  }
  vectors[op] = arith::SelectOp::create(b, some, count, fill(0));
}

void LaneBody::emitPush(tape::PushOp op) {
  tape::PushOp::create(b, handOn(op.getValues(), op.getValues()),
                       op.getRecordAttr());
}

void LaneBody::emitPop(tape::PopOp op) {
  auto pop =
      tape::PopOp::create(b, formsOf(op.getValues()), op.getRecordAttr());
  take(op.getValues(), pop.getValues());
}

} // namespace costate::conversion
