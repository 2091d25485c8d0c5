/// Whether a plan gives the reverse sweep what it needs. Nothing here knows of
/// costs, or how the plan was made.

#include "ir/Plan.h"

#include "ir/Kernel.h"
#include "ir/LoopPairs.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace costate::tape {

static bool isFloat(Value value) { return isa<FloatType>(value.getType()); }

bool isRecomputable(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || op->getNumRegions())
    return false;
  if (!isFloat(value) && llvm::any_of(op->getOperands(), isFloat))
    return false;
  bool isSteadyLoad = isa<ir::LoadOp>(op) && !op->hasAttr(ir::replayedAttr);
  return isMemoryEffectFree(op) || isSteadyLoad;
}

PlanOp planOf(Block *block) {
  auto plans = block->getOps<PlanOp>();
  return plans.empty() ? PlanOp() : *plans.begin();
}

static bool isLoop(Operation *op) { return isa<scf::ForOp, scf::WhileOp>(op); }

ScheduleOp scheduleOf(Operation *loop) {
  Operation *op = loop->getPrevNode();
  while (op && !isa<ScheduleOp>(op) && !isLoop(op))
    op = op->getPrevNode();
  return dyn_cast_or_null<ScheduleOp>(op);
}

Operation *loopOf(ScheduleOp schedule) {
  Operation *op = schedule->getNextNode();
  while (op && !isLoop(op))
    op = op->getNextNode();
  return op;
}

//===-- Values ------------------------------------------------------------===//

/// In the record of its block, or a result of its branch.
static bool isSaved(Value value, PlanOp plan) {
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    bool keeps = isa<PushOp>(user) || user == plan->getBlock()->getTerminator();
    return keeps && user->getBlock() == plan->getBlock();
  });
}

/// The number of the iteration, which is the first argument of the body of a
/// `for`, and the last one of a region of a `while`.
static bool isCounter(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument)
    return false;
  Block *block = argument.getOwner();
  if (isa<scf::ForOp>(block->getParentOp()))
    return argument.getArgNumber() == 0;
  return isa<scf::WhileOp>(block->getParentOp()) &&
         argument == block->getArguments().back();
}

/// Whether the reverse sweep has `value`: from the plan of its block, or in
/// scope, where there is none.
static bool gives(Value value) {
  if (matchPattern(value, m_Constant()) ||
      isa<ir::ArrayType, ir::LocalType>(value.getType()))
    return true;
  PlanOp plan = planOf(value.getParentBlock());
  return !plan || llvm::is_contained(plan->getOperands(), value);
}

/// Whether iterations of a loop around `block` run again.
static bool runsAgain(Block *block) {
  for (Operation *op = block->getParentOp(); op && !isa<ir::KernelOp>(op);
       op = op->getParentOp())
    if (ScheduleOp schedule = scheduleOf(op); schedule && !schedule.getKeep())
      return true;
  return false;
}

LogicalResult PlanOp::verify() {
  auto refuse = [&](Value value, const char *why) {
    InFlightDiagnostic error = emitOpError(why);
    error.attachNote(value.getLoc()) << "the value is this one";
    return error;
  };
  for (Value value : (*this)->getOperands())
    if (value.getParentBlock() != (*this)->getBlock())
      return refuse(value, "lists a value of another block");
  for (Value value : getSaved())
    if (!isSaved(value, *this))
      return refuse(value, "says of a value that it is saved, which it is not");
  for (Value value : getInverted())
    if (!isCounter(value))
      return refuse(value, "inverts a value that does not count iterations");
  for (Value value : llvm::concat<Value>(getRecomputed(), getLoaded())) {
    if (!isRecomputable(value))
      return refuse(value, "recomputes a value that cannot be found again");
    for (Value operand : value.getDefiningOp()->getOperands())
      if (!gives(operand))
        return refuse(value,
                      "recomputes a value from one that it does not give");
  }
  for (Value value : getLoaded())
    if (!isa<ir::LoadOp>(value.getDefiningOp()))
      return refuse(value, "loads a value that does not come from memory");
  for (Value value : getBehind())
    if (!runsAgain(value.getParentBlock()))
      return refuse(value, "puts a value behind a checkpoint where no loop "
                           "runs again");
  return success();
}

//===-- Loops -------------------------------------------------------------===//

/// The next loop in the block of `op` that carries `attribute`.
static scf::ForOp nextWith(StringRef attribute, Operation *op) {
  while ((op = op->getNextNode()))
    if (auto loop = dyn_cast<scf::ForOp>(op); loop && op->hasAttr(attribute))
      return loop;
  return {};
}

