/// Values, branches and loops, and straight code.

#include "conversion/PlaceTapes/Emitter.h"

#include "conversion/PlaceTapes/Cost.h"
#include "conversion/PlaceTapes/Rows.h"
#include "conversion/PlaceTapes/Walk.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace costate::conversion {

//===-- Values ------------------------------------------------------------===//

Value Emitter::i64(int64_t value) {
  return arith::ConstantOp::create(b, b.getI64IntegerAttr(value));
}

Value Emitter::i32(int64_t value) {
  return arith::ConstantOp::create(
      b, b.getI32IntegerAttr(static_cast<int32_t>(value)));
}

Value Emitter::zeroOf(Type type) {
  return arith::ConstantOp::create(b, b.getZeroAttr(type));
}

/// So that the back end can address rows of several iterations by one register.
constexpr auto exact =
    arith::IntegerOverflowFlags::nuw | arith::IntegerOverflowFlags::nsw;

Value Emitter::add(Value a, Value c) {
  return arith::AddIOp::create(b, a, c, exact);
}

Value Emitter::sub(Value a, Value c) { return arith::SubIOp::create(b, a, c); }

Value Emitter::times(Value a, int64_t factor) {
  if (factor == 1)
    return a;
  Value by = i32(factor);
  return arith::MulIOp::create(b, a, by, exact);
}

Value Emitter::addUpTo(Value a, Value c) {
  return least(add(a, c), i32(mostRows));
}

Value Emitter::timesUpTo(Value a, int64_t factor) {
  if (factor == 1)
    return a;
  Value fitting = less(a, i32(mostRows / std::max<int64_t>(factor, 1) + 1));
  return select(fitting, times(a, factor), i32(mostRows));
}

Value Emitter::index(Value iteration) {
  return arith::ExtUIOp::create(b, b.getI64Type(), iteration);
}

Value Emitter::least(Value a, Value c) {
  return arith::MinUIOp::create(b, a, c);
}

Value Emitter::most(Value a, Value c) {
  return arith::MaxUIOp::create(b, a, c);
}

Value Emitter::less(Value a, Value c) {
  return arith::CmpIOp::create(b, arith::CmpIPredicate::ult, a, c);
}

Value Emitter::both(Value pred, Value condition) {
  if (!pred)
    return condition;
  Value no = arith::ConstantOp::create(b, b.getBoolAttr(false));
  return arith::SelectOp::create(b, pred, condition, no);
}

Value Emitter::negated(Value condition) {
  Value yes = arith::ConstantOp::create(b, b.getBoolAttr(true));
  return arith::XOrIOp::create(b, condition, yes);
}

Value Emitter::select(Value condition, Value a, Value c) {
  return condition ? arith::SelectOp::create(b, condition, a, c).getResult()
                   : a;
}

Value Emitter::where(Value pred, Value value) {
  return pred ? select(pred, value, zeroOf(value.getType())) : value;
}

Value Emitter::warpMax(Value value) {
  return tape::WarpMaxOp::create(b, b.getI32Type(), value);
}

Values Emitter::mapped(ValueRange values, const IRMapping &at) {
  return llvm::map_to_vector(
      values, [&](Value value) { return at.lookupOrDefault(value); });
}

Values Emitter::loop(Value from, Value to, ValueRange inits, Body body) {
  Value one = i32(1);
  auto loop = scf::ForOp::create(b, from, to, one, inits);
  OpBuilder::InsertionGuard guard(b);
  // A loop without values has an empty yield already.
  if (inits.empty())
    loop.getBody()->getTerminator()->erase();
  b.setInsertionPointToEnd(loop.getBody());
  Values next = body(loop.getInductionVar(), loop.getRegionIterArgs());
  scf::YieldOp::create(b, next);
  return Values(loop.getResults());
}

Values Emitter::branch(Value pred, TypeRange types, Arm yes, Arm no) {
  if (!pred)
    return yes();
  bool hasElse = no || !types.empty();
  auto branch = scf::IfOp::create(b, types, pred, /*addThenBlock=*/true,
                                  /*addElseBlock=*/hasElse);
  OpBuilder::InsertionGuard guard(b);
  auto fill = [&](Block *block, Arm arm) {
    b.setInsertionPointToEnd(block);
    Values values;
    if (arm)
      values = arm();
    else
      for (Type type : types)
        values.push_back(zeroOf(type));
    scf::YieldOp::create(b, values);
  };
  fill(branch.thenBlock(), yes);
  if (hasElse)
    fill(branch.elseBlock(), no);
  return Values(branch.getResults());
}

//===-- Straight code -----------------------------------------------------===//

