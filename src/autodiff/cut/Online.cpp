#include "autodiff/cut/Online.h"

#include "autodiff/cut/Counting.h"
#include "autodiff/rules/Rules.h"
#include "ir/Operations.h"
#include "ir/Plan.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace costate::autodiff {
namespace {

/// One segment of `loop`: a copy that stops after `length` iterations. Its
/// results: what `loop` passes on, the number of iterations so far last; what
/// it carries; the iterations of this segment; whether there are more.
class Ahead {
public:
  Ahead(scf::WhileOp loop, ValueRange carried, Value first, Value length,
        OnlineLimits limits, Builder &b)
      : loop(loop), first(first), length(length), limits(limits),
        carried(carried.size()), passed(loop.getNumResults()) {
    SmallVector<Value> inits(carried);
    inits.push_back(indexConstant(b, 0));
    SmallVector<Type> types(loop.getResultTypes());
    llvm::append_range(types, TypeRange(ValueRange(inits)));
    types.push_back(b.getI1Type());
    op = scf::WhileOp::create(
        b, types, inits,
        [&](OpBuilder &inside, Location loc, ValueRange arguments) {
          Builder before(loc, inside);
          decide(before, arguments);
        },
        [&](OpBuilder &inside, Location loc, ValueRange arguments) {
          Builder after(loc, inside);
          iterate(after, arguments);
        });
    op->setAttr(countsAttr, b.getUnitAttr());
    op->setAttr(aheadAttr, b.getUnitAttr());
  }

  scf::WhileOp get() { return op; }
  Value soFar() { return op.getResult(passed - 1); }
  Value iterations() { return op.getResult(passed + carried); }
  Value hasMore() { return op.getResults().back(); }

private:
  void decide(Builder &b, ValueRange arguments) {
    IRMapping copies;
    SmallVector<Value> all(arguments.drop_back());
    all.push_back(arith::AddIOp::create(b, first, arguments.back()));
    copies.map(loop.getBeforeArguments(), all);
    for (Operation &op : loop.getBeforeBody()->without_terminator())
      b.clone(op, copies);
    scf::ConditionOp condition = loop.getConditionOp();
    SmallVector<Value> results =
        llvm::map_to_vector(condition.getArgs(), [&](Value value) {
          return copies.lookupOrDefault(value);
        });
    Value more = copies.lookupOrDefault(condition.getCondition());
    Value isShort = arith::CmpIOp::create(b, arith::CmpIPredicate::slt,
                                          arguments.back(), length);
    Value goesOn = arith::AndIOp::create(b, more, isShort);
    if (limits.hasRoom)
      goesOn = arith::AndIOp::create(b, goesOn, limits.hasRoom(b));
    llvm::append_range(results, arguments);
    results.push_back(more);
    scf::ConditionOp::create(b, goesOn, results);
  }

  void iterate(Builder &b, ValueRange arguments) {
    IRMapping copies;
    copies.map(loop.getAfterArguments(), arguments.take_front(passed));
    for (Operation &op : loop.getAfterBody()->without_terminator())
      b.clone(op, copies);
    SmallVector<Value> next;
    for (Value value : loop.getYieldOp().getOperands().drop_back())
      next.push_back(copies.lookupOrDefault(value));
    Value number = arguments[passed + carried], one = indexConstant(b, 1);
    next.push_back(arith::AddIOp::create(b, number, one));
    scf::YieldOp::create(b, next);
  }

  scf::WhileOp loop, op;
  Value first, length;
  OnlineLimits limits;
  size_t carried, passed;
};

} // namespace

