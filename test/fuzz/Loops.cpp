/// Random loops.

#include "fuzz/Statements.h"

using namespace mlir;

namespace costate::fuzz {

void Statements::loop(int depth) {
  int choice = random.below(100);
  if (choice < 15 && timeIndexed())
    return timeLoop(depth);
  if (choice < 22)
    return longLoop();
  if (choice < 54)
    return forLoop(depth);
  if (choice < 68)
    return leavableLoop(depth);
  whileLoop(depth);
}

//===-- Bounds ------------------------------------------------------------===//

/// An i64 from 0 to 4.
Value Statements::smallCount() {
  if (random.chance(40))
    return integer(random.between(0, 4));
  Value n = whole(Kind::I64, 1), five = integer(5);
  auto rest = ir::RemOp::create(b, here(), n, five);
  rest.setIsUnsigned(true);
  return within(rest, 5);
}

Statements::Bounds Statements::normalBounds() {
  Bounds bounds;
  bounds.lo = integer(0);
  if (random.chance(15)) {
    Value n = smallCount(), most = integer(random.between(0, 3));
    bounds.hi = make<arith::SubIOp>(n, most); // negative, perhaps
  } else {
    bounds.hi = smallCount();
  }
  bounds.step = integer(1);
  bounds.bound = 4;
  bounds.isUnsigned = random.chance(3);
  return bounds;
}

/// Any start, end and step; the step is not 0.
Statements::Bounds Statements::anyBounds() {
  static constexpr int steps[] = {1, 1, 2, 3, -1, -1, -2};
  Kind kind = random.chance(75) ? Kind::I64 : Kind::I32;
  auto end = [&](int low, int high) -> Value {
    if (random.chance(50))
      return integer(random.between(low, high), kind);
    Value n = whole(kind, 1), count = integer(random.between(3, 6), kind);
    return make<ir::RemOp>(n, count);
  };
  Bounds bounds;
  bounds.lo = end(-1, 4);
  bounds.hi = end(-2, 5);
  bounds.step = integer(random.pick(steps), kind);
  bounds.isUnsigned = random.chance(15);
  if (random.chance(20)) {
    Value other = integer(random.pick(steps), kind), yes = condition(1);
    bounds.step = make<arith::SelectOp>(yes, bounds.step, other);
  }
  return bounds;
}

/// What the body sees of an induction variable.
Value Statements::asCounter(Value induction) {
  if (induction.getType().isIndex())
    induction = make<arith::IndexCastOp>(b.getI64Type(), induction);
  return offer(induction);
}

//===-- for ---------------------------------------------------------------===//

void Statements::counted(const Bounds &bounds,
                         llvm::function_ref<void()> iteration) {
  Carried carried = chooseCarried(50);
  auto op = scf::ForOp::create(b, here(), bounds.lo, bounds.hi, bounds.step,
                               currentOf(carried));
  op.setUnsignedCmp(bounds.isUnsigned);
  if (carried.empty())
    op.getBody()->getTerminator()->erase();
  std::vector<bool> outer = freeze(carried);
  setCurrent(carried, op.getRegionIterArgs());
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(op.getBody());
    Scope scope(*this);
    Value counter = asCounter(op.getInductionVar());
    if (bounds.bound)
      within(counter, bounds.bound);
    counters.push_back(counter);
    ++loops;
    iteration();
    --loops;
    counters.pop_back();
    scf::YieldOp::create(b, here(), currentOf(carried));
  }
  restore(outer);
  setCurrent(carried, op.getResults());
}

/// A loop that CONTINUE may cut short, but that nothing leaves.
void Statements::forLoop(int depth) {
  Bounds bounds = random.chance(55) ? normalBounds() : anyBounds();
  Flags outer = std::exchange(flags, Flags{});
  SmallVector<int> outerRaised = std::exchange(raised, {});
  counted(bounds, [&] {
    if (random.chance(30))
      flags.continues = declareFlag();
    body(depth, 4);
    if (random.chance(50))
      assign();
    flags.continues = -1;
    raised.clear();
  });
  flags = outer;
  raised = outerRaised;
}

/// Up to 9 iterations around a carried value and a tally.
void Statements::longLoop() {
  Kind kind = hasSingles && random.chance(30) ? Kind::F32 : Kind::F64;
  Value lo = integer(0), one = integer(1);
  Value hi = random.chance(30) ? normalBounds().hi : integer(random.below(10));
  Value init = number(kind, 1), first = integer(random.between(1, 3));
  auto op = scf::ForOp::create(b, here(), lo, hi, one, ValueRange{init, first});
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(op.getBody());
    Scope scope(*this);
    offer(op.getInductionVar());
    offer(op.getRegionIterArg(0));
    Value next = number(kind, 2);
    Value product = make<arith::MulFOp>(next, op.getRegionIterArg(0));
    ++loops;
    next = tamed(product);
    --loops;
    Value tally = make<arith::AddIOp>(op.getRegionIterArg(1), first);
    scf::YieldOp::create(b, here(), ValueRange{next, tally});
  }
  Value tally = make<arith::SIToFPOp>(typeOf(kind), op.getResult(1));
  Value scaled = make<arith::MulFOp>(op.getResult(0), tally);
  offer(tamed(scaled));
}