/// A loop that runs only to be reversed leaves out what its last iteration
/// would hand on: where `bound` is one number or 0, that number.
static Value withoutSkips(Value bound) {
  auto choice = bound.getDefiningOp<arith::SelectOp>();
  bool skips = choice && matchPattern(choice.getFalseValue(), m_Zero());
  return skips ? choice.getTrueValue() : bound;
}

/// Of a loop, or of one that has become a loop over its segments.
static Value iterationsOf(scf::ForOp loop) {
  ScheduleOp schedule = scheduleOf(loop);
  return schedule && schedule.getIterations()
             ? schedule.getIterations()
             : withoutSkips(loop.getUpperBound());
}

/// Two values that are certainly equal.
static bool areEqual(Value a, Value b) {
  APInt x, y;
  return a == b || (matchPattern(a, m_ConstantInt(&x)) &&
                    matchPattern(b, m_ConstantInt(&y)) && x == y);
}

/// Whether `value` is `Op` of two values, of which `isFirst` and `isSecond`
/// hold.
template <class Op>
static bool isOf(Value value, function_ref<bool(Value)> isFirst,
                 function_ref<bool(Value)> isSecond) {
  auto op = value.getDefiningOp<Op>();
  return op && isFirst(op.getLhs()) && isSecond(op.getRhs());
}

static auto is(Value value) {
  return [value](Value other) { return areEqual(other, value); };
}

/// Whether a segment has `length` iterations, and the last ones what is left of
/// all that come before the rest.
static bool hasLength(scf::ForOp segments, Value bound, ScheduleOp schedule) {
  Value length = schedule.getLength(), all = schedule.getIterations();
  Value rest = schedule.getRest();
  auto isWhole = [&](Value covered) {
    return rest &&
           isOf<arith::MulIOp>(covered, is(schedule.getCount()), is(length));
  };
  if (areEqual(bound, length))
    return rest && isOf<arith::SubIOp>(rest, is(all), isWhole);
  auto isFirst = [&](Value first) {
    return isOf<arith::MulIOp>(first, is(segments.getInductionVar()),
                               is(length));
  };
  auto isCovered = [&](Value covered) {
    return rest ? isOf<arith::SubIOp>(covered, is(all), is(rest))
                : areEqual(covered, all);
  };
  auto isDifference = [&](Value left) {
    return isOf<arith::SubIOp>(left, isCovered, isFirst);
  };
  auto isLeft = [&](Value left) {
    return isOf<arith::MaxSIOp>(
        left, isDifference, [](Value v) { return matchPattern(v, m_Zero()); });
  };
  return isOf<arith::MinSIOp>(bound, is(length), isLeft);
}

static LogicalResult verifySegments(ScheduleOp schedule) {
  auto loop = dyn_cast<scf::ForOp>(loopOf(schedule));
  if (!loop ||
      !areEqual(withoutSkips(loop.getUpperBound()), schedule.getCount()))
    return schedule.emitOpError("has another number of segments than the loop "
                                "over these");
  auto parts = llvm::make_filter_range(
      loop.getBody()->getOps<scf::ForOp>(),
      [](scf::ForOp part) { return part->hasAttr(ir::segmentAttr); });
  if (!llvm::hasSingleElement(parts))
    return schedule.emitOpError("is about a loop with no segment in it, or "
                                "several");
  scf::ForOp segment = *parts.begin();
  if (!hasLength(loop, iterationsOf(segment), schedule))
    return schedule.emitOpError("has segments that do not make up the "
                                "iterations in front of the rest");
  if (!schedule.getRest())
    return success();
  scf::ForOp rest = nextWith(ir::restAttr, loop);
  auto isOfLoop = [&](Value init) { return init.getDefiningOp() == loop; };
  if (!rest || !areEqual(rest.getUpperBound(), schedule.getRest()) ||
      !llvm::all_of(rest.getInitArgs(), isOfLoop))
    return schedule.emitOpError("has a rest that does not go on behind the "
                                "segments");
  return success();
}

//===-- What runs again ---------------------------------------------------===//

namespace {

/// Whether an iteration that runs again finds what it began with, as far as
/// that leads to values behind the checkpoint.
class Again {
public:
  explicit Again(Operation *loop) : loop(loop), body(bodyOf(loop)) {}

