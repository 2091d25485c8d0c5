/// The reverse of `for` and `while`.

#include "autodiff/reverse/Reverser.h"
#include "autodiff/rules/Rules.h"
#include "ir/LoopPairs.h"
#include "ir/Plan.h"

using namespace mlir;

namespace costate::autodiff {

/// With what the sum of adjoints over a reversed loop starts. A loop that has
/// been cut is one sum.
Value Reverser::startOf(Value captured, Carried &carried, Sweep &sweep) {
  if (Value sum = carried.started.take(captured))
    return sum;
  if (carried.forward->hasAttr(ir::segmentAttr))
    return sweep.around->sumBefore(captured);
  return floatConstant(sweep.b, captured.getType(), 0);
}

static void copyParts(Operation *from, Operation *to) {
  for (StringRef part : {ir::rerunAttr, ir::segmentAttr, ir::restAttr})
    if (Attribute attribute = from->getAttr(part))
      to->setAttr(part, attribute);
}

/// Says which loop undoes which, if records go between them, and what the plan
/// is for those that save each iteration.
void Reverser::pairLoops() {
  int64_t pairs = 0;
  for (auto [forward, reversed, isPair] : loops) {
    if (!ir::contains<tape::PopOp>(reversed))
      continue;
    Builder b(forward->getLoc(), forward);
    bool saves = ir::contains<tape::PushOp>(forward); // not only a range in it
    if (saves && !tape::scheduleOf(forward))
      tape::ScheduleOp::create(b, Value(), Value(), Value(), Value(),
                               /*online=*/false, /*keep=*/true);
    if (!isPair)
      continue;
    auto i64 = IntegerType::get(forward->getContext(), 64);
    auto number = IntegerAttr::get(i64, pairs++);
    forward->setAttr(tape::pairAttr, number);
    reversed->setAttr(tape::pairAttr, number);
  }
}

/// Ends a reversed loop. Adjoints of values from outside of it that are still
/// in `adjoints` are summed over its iterations.
void Reverser::closeLoop(ReverseLoop &loop, Value count, Carried carried,
                         Adjoints &adjoints, Sweep &sweep) {
  size_t given = carried.receivers.size();
  for (auto [captured, sum] : loop.sumsBefore()) {
    carried.next.push_back(adjoints.take(captured));
    carried.receivers.push_back(captured);
  }
  for (Value captured : adjoints.remaining()) {
    Value sum = loop.carry(captured.getType());
    Value g = adjoints.take(captured);
    carried.next.push_back(arith::AddFOp::create(loop.b, sum, g));
    carried.receivers.push_back(captured);
  }
  for (Value captured : ArrayRef(carried.receivers).drop_front(given))
    carried.inits.push_back(startOf(captured, carried, sweep));
  scf::ForOp closed = loop.close(sweep.b, count, carried.inits, carried.next);
  copyParts(carried.forward, closed);
  loops.push_back({carried.forward, closed, carried.isPair});
  bool goesOn = carried.forward->hasAttr(ir::restAttr);
  for (auto [k, value] : llvm::enumerate(carried.receivers)) {
    if (goesOn && k >= given)
      sums.add(sweep.b, value, closed.getResult(k));
    else
      add(sweep, value, closed.getResult(k));
  }
  for (Value value : carried.started.remaining())
    add(sweep, value, carried.started.take(value));
}

/// What has come together in the loop behind `loop`, if both are one.
Adjoints Reverser::takeSums(Operation *loop) {
  return loop->hasAttr(ir::rerunAttr) ? std::exchange(sums, {}) : Adjoints();
}

LogicalResult Reverser::reverseFor(scf::ForOp loop, Results g, Sweep &sweep) {
  Adjoints started = takeSums(loop);
  Value count = sweep.scope.use(loop.getUpperBound());
  ReverseLoop reversed(loop.getLoc(), count.getType());
  Builder &b = reversed.b;
  Iteration parts{*loop.getBody(), {}, {}, nullptr};
  SmallVector<Value> inits, next, receivers;
  for (unsigned i : activeAmong(loop.getRegionIterArgs())) {
    Value argument = loop.getRegionIterArg(i);
    parts.given.push_back(argument);
    parts.yielded.push_back(loop.getYieldedValues()[i]);
    inits.push_back(zeroIfNull(sweep.b, g[i], argument.getType()));
    next.push_back(reversed.carry(argument.getType()));
    receivers.push_back(loop.getInitArgs()[i]);
  }
  if (loop->hasAttr(ir::rerunAttr)) {
    parts.again = &reversed;
    if (!loop->hasAttr(ir::segmentAttr)) // else the segment has them
      saveConstantLocals(loop, parts.block, sweep);
  }
  Value iteration = reversed.iteration(b, count);
  Scope &scope = sweep.scope.nested(parts.block, b);
  scope.provide(loop.getInductionVar(), iteration);
  Adjoints adjoints;
  Sweep inner{b, scope, adjoints};
  if (failed(reverseIteration(parts, next, inner)))
    return failure();
  closeLoop(reversed, count, {inits, next, receivers, loop, started}, adjoints,
            sweep);
  return success();
}

//===-- while -------------------------------------------------------------===//

/// Reverses the before-region: `forwarded` holds the adjoints of what it passes
/// on (active results only), and comes back as those of its own arguments.
LogicalResult Reverser::reverseBefore(scf::WhileOp loop, Value iteration,
                                      SmallVectorImpl<Value> &forwarded,
                                      Sweep &sweep) {
  Block &before = *loop.getBeforeBody();
  auto condition = cast<scf::ConditionOp>(before.getTerminator());
  Scope &scope = sweep.scope.nested(before, sweep.b);
  scope.provide(before.getArguments().back(), iteration);
  Sweep inner{sweep.b, scope, sweep.adjoints};
  for (auto [at, i] : llvm::enumerate(activeAmong(loop.getResults())))
    add(inner, condition.getArgs()[i], forwarded[at]);
  if (failed(reverseOps(operationsOf(before), inner)))
    return failure();
  forwarded.clear();
  for (unsigned i : activeAmong(loop.getBeforeArguments())) {
    Value argument = loop.getBeforeArguments()[i];
    forwarded.push_back(
        zeroIfNull(sweep.b, sweep.adjoints.take(argument), argument.getType()));
  }
  scope.endWithRecord();
  return success();
}

/// Reverses the body in iteration `iteration`: `carried` holds the adjoints of
/// the active before-arguments of the next iteration, and comes back as those
/// of the active after-arguments.
LogicalResult Reverser::reverseBody(scf::WhileOp loop, Value iteration,
                                    SmallVectorImpl<Value> &carried,
                                    Sweep &sweep, ReverseLoop *again) {
  Iteration parts{*loop.getAfterBody(), {}, {}, again};
  for (unsigned i : activeAmong(loop.getBeforeArguments()))
    parts.yielded.push_back(loop.getYieldOp().getOperand(i));
  for (unsigned i : activeAmong(loop.getAfterArguments()))
    parts.given.push_back(loop.getAfterArguments()[i]);
  Scope &scope = sweep.scope.nested(parts.block, sweep.b);
  scope.provide(parts.block.getArguments().back(), iteration);
  Sweep inner{sweep.b, scope, sweep.adjoints};
  return reverseIteration(parts, carried, inner);
}

/// The body, in every iteration but the first; in the first iteration,
/// `results` take the place of what it would compute.
LogicalResult Reverser::reverseLaterBody(scf::WhileOp loop, Value iteration,
                                         Value isLater,
                                         SmallVectorImpl<Value> &carried,
                                         ValueRange results, Sweep &sweep) {
  Block *some = new Block, *none = new Block;
  Builder inSome(loop.getLoc(), loop.getContext());
  inSome.setInsertionPointToEnd(some);
  Builder inNone(loop.getLoc(), loop.getContext());
  inNone.setInsertionPointToEnd(none);
  Adjoints adjoints;
  Sweep inner{inSome, sweep.scope, adjoints};
  if (failed(reverseBody(loop, iteration, carried, inner)))
    return failure();
  SmallVector<Value> skipped(results), captured = adjoints.remaining();
  for (Value value : captured) {
    carried.push_back(adjoints.take(value));
    skipped.push_back(floatConstant(inNone, value.getType(), 0));
  }
  scf::YieldOp::create(inSome, carried);
  scf::YieldOp::create(inNone, skipped);
  SmallVector<Value> adjointsOfIteration =
      createIf(sweep.b, isLater, TypeRange(ValueRange(carried)), some, none);
  carried.assign(adjointsOfIteration.begin(),
                 adjointsOfIteration.begin() + results.size());
  for (auto [at, value] : llvm::enumerate(captured))
    add(sweep, value, adjointsOfIteration[results.size() + at]);
  return success();
}

/// Whether the before-region only evaluates the condition, and passes active
/// arguments on as they are: then it has no reverse.
bool Reverser::passesThrough(scf::WhileOp loop) const {
  scf::ConditionOp condition = loop.getConditionOp();
  for (Operation &op : *loop.getBeforeBody())
    if (effectful.contains(&op))
      return false;
  return llvm::all_of(activeAmong(loop.getResults()), [&](unsigned i) {
    auto argument = dyn_cast<BlockArgument>(condition.getArgs()[i]);
    return argument && argument.getOwner() == loop.getBeforeBody();
  });
}

/// Adjoints of the active before-arguments, from those of the active values
/// that a before-region passes through.
SmallVector<Value> Reverser::throughBefore(scf::WhileOp loop, ValueRange g,
                                           Builder &b) {
  Adjoints adjoints;
  for (auto [at, i] : llvm::enumerate(activeAmong(loop.getResults())))
    adjoints.add(b, loop.getConditionOp().getArgs()[i], g[at]);
  SmallVector<Value> carried;
  for (unsigned i : activeAmong(loop.getBeforeArguments())) {
    Value argument = loop.getBeforeArguments()[i];
    carried.push_back(
        zeroIfNull(b, adjoints.take(argument), argument.getType()));
  }
  return carried;
}

/// A while evaluates its before-region n+1 times and its body n times. Unless
/// the before-region has no reverse, the reverse makes n+1 iterations: the body
/// (not in the first iteration), then the before-region.
LogicalResult Reverser::reverseWhile(scf::WhileOp loop, Results g,
                                     Sweep &sweep) {
  Builder &outer = sweep.b;
  bool simple = passesThrough(loop);
  Value count = sweep.scope.use(tripCounts.lookup(loop));
  SmallVector<Value> results, inits, receivers, carried;
  for (unsigned i : activeAmong(loop.getResults()))
    results.push_back(zeroIfNull(outer, g[i], loop.getResult(i).getType()));
  if (simple)
    inits = throughBefore(loop, results, outer);

  ReverseLoop reversed(loop.getLoc(), count.getType());
  Builder &b = reversed.b;
  for (unsigned i : activeAmong(loop.getBeforeArguments())) {
    Type type = loop.getBeforeArguments()[i].getType();
    carried.push_back(reversed.carry(type));
    receivers.push_back(loop.getInits()[i]);
    if (!simple)
      inits.push_back(floatConstant(outer, type, 0));
  }
  Adjoints adjoints;
  Sweep inner{b, sweep.scope, adjoints};
  if (simple) {
    Value iteration = reversed.iteration(b, count);
    bool runsAgain = loop->hasAttr(ir::rerunAttr);
    if (runsAgain)
      saveConstantLocals(loop, *loop.getAfterBody(), sweep);
    if (failed(reverseBody(loop, iteration, carried, inner,
                           runsAgain ? &reversed : nullptr)))
      return failure();
    carried = throughBefore(loop, carried, b);
  } else {
    Value isLater = arith::CmpIOp::create(
        b, arith::CmpIPredicate::ne, reversed.counter, reversed.constant(b, 0));
    Value one = reversed.constant(outer, 1);
    count = arith::AddIOp::create(outer, count, one);
    Value iteration = reversed.iteration(b, count);
    if (failed(reverseLaterBody(loop, iteration, isLater, carried, results,
                                inner)) ||
        failed(reverseBefore(loop, iteration, carried, inner)))
      return failure();
  }
  Adjoints started;
  closeLoop(reversed, count, {inits, carried, receivers, loop, started, simple},
            adjoints, sweep);
  return success();
}

} // namespace costate::autodiff
