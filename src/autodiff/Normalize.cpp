#include "autodiff/Normalize.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace costate::autodiff {

static Value asI64(ImplicitLocOpBuilder &b, Value value) {
  Type i64 = b.getI64Type();
  if (value.getType().isIndex())
    return arith::IndexCastOp::create(b, i64, value);
  if (value.getType() == i64)
    return value;
  return arith::ExtSIOp::create(b, i64, value);
}

static Value fromI64(ImplicitLocOpBuilder &b, Value value, Type type) {
  if (type.isIndex())
    return arith::IndexCastOp::create(b, type, value);
  if (type.isInteger(64))
    return value;
  return arith::TruncIOp::create(b, type, value);
}

static bool isNormal(scf::ForOp loop) {
  return matchPattern(loop.getLowerBound(), m_Zero()) &&
         matchPattern(loop.getStep(), m_One()) &&
         loop.getUpperBound().getType().isInteger(64);
}

/// The index of turn `counter` takes the place of the old induction variable.
static void reindex(ImplicitLocOpBuilder &b, scf::ForOp loop, Value lo,
                    Value step, Type type) {
  Value counter = loop.getInductionVar();
  b.setInsertionPointToStart(loop.getBody());
  auto offset = arith::MulIOp::create(b, counter, step);
  Value index = arith::AddIOp::create(b, lo, offset);
  Value cast = fromI64(b, index, type);
  counter.replaceUsesWithIf(cast, [&](OpOperand &use) {
    return use.getOwner() != offset;
  });
}

static void normalize(scf::ForOp loop) {
  ImplicitLocOpBuilder b(loop.getLoc(), loop);
  Type type = loop.getInductionVar().getType();
  Value lo = asI64(b, loop.getLowerBound());
  Value hi = asI64(b, loop.getUpperBound());
  Value step = asI64(b, loop.getStep());
  Value count = ir::TripCountOp::create(b, lo, hi, step);
  loop.setLowerBound(arith::ConstantOp::create(b, b.getI64IntegerAttr(0)));
  loop.setStep(arith::ConstantOp::create(b, b.getI64IntegerAttr(1)));
  loop.setUpperBound(count);
  loop.getInductionVar().setType(b.getI64Type());
  reindex(b, loop, lo, step, type);
}

void normalizeLoops(ir::KernelOp kernel) {
  kernel.walk([](scf::ForOp loop) {
    if (!isNormal(loop))
      normalize(loop);
  });
}

static scf::WhileOp withCounter(scf::WhileOp loop) {
  ImplicitLocOpBuilder b(loop.getLoc(), loop);
  Type i64 = b.getI64Type();
  SmallVector<Value> inits(loop.getInits());
  inits.push_back(arith::ConstantOp::create(b, b.getI64IntegerAttr(0)));
  SmallVector<Type> types(loop.getResultTypes());
  types.push_back(i64);
  OperationState state(loop.getLoc(), scf::WhileOp::getOperationName(), inits,
                       types, loop->getAttrs());
  for (Region &region : loop->getRegions())
    state.addRegion()->takeBody(region);
  auto counted = cast<scf::WhileOp>(b.create(state));
  Value before = counted.getBeforeBody()->addArgument(i64, loop.getLoc());
  counted.getConditionOp().getArgsMutable().append(before);
  Value after = counted.getAfterBody()->addArgument(i64, loop.getLoc());
  scf::YieldOp yield = counted.getYieldOp();
  b.setInsertionPoint(yield);
  Value one = arith::ConstantOp::create(b, b.getI64IntegerAttr(1));
  Value next = arith::AddIOp::create(b, after, one);
  yield.getResultsMutable().append(next);
  loop.replaceAllUsesWith(counted.getResults().drop_back());
  loop.erase();
  return counted;
}

llvm::DenseMap<Operation *, Value> countTurns(ir::KernelOp kernel) {
  SmallVector<scf::WhileOp> loops;
  kernel.walk([&](scf::WhileOp loop) { loops.push_back(loop); });
  llvm::DenseMap<Operation *, Value> turns;
  for (scf::WhileOp loop : loops) {
    scf::WhileOp counted = withCounter(loop);
    turns[counted] = counted.getResults().back();
  }
  return turns;
}

} // namespace costate::autodiff