/// An array of rank 2 of which a work item owns a column.
Array *Statements::timeIndexed() {
  SmallVector<Array *> found;
  for (Array &array : arrays)
    if (array.role == Role::Own && !array.isConstant && isFloat(array.kind) &&
        array.extents.size() == 2 && array.extents[0] > 1 &&
        (array.column || !array.own))
      found.push_back(&array);
  return found.empty() ? nullptr : random.pick(found);
}

Statements::Bounds Statements::timeBounds(const Array &array) {
  Bounds bounds = normalBounds();
  bounds.hi = integer(random.between(1, int(array.extents[0]) - 1));
  bounds.bound = array.extents[0] - 1;
  return bounds;
}

std::pair<Value, Value> Statements::timesOfIteration(const Array &array,
                                                     bool runsDown) {
  Value t = counters.back(), one = integer(1);
  if (!runsDown)
    return {t, make<arith::AddIOp>(t, one)};
  Value top = integer(array.extents[0] - 1);
  t = make<arith::SubIOp>(top, t);
  return {t, make<arith::SubIOp>(t, one)};
}

/// u[t+1, i] = f(u[t, i]), or in the other direction
void Statements::timeLoop(int depth) {
  Array &array = *timeIndexed();
  Bounds bounds = timeBounds(array);
  Value column = array.column ? array.column : index(array.extents[1]);
  Flags outer = std::exchange(flags, Flags{});
  bool runsDown = random.chance(30);
  counted(bounds, [&] {
    auto [t, next] = timesOfIteration(array, runsDown);
    if (random.chance(20))
      std::swap(t, next);
    Value now = make<ir::LoadOp>(typeOf(array.kind), array.argument,
                                 ValueRange{t, column});
    offer(now);
    if (random.chance(30))
      statements(1, depth - 1);
    Value change = number(array.kind, 2);
    Value product = make<arith::MulFOp>(now, change);
    Value stored = tamed(product);
    ir::StoreOp::create(b, here(), stored, array.argument,
                        ValueRange{next, column});
  });
  flags = outer;
}

//===-- while -------------------------------------------------------------===//

/// A while under construction. Of the variables that it carries, some reach the
/// body changed by the before-region, in any order, and some not at all.
struct Statements::While {
  Carried carried;   ///< arguments of the before-region
  Carried forwarded; ///< arguments of the body and results
  scf::WhileOp op;
  Kind kind = Kind::I64;  ///< of the counter
  unsigned counter = 0;   ///< the variable that ends the loop
  Value limit, step;      ///< of the counter; no limit: chosen where it is used
  SmallVector<int> leave; ///< flags that end it
  bool computes = false;  ///< the before-region does more than to decide
  bool isFor = false;     ///< as the front end writes a `for` that is left
  llvm::function_ref<void()> iteration =
      nullptr; ///< emitted first in each iteration
};

/// The counter is below its limit, and no jump has left the loop, and perhaps
/// more.
Value Statements::goesOn(While &loop) {
  Value limit =
      loop.limit ? loop.limit : integer(random.between(1, 5), loop.kind);
  Value counter = variables[loop.counter].current;
  auto below =
      loop.isFor ? arith::CmpIPredicate::ult : arith::CmpIPredicate::slt;
  Value more = make<arith::CmpIOp>(below, counter, limit);
  if (!loop.leave.empty()) {
    Value calm = noneRaised(loop.leave);
    more = make<arith::AndIOp>(calm, more);
  }
  if (loop.isFor || random.chance(30))
    return more;
  if (random.chance(50)) {
    Value other = condition(1);
    return make<arith::AndIOp>(more, other);
  }
  return both(more, [&] { return condition(2); });
}

void Statements::before(While &loop, int depth) {
  Flags outer = std::exchange(flags, Flags{});
  Scope scope(*this);
  if (loop.computes && random.chance(25))
    statements(1, depth - 1);
  isFocused = true;
  for (int count = loop.computes ? random.between(1, 4) : 0; count > 0; --count)
    assign();
  isFocused = false;
  Value again = goesOn(loop);
  scf::ConditionOp::create(b, here(), again, currentOf(loop.forwarded));
  flags = outer;
}

