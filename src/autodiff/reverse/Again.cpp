/// Iterations of which the forward sweep has saved only what they began with:
/// the reverse sweep runs them again, and reverses that.

#include "autodiff/cut/Online.h"
#include "autodiff/reverse/Reverser.h"
#include "autodiff/rules/Rules.h"
#include "ir/Plan.h"

using namespace mlir;

namespace costate::autodiff {

/// Reverses one iteration. `carried`: the adjoints of what it hands on, of what
/// is active; they come back as those of what it was given.
LogicalResult Reverser::reverseIteration(const Iteration &iteration,
                                         SmallVectorImpl<Value> &carried,
                                         Sweep &sweep) {
  IRMapping copies;
  SmallVector<Operation *> ops = iteration.again
                                     ? runAgain(iteration.block, copies, sweep)
                                     : operationsOf(iteration.block);
  Scope &scope = iteration.again
                     ? sweep.scope.ofCopy(*sweep.b.getBlock(), copies)
                     : sweep.scope;
  Sweep inner{sweep.b, scope, sweep.adjoints, iteration.again};
  for (auto [value, g] : llvm::zip_equal(iteration.yielded, carried))
    add(inner, copies.lookupOrDefault(value), g);
  if (failed(reverseOps(ops, inner)))
    return failure();
  carried.clear();
  for (Value value : iteration.given)
    carried.push_back(
        zeroIfNull(sweep.b, sweep.adjoints.take(value), value.getType()));
  if (iteration.again)
    sweep.b.getBlock()->walk(
        [&](Operation *op) { useForward(op, sweep.scope); });
  sweep.scope.endWithRecord();
  return success();
}

/// Copies `body` into the reverse sweep; returns the operations of the copy.
SmallVector<Operation *> Reverser::runAgain(Block &body, IRMapping &copies,
                                            Sweep &sweep) {
  SmallVector<Operation *> ops = operationsOf(body);
  llvm::erase_if(ops, [](Operation *op) {
    return op->hasAttr(aheadAttr) || isa<tape::ClaimOp>(op);
  });
  for (Value local : localsOf(body, /*changed=*/true)) {
    Builder atStart(body.getParentOp()->getLoc(), &body, body.begin());
    saveLocal(local, atStart, sweep); // the first one is popped first
  }
  for (Operation *&op : ops) {
    op = sweep.b.clone(*op, copies);
    if (op->hasAttr(ir::rerunAttr) && op->hasAttr(ir::segmentAttr))
      divided.push_back(cast<scf::ForOp>(op));
  }
  for (auto [value, copy] : copies.getValueMap()) {
    activity.copied(value, copy);
    influence.copied(value, copy);
    if (Value adjoint = adjointLocals.lookup(value))
      adjointLocals[copy] = adjoint;
  }
  for (auto [op, copy] : copies.getOperationMap()) {
    originals[copy] = originalOf(op);
    if (effectful.contains(op))
      effectful.insert(copy);
    if (Value count = tripCounts.lookup(op))
      tripCounts[copy] = copies.lookup(count);
    if (isOfPrimal(copy))
      effects.push_back(copy);
  }
  return ops;
}

static scf::ForOp segmentIn(scf::ForOp loop) {
  return *llvm::find_if(
      loop.getBody()->getOps<scf::ForOp>(),
      [](scf::ForOp part) { return part->hasAttr(ir::segmentAttr); });
}

/// A segment that runs again, itself divided, is reversed from its end: nobody
/// needs what the last one of the smaller segments would leave.
void Reverser::skipLastSegments() {
  for (scf::ForOp loop : divided) {
    scf::ForOp segment = segmentIn(loop);
    tape::ScheduleOp schedule = tape::scheduleOf(segment);
    Builder b(loop.getLoc(), schedule ? schedule : segment.getOperation());
    Value count = loop.getUpperBound(), one = indexConstant(b, 1);
    Value last = arith::SubIOp::create(b, count, one);
    Value goesOn = arith::CmpIOp::create(b, arith::CmpIPredicate::ne,
                                         loop.getInductionVar(), last);
    Value length = arith::SelectOp::create(b, goesOn, segment.getUpperBound(),
                                           indexConstant(b, 0));
    segment.setUpperBound(length);
  }
}

/// The private arrays that a loop only loads from hold the same in all of its
/// iterations.
void Reverser::saveConstantLocals(Operation *loop, Block &body, Sweep &sweep) {
  Builder behind(loop->getLoc(), loop->getContext());
  for (Value local : localsOf(body, /*changed=*/false)) {
    behind.setInsertionPointAfter(loop);
    saveLocal(local, behind, sweep);
  }
}

/// Pushes all elements at `forward`; the reverse sweep gets them back. Their
/// order does not matter as long as it is that of a tape.
void Reverser::saveLocal(Value local, Builder &forward, Sweep &sweep) {
  auto type = cast<ir::LocalType>(local.getType());
  IntegerAttr number = forward.getI64IntegerAttr(records.count++);
  scf::ForOp pushing =
      forElements(local, forward, [&](Builder &b, Value index) {
        Value value =
            ir::LocalLoadOp::create(b, type.getValueType(), local, index);
        tape::PushOp::create(b, value, number);
      });
  Value last = indexConstant(sweep.b, type.getSize() - 1);
  Value copy = localInReverse(local, sweep.scope);
  scf::ForOp popping =
      forElements(local, sweep.b, [&](Builder &b, Value index) {
        auto pop =
            tape::PopOp::create(b, TypeRange(type.getValueType()), number);
        Value place = arith::SubIOp::create(b, last, index);
        ir::LocalStoreOp::create(b, pop.getResult(0), copy, place);
      });
  loops.push_back({pushing, popping, /*isPair=*/true});
}

/// `local`, or where the reverse sweep does not see that, an array that stands
/// for it there.
Value Reverser::localInReverse(Value local, Scope &scope) {
  if (scope.sees(local))
    return local;
  Value &copy = localCopies[local];
  if (!copy) {
    OpBuilder b(pivot->getContext());
    b.setInsertionPointAfter(pivot);
    copy = ir::LocalOp::create(b, local.getLoc(), local.getType());
  }
  return copy;
}

/// Lets `op`, of the reverse sweep, use forward values as `scope` has them.
void Reverser::useForward(Operation *op, Scope &scope) {
  for (OpOperand &operand : op->getOpOperands()) {
    Value value = operand.get();
    if (scope.sees(value))
      continue;
    operand.set(isa<ir::LocalType>(value.getType())
                    ? localInReverse(value, scope)
                    : scope.use(value));
  }
}

} // namespace costate::autodiff