OnlineParts cutOnline(scf::WhileOp loop, TripCounts &tripCounts,
                      OnlineLimits limits) {
  if (!onlyComputes(loop))
    return {};
  Builder b(loop.getLoc(), loop);
  OnlineParts parts;
  size_t carried = loop.getInits().size() - 1; // but for the number
  SmallVector<Value> inits(loop.getInits().drop_back());
  Value zero = indexConstant(b, 0);
  Value yes = arith::ConstantOp::create(b, b.getBoolAttr(true));
  llvm::append_range(inits, ArrayRef<Value>{zero, yes, zero});
  tape::ScheduleOp::create(b, Value(), Value(), Value(), Value(),
                           /*online=*/true, /*keep=*/false);
  parts.segments = scf::WhileOp::create(
      b, TypeRange(ValueRange(inits)), inits,
      [&](OpBuilder &before, Location loc, ValueRange arguments) {
        scf::ConditionOp::create(before, loc, arguments[carried + 1],
                                 arguments);
      },
      [&](OpBuilder &after, Location loc, ValueRange arguments) {
        Builder inside(loc, after);
        Value first = arguments[carried], number = arguments.back();
        Value length = limits.lengthOf(inside, number);
        ValueRange state = arguments.take_front(carried);
        Ahead ahead(loop, state, first, length, limits, inside);
        parts.ahead = ahead.get();
        parts.segment =
            takeBody(loop, ahead.iterations(), first, state, inside);
        SmallVector<Value> next(parts.segment.getResults());
        Value one = indexConstant(inside, 1);
        llvm::append_range(
            next, ArrayRef<Value>{ahead.soFar(), ahead.hasMore(),
                                  arith::AddIOp::create(inside, number, one)});
        scf::YieldOp::create(inside, next);
      });
  parts.segments->setAttr(ir::rerunAttr, b.getUnitAttr());
  parts.segment->setAttr(ir::segmentAttr, b.getUnitAttr());
  tripCounts[parts.segments] = parts.segments.getResults().back();
  ValueRange last = parts.segments.getResults().take_front(carried + 1);
  loop.replaceAllUsesWith(evaluateBefore(loop, last, b));
  tripCounts.erase(loop);
  loop.erase();
  return parts;
}

scf::WhileOp openLoop(scf::ForOp loop, TripCounts &tripCounts) {
  Builder b(loop.getLoc(), loop);
  SmallVector<Value> inits(loop.getInitArgs());
  inits.push_back(loop.getLowerBound());
  auto open = scf::WhileOp::create(
      b, TypeRange(ValueRange(inits)), inits,
      [&](OpBuilder &before, Location loc, ValueRange arguments) {
        Value more =
            arith::CmpIOp::create(before, loc, arith::CmpIPredicate::slt,
                                  arguments.back(), loop.getUpperBound());
        scf::ConditionOp::create(before, loc, more, arguments);
      },
      [&](OpBuilder &, Location, ValueRange arguments) {
        loop.getInductionVar().replaceAllUsesWith(arguments.back());
        for (auto [before, now] :
             llvm::zip(loop.getRegionIterArgs(), arguments))
          before.replaceAllUsesWith(now);
      });
  Block &body = *open.getAfterBody();
  body.getOperations().splice(body.end(), loop.getBody()->getOperations());
  scf::YieldOp yield = open.getYieldOp();
  Builder atEnd(loop.getLoc(), yield);
  Value next = arith::AddIOp::create(atEnd, body.getArguments().back(),
                                     indexConstant(atEnd, 1));
  yield.getResultsMutable().append(next);
  open->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
  tripCounts[open] = open.getResults().back();
  loop.replaceAllUsesWith(open.getResults().drop_back());
  loop.erase();
  return open;
}

/// What runs ahead is not run again for its results.
static void forgetBehind(Operation *segment) {
  tape::PlanOp plan = tape::planOf(segment->getBlock());
  if (!plan)
    return;
  MutableOperandRange behind = plan.getBehindMutable();
  for (unsigned k = behind.size(); k-- > 0;)
    if (behind[k].get().getDefiningOp() == segment)
      behind.erase(k);
}

void keepAhead(Operation *root) {
  auto loops = ir::all<Operation *>(
      root, [](Operation *op) { return op->hasAttr(aheadAttr); });
  // Those in segments are behind the loops ahead of these.
  for (Operation *ahead : llvm::reverse(loops)) {
    Operation *segment = ahead->getNextNode();
    while (!segment->hasAttr(ir::segmentAttr))
      segment = segment->getNextNode();
    if (tape::ScheduleOp schedule = tape::scheduleOf(segment))
      schedule.erase();
    forgetBehind(segment);
    size_t carried = segment->getNumResults();
    segment->replaceAllUsesWith(
        ahead->getResults().drop_back(2).take_back(carried));
    segment->erase();
    ahead->removeAttr(aheadAttr);
  }
}

} // namespace costate::autodiff