void Statements::after(While &loop, int depth) {
  Scope scope(*this);
  bool advancesFirst = !loop.isFor && random.chance(40);
  auto advance = [&] {
    Value &counter = variables[loop.counter].current;
    counter = make<arith::AddIOp>(counter, loop.step);
  };
  // No limit is above 5.
  Value counter = variables[loop.counter].current;
  if (!loop.isFor && loop.kind == Kind::I64)
    offer(within(counter, 5));
  if (advancesFirst)
    advance();
  for (int flag : loop.leave)
    variables[size_t(flag)].current = boolean(false);
  flags.continues = -1;
  if (random.chance(20))
    flags.continues = declareFlag();
  ++loops;
  if (loop.iteration)
    loop.iteration();
  body(depth, 4);
  --loops;
  if (!advancesFirst)
    advance();
  scf::YieldOp::create(b, here(), currentOf(loop.carried));
}

/// A flag that is down.
int Statements::declareFlag() {
  unsigned flag = declare(Kind::Bool, boolean(false));
  variables[flag].isFlag = true;
  return int(flag);
}

/// What the body of `loop` gets, of what it carries.
void Statements::chooseForwarded(While &loop) {
  loop.forwarded = loop.carried;
  if (loop.isFor || !random.chance(loop.computes ? 60 : 25))
    return;
  llvm::erase_if(loop.forwarded, [&](unsigned k) {
    return !variables[k].isFlag && random.chance(20);
  });
  for (size_t k = loop.forwarded.size(); k > 1; --k)
    std::swap(loop.forwarded[k - 1], loop.forwarded[random.below(int(k))]);
}

/// Emits `loop`, whose counter and limit are known.
void Statements::emit(While &loop, int depth) {
  Flags outerFlags = flags;
  SmallVector<int> outerRaised = std::exchange(raised, {});
  if (!loop.leave.empty())
    flags.breaks = loop.leave.front();
  else
    flags = {};
  if (flags.returns >= 0)
    loop.leave.push_back(flags.returns);
  loop.carried = chooseCarried(50);
  loop.carried.insert(random.chance(50) ? loop.carried.begin()
                                        : loop.carried.end(),
                      loop.counter);
  chooseForwarded(loop);
  Values inits = currentOf(loop.carried), passed = currentOf(loop.forwarded);
  loop.op = scf::WhileOp::create(b, here(), ValueRange(passed).getTypes(),
                                 inits, nullptr, nullptr);
  std::vector<bool> assignableOutside = freeze(loop.carried);
  variables[loop.counter].isAssignable = false;
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(loop.op.getBeforeBody());
    setCurrent(loop.carried, loop.op.getBeforeArguments());
    before(loop, depth);
    b.setInsertionPointToEnd(loop.op.getAfterBody());
    setCurrent(loop.carried, inits);
    setCurrent(loop.forwarded, loop.op.getAfterArguments());
    after(loop, depth);
  }
  restore(assignableOutside);
  setCurrent(loop.carried, inits);
  setCurrent(loop.forwarded, loop.op.getResults());
  bool returns = llvm::is_contained(raised, outerFlags.returns);
  raised = outerRaised;
  flags = outerFlags;
  if (returns && flags.returns >= 0)
    raised.push_back(flags.returns);
}

void Statements::whileLoop(int depth) {
  Scope scope(*this);
  While loop;
  loop.kind = random.chance(80) ? Kind::I64 : Kind::I32;
  loop.step = integer(random.between(1, 2), loop.kind);
  if (loop.kind == Kind::I64 && random.chance(60))
    loop.limit = smallCount();
  loop.computes = random.chance(75);
  if (random.chance(30))
    loop.leave.push_back(declareFlag());
  loop.counter = declare(loop.kind, integer(random.below(2), loop.kind));
  variables[loop.counter].isFlag = true; // no statement assigns it
  emit(loop, depth);
}

/// A `for` with BREAK or RETURN, as the front end writes it.
void Statements::leavableLoop(int depth) {
  Scope scope(*this);
  Bounds bounds;
  do
    bounds = random.chance(60) ? normalBounds() : anyBounds();
  while (!bounds.lo.getType().isInteger(64));
  While loop;
  loop.isFor = true;
  loop.limit = make<ir::TripCountOp>(bounds.lo, bounds.hi, bounds.step);
  loop.step = integer(1);
  loop.leave.push_back(declareFlag());
  loop.counter = declare(Kind::I64, integer(0));
  variables[loop.counter].isFlag = true;
  auto iteration = [&] {
    Value change =
        make<arith::MulIOp>(variables[loop.counter].current, bounds.step);
    Value index = offer(make<arith::AddIOp>(change, bounds.lo));
    if (bounds.bound)
      within(index, bounds.bound);
  };
  loop.iteration = iteration;
  emit(loop, depth);
}

} // namespace costate::fuzz
