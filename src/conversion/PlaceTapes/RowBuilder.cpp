#include "conversion/PlaceTapes/RowBuilder.h"

#include "sizing/Rows.h"

using namespace mlir;

namespace costate::conversion {

//===-- Numbers -----------------------------------------------------------===//

Value RowBuilder::i64(int64_t value) {
  return arith::ConstantOp::create(*this, getI64IntegerAttr(value));
}

Value RowBuilder::i32(int64_t value) {
  return arith::ConstantOp::create(
      *this, getI32IntegerAttr(static_cast<int32_t>(value)));
}

Value RowBuilder::boolean(bool value) {
  return arith::ConstantOp::create(*this, getBoolAttr(value));
}

Value RowBuilder::zeroOf(Type type) {
  return arith::ConstantOp::create(*this, getZeroAttr(type));
}

/// So that the back end can address rows of several iterations by one register.
constexpr auto exact =
    arith::IntegerOverflowFlags::nuw | arith::IntegerOverflowFlags::nsw;

Value RowBuilder::add(Value a, Value c) {
  return arith::AddIOp::create(*this, a, c, exact);
}

Value RowBuilder::sub(Value a, Value c) {
  return arith::SubIOp::create(*this, a, c);
}

Value RowBuilder::times(Value a, int64_t factor) {
  if (factor == 1)
    return a;
  Value by = i32(factor);
  return arith::MulIOp::create(*this, a, by, exact);
}

Value RowBuilder::addUpTo(Value a, Value c) {
  Value sum = add(a, c);
  return least(sum, i32(sizing::mostRows));
}

Value RowBuilder::timesUpTo(Value a, int64_t factor) {
  if (factor == 1)
    return a;
  Value fitting =
      less(a, i32(sizing::mostRows / std::max<int64_t>(factor, 1) + 1));
  Value product = times(a, factor);
  return select(fitting, product, i32(sizing::mostRows));
}

Value RowBuilder::index(Value iteration) {
  return arith::ExtUIOp::create(*this, getI64Type(), iteration);
}

Value RowBuilder::least(Value a, Value c) {
  return arith::MinUIOp::create(*this, a, c);
}

Value RowBuilder::most(Value a, Value c) {
  return arith::MaxUIOp::create(*this, a, c);
}

Value RowBuilder::warpMax(Value value) {
  return tape::WarpMaxOp::create(*this, getI32Type(), value);
}

//===-- Conditions --------------------------------------------------------===//

Value RowBuilder::less(Value a, Value c) {
  return arith::CmpIOp::create(*this, arith::CmpIPredicate::ult, a, c);
}

Value RowBuilder::equal(Value a, Value c) {
  return arith::CmpIOp::create(*this, arith::CmpIPredicate::eq, a, c);
}

Value RowBuilder::both(Value pred, Value condition) {
  if (!pred)
    return condition;
  Value no = boolean(false);
  return arith::SelectOp::create(*this, pred, condition, no);
}

Value RowBuilder::select(Value condition, Value a, Value c) {
  return condition ? arith::SelectOp::create(*this, condition, a, c).getResult()
                   : a;
}

Value RowBuilder::where(Value pred, Value value) {
  return pred ? select(pred, value, zeroOf(value.getType())) : value;
}

Value RowBuilder::negated(Value condition) {
  Value yes = boolean(true);
  return arith::XOrIOp::create(*this, condition, yes);
}

void RowBuilder::selectAll(Value pred, MutableArrayRef<Value> values,
                           ValueRange old) {
  for (auto [value, before] : llvm::zip(values, old))
    value = select(pred, value, before);
}

//===-- Control -----------------------------------------------------------===//

Values RowBuilder::loop(Value from, Value to, ValueRange inits, Body body) {
  Value one = i32(1);
  auto loop = scf::ForOp::create(*this, from, to, one, inits);
  InsertionGuard guard(*this);
  // A loop without values has an empty yield already.
  if (inits.empty())
    loop.getBody()->getTerminator()->erase();
  setInsertionPointToEnd(loop.getBody());
  Values next = body(loop.getInductionVar(), loop.getRegionIterArgs());
  scf::YieldOp::create(*this, next);
  return Values(loop.getResults());
}

Values RowBuilder::branch(Value pred, TypeRange types, Arm yes, Arm no) {
  if (!pred)
    return yes();
  bool hasElse = no || !types.empty();
  auto branch = scf::IfOp::create(*this, types, pred, /*addThenBlock=*/true,
                                  /*addElseBlock=*/hasElse);
  InsertionGuard guard(*this);
  auto fill = [&](Block *block, Arm arm) {
    setInsertionPointToEnd(block);
    Values values;
    if (arm)
      values = arm();
    else
      for (Type type : types)
        values.push_back(zeroOf(type));
    scf::YieldOp::create(*this, values);
  };
  fill(branch.thenBlock(), yes);
  if (hasElse)
    fill(branch.elseBlock(), no);
  return Values(branch.getResults());
}

Values RowBuilder::openLoop(TypeRange types, ValueRange inits, OpenBody before,
                            OpenBody after) {
  auto condition = [&](OpBuilder &, Location, ValueRange args) {
    InsertionGuard guard(*this);
    setInsertionPointToEnd(args.front().getParentBlock());
    Values next = before(args);
    Value goesOn = next.pop_back_val();
    scf::ConditionOp::create(*this, goesOn, next);
  };
  auto iteration = [&](OpBuilder &, Location, ValueRange args) {
    InsertionGuard guard(*this);
    setInsertionPointToEnd(args.front().getParentBlock());
    scf::YieldOp::create(*this, after(args));
  };
  auto loop = scf::WhileOp::create(*this, types, inits, condition, iteration);
  return Values(loop.getResults());
}

} // namespace costate::conversion
