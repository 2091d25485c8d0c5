#include "autodiff/reverse/Construction.h"
#include "autodiff/rules/Rules.h"

using namespace mlir;

namespace costate::autodiff {

ReverseLoop::ReverseLoop(Location loc, Type type)
    : block(new Block), counter(block->addArgument(type, loc)),
      b(loc, loc.getContext()) {
  b.setInsertionPointToEnd(block);
}

scf::ForOp ReverseLoop::close(Builder &outer, Value count,
                              ArrayRef<Value> inits, ArrayRef<Value> next) {
  scf::YieldOp::create(b, next);
  Value zero = constant(outer, 0), one = constant(outer, 1);
  SmallVector<Value> operands{zero, count, one};
  llvm::append_range(operands, inits);
  OperationState state(outer.getLoc(), scf::ForOp::getOperationName());
  state.addOperands(operands);
  for (Value init : inits)
    state.addTypes(init.getType());
  state.addRegion()->push_back(block);
  return cast<scf::ForOp>(outer.create(state));
}

Value ReverseLoop::iteration(Builder &at, Value count) {
  Value one = constant(at, 1);
  Value last = arith::SubIOp::create(at, count, one);
  return arith::SubIOp::create(at, last, counter);
}

Value ReverseLoop::constant(Builder &at, int64_t value) {
  return arith::ConstantOp::create(at,
                                   at.getIntegerAttr(counter.getType(), value));
}

SmallVector<Value> createIf(Builder &b, Value condition, TypeRange types,
                            Block *yes, Block *no) {
  OperationState state(b.getLoc(), scf::IfOp::getOperationName());
  state.addOperands(condition);
  state.addTypes(types);
  state.addRegion()->push_back(yes);
  state.addRegion()->push_back(no);
  return SmallVector<Value>(b.create(state)->getResults());
}

} // namespace costate::autodiff