void Emitter::write(Builder &at, tape::PushOp push, ValueRange values,
                    const Place &place) {
  if (!place.writes())
    return;
  int64_t rows = RowLayout(values.getTypes()).rows;
  auto after = [&](Value row, int64_t distance) -> Value {
    Value rows = arith::ConstantOp::create(
        at, at.getI32IntegerAttr(static_cast<int32_t>(distance)));
    return arith::AddIOp::create(at, row, rows, exact);
  };
  Value row = after(place.row, shape.rowOf(*push.getRecord()));
  if (place.keep == Keep::Rows) {
    tape::WriteOp::create(at, values, row);
    return;
  }
  Value fit = place.fits;
  if (!fit)
    fit = arith::CmpIOp::create(at, arith::CmpIPredicate::ule, after(row, rows),
                                place.limit);
  auto branch = scf::IfOp::create(at, fit, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(at);
  at.setInsertionPointToStart(branch.thenBlock());
  tape::WriteOp::create(at, values, row);
}

Values Emitter::read(Builder &at, tape::PopOp pop, Value row) {
  if (auto known = records.find(*pop.getRecord()); known != records.end())
    return known->second;
  Value offset =
      arith::ConstantOp::create(at, at.getI32IntegerAttr(static_cast<int32_t>(
                                        shape.rowOf(*pop.getRecord()))));
  Value place = arith::AddIOp::create(at, row, offset, exact);
  auto values = tape::ReadOp::create(at, pop.getResultTypes(), place);
  return Values(values.getResults());
}

/// Pushes and pops of branches in straight code.
void Emitter::replaceNested(Operation *copy, const Place &place) {
  copy->walk([&](Operation *op) {
    Builder at(op->getLoc(), op);
    if (auto push = dyn_cast<tape::PushOp>(op)) {
      write(at, push, push.getValues(), place);
      push.erase();
    } else if (auto pop = dyn_cast<tape::PopOp>(op)) {
      pop->replaceAllUsesWith(read(at, pop, place.row));
      pop.erase();
    }
  });
}

void Emitter::clone(Operation *op, IRMapping &at, const Place &place) {
  b.setLoc(op->getLoc());
  if (auto push = dyn_cast<tape::PushOp>(op)) {
    write(b, push, mapped(push.getValues(), at), place);
    return;
  }
  if (auto pop = dyn_cast<tape::PopOp>(op)) {
    at.map(pop.getValues(), read(b, pop, place.row));
    return;
  }
  Operation *copy = b.clone(*op, at);
  if (shape.isOnTape(op))
    replaceNested(copy, place);
}

/// Whether running it with any values changes nothing but its results.
static bool isHarmless(Operation *op) {
  auto count = dyn_cast<ir::TripCountOp>(op);
  return op->getNumRegions() == 0 && (count ? count.cannotFail() : isPure(op));
}

/// Whether all lanes may run `ops`, for less than a branch costs: those that
/// wait have rows as well, and forget what comes of it.
static bool areForAll(ArrayRef<Operation *> ops) {
  constexpr int64_t slotsOfBranch = 32;
  int64_t slots = 0;
  for (Operation *op : ops) {
    if (isa<tape::PushOp, tape::PopOp>(op))
      continue;
    if (!isHarmless(op))
      return false;
    slots += slotsOf(op, /*fastMath=*/false);
  }
  return slots <= slotsOfBranch;
}

/// What costs nothing and cannot fail is computed by all lanes.
static bool isForAll(Operation *op,
                     const llvm::DenseSet<Operation *> &guarded) {
  if (op->hasTrait<OpTrait::ConstantLike>())
    return true;
  return isHarmless(op) &&
         llvm::all_of(op->getResultTypes(),
                      [](Type type) { return type.isInteger(); }) &&
         llvm::none_of(op->getOperands(), [&](Value value) {
           return guarded.contains(value.getDefiningOp());
         });
}

void Emitter::straight(ArrayRef<Operation *> ops, Value pred, IRMapping &at,
                       const Place &place) {
  llvm::DenseSet<Operation *> guarded;
  Values outs;
  if (areForAll(ops))
    pred = {};
  for (Operation *op : ops) {
    if (!pred || isForAll(op, guarded))
      clone(op, at, place);
    else
      guarded.insert(op);
  }
  if (guarded.empty())
    return;
  Block *block = ops.front()->getBlock();
  for (Operation *op : ops)
    if (guarded.contains(op))
      for (Value result : op->getResults())
        if (llvm::any_of(result.getUsers(), [&](Operation *user) {
              return !guarded.contains(block->findAncestorOpInBlock(*user));
            }))
          outs.push_back(result);
  Values results = branch(pred, TypeRange(ValueRange(outs)), [&] {
    for (Operation *op : ops)
      if (guarded.contains(op))
        clone(op, at, place);
    return mapped(outs, at);
  });
  for (auto [out, result] : llvm::zip(outs, results))
    at.map(out, result);
}

} // namespace costate::conversion