  LogicalResult verify() {
    body->walk([&](PlanOp plan) {
      for (Value value : plan.getBehind())
        need(value);
    });
    for (unsigned next = 0; next < needed.size(); ++next) {
      WalkResult result = needed[next]->walk(
          [&](Operation *op) { return WalkResult(verify(op)); });
      if (result.wasInterrupted())
        return failure();
    }
    return success();
  }

private:
  /// An iteration runs whole operations of its block.
  void need(Value value) {
    Operation *op = value.getDefiningOp();
    need(op ? op : value.getParentBlock()->getParentOp());
  }
  void need(Operation *op) {
    if (Operation *whole = body->findAncestorOpInBlock(*op))
      needed.insert(whole);
  }

  LogicalResult verify(Operation *op) {
    if (isa<PlanOp, ScheduleOp>(op))
      return success();
    if (isa<PushOp>(op))
      return op->emitOpError("saves in an iteration that runs again");
    if (op->hasAttr(ir::replayedAttr))
      return op->emitOpError("runs again on memory that it has overwritten");
    for (Value operand : op->getOperands()) {
      if (!isFound(operand))
        return op->emitOpError("runs again, and nobody gives what it takes");
      if (!isSaved(operand))
        need(operand);
    }
    auto load = dyn_cast<ir::LocalLoadOp>(op);
    if (load && !isFound(load))
      return op->emitOpError("runs again, and nobody gives what the private "
                             "array held");
    return success();
  }

  bool isInside(Value value) const {
    return loop->isAncestor(value.getParentBlock()->getParentOp());
  }

  bool isSaved(Value value) const {
    PlanOp plan = planOf(body);
    return plan && llvm::is_contained(plan.getSaved(), value);
  }

  bool isFound(Value operand) const {
    bool begins =
        isa<BlockArgument>(operand) && operand.getParentBlock() == body;
    return begins ? planOf(body) && gives(operand)
                  : isInside(operand) || gives(operand);
  }

  /// What a private array held when the iteration began, or holds throughout
  /// the loop; smaller segments find that as the segment around them does.
  bool isFound(ir::LocalLoadOp load) {
    Value local = load.getLocal();
    bool changes = false;
    for (Operation *user : local.getUsers())
      if (ir::writesLocal(user) && loop->isAncestor(user)) {
        changes = true;
        need(user);
      }
    if (isInside(local) || (!changes && loop->hasAttr(ir::segmentAttr)))
      return true;
    return llvm::any_of(local.getUsers(), [&](Operation *user) {
      Operation *around = user->getParentOp();
      bool saves = isa<scf::ForOp>(around) &&
                   llvm::any_of(user->getUsers(), llvm::IsaPred<PushOp>);
      return saves && (changes ? around->getBlock() == body
                               : around->getBlock() == loop->getBlock() &&
                                     loop->isBeforeInBlock(around));
    });
  }

  Operation *loop;
  Block *body;
  llvm::SetVector<Operation *> needed;
};

} // namespace

LogicalResult ScheduleOp::verify() {
  Operation *loop = loopOf(*this);
  if (!loop)
    return emitOpError("does not stand in front of a loop");
  if (getKeep() + getOnline() + bool(getCount()) != 1)
    return emitOpError("says either `keep`, or `segments`, or `online`");
  if (bool(getCount()) != bool(getIterations()))
    return emitOpError("says into what it divides how many iterations");
  if (getKeep() == loop->hasAttr(ir::rerunAttr))
    return emitOpError("keeps a loop that runs again, or the other way round");
  if (getKeep() && !ir::contains<PushOp>(loop))
    return emitOpError("keeps a loop that saves nothing");
  if (getCount() && failed(verifySegments(*this)))
    return failure();
  bool isReversed = !getKeep() && loop->hasAttr(pairAttr);
  return isReversed ? Again(loop).verify() : success();
}

//===-- All of a gradient -------------------------------------------------===//

LogicalResult verifyPlans(Operation *root) {
  WalkResult result = root->walk([](Operation *op) {
    if (auto plan = dyn_cast<PlanOp>(op))
      return WalkResult(plan.verify());
    if (auto schedule = dyn_cast<ScheduleOp>(op))
      return WalkResult(schedule.verify());
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    return failure();
  LoopPairs pairs(root);
  for (auto &[number, pair] : pairs.all())
    if (ir::contains<PushOp>(pair.forward) && !scheduleOf(pair.forward))
      return pair.forward->emitOpError("is undone by another loop, and no plan "
                                       "says how it is saved");
  return success();
}

void erasePlans(Operation *root) {
  SmallVector<Operation *> plans;
  root->walk([&](Operation *op) {
    if (isa<PlanOp, ScheduleOp>(op))
      plans.push_back(op);
  });
  for (Operation *plan : plans)
    plan->erase();
}

} // namespace costate::tape
