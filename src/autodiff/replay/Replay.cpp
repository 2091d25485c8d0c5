#include "autodiff/replay/Replay.h"

#include "autodiff/replay/Owners.h"
#include "ir/Operations.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace costate::autodiff {

/// Whether `value` is never negative: an index of a range, or of a loop that
/// starts with no less than 0.
static bool isCount(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument)
    return value.getDefiningOp<ir::ExtentOp>() != nullptr;
  Operation *owner = argument.getOwner()->getParentOp();
  if (isa<ir::RangeOp>(owner))
    return true;
  auto loop = dyn_cast<scf::ForOp>(owner);
  APInt first;
  return loop && value == loop.getInductionVar() &&
         matchPattern(loop.getLowerBound(), m_ConstantInt(&first)) &&
         !first.isNegative();
}

static bool areApart(const Affine &a, const Affine &b,
                     llvm::function_ref<bool(Value)> varies,
                     llvm::function_ref<bool(Value)> isCount) {
  return isAbove(a, b, varies, isCount) || isAbove(b, a, varies, isCount);
}

bool certainlyApart(const ArrayAccess &a, const ArrayAccess &b,
                    llvm::function_ref<bool(Value)> isFixed) {
  auto varies = [&](Value symbol) { return !isFixed(symbol); };
  for (auto [left, right] : llvm::zip(a.indices, b.indices)) {
    Affine l = Affine::of(left), r = Affine::of(right);
    if (areApart(l, r, varies, isCount) || differInParity(left, right, isFixed))
      return true;
    auto fixed = [&](auto &term) { return isFixed(term.first); };
    if (!llvm::all_of(l.terms, fixed) || !llvm::all_of(r.terms, fixed))
      continue;
    std::optional<int64_t> distance = constantDifference(l, r);
    if (distance && *distance != 0)
      return true;
  }
  return false;
}

namespace {

/// When two accesses that stand in common loops meet on one element.
struct Meeting {
  enum Kind { Never, Always, After, Unknown } kind;
  int64_t iterations = 0; ///< After: this many iterations after the first
};

/// Combines what two dimensions say: elements are equal if all indices are.
Meeting both(Meeting a, Meeting b) {
  if (a.kind == Meeting::Never || b.kind == Meeting::Never)
    return {Meeting::Never};
  if (a.kind == Meeting::After && b.kind == Meeting::After)
    return a.iterations == b.iterations ? a : Meeting{Meeting::Never};
  if (a.kind == Meeting::After)
    return a;
  if (b.kind == Meeting::After)
    return b;
  return a.kind == Meeting::Unknown ? a : b;
}

/// The two ops on the paths of `a` and `b` that stand in one block, or in two
/// regions of one op.
std::pair<Operation *, Operation *> siblings(Operation *a, Operation *b) {
  SmallVector<Operation *> up;
  for (Operation *op = a; op; op = op->getParentOp())
    up.push_back(op);
  for (Operation *other = b; other; other = other->getParentOp()) {
    for (auto [depth, op] : llvm::enumerate(up))
      if (op->getParentOp() == other->getParentOp())
        return {op, other};
  }
  llvm_unreachable("ops of one kernel have a common ancestor");
}

/// The op directly in a block of serial code around ranges that contains `op`;
/// its range, if it is in one.
Operation *partOf(Operation *op) {
  if (auto range = op->getParentOfType<ir::RangeOp>())
    return range;
  while (!isa<ir::KernelOp>(op->getParentOp()) &&
         !holdsRanges(op->getParentOp()))
    op = op->getParentOp();
  return op;
}

/// Serial statements between two ranges are one part.
bool inOneRun(Operation *a, Operation *b) {
  if (a == b)
    return true;
  if (a->getBlock() != b->getBlock() || isOwnPart(a) || isOwnPart(b))
    return false;
  if (b->isBeforeInBlock(a))
    std::swap(a, b);
  for (Operation *op = a; op != b; op = op->getNextNode())
    if (isOwnPart(op))
      return false;
  return true;
}

/// Fixed within one work item, too.
bool isWorkItemValue(Value value) {
  return isSerialValue(value) ||
         isa<ir::RangeOp>(value.getParentBlock()->getParentOp());
}

} // namespace

Operation *statementOf(Operation *op) {
  while (!isa<ir::KernelOp>(op->getParentOp()))
    op = op->getParentOp();
  return op;
}

bool samePart(Operation *a, Operation *b) {
  return inOneRun(partOf(a), partOf(b));
}

bool isFixedInPart(Value value) {
  Operation *owner = value.getParentBlock()->getParentOp();
  return isa<ir::KernelOp>(owner) || holdsRanges(owner);
}

unsigned partNumber(Operation *op) {
  Operation *part = statementOf(op);
  unsigned parts = 0;
  for (Operation &other : *part->getBlock()) {
    if (&other == part)
      break;
    parts += isOwnPart(&other) && !isOwnerCheck(&other);
  }
  return 2 * parts + isOwnPart(part);
}

namespace {

/// Two accesses to one array.
class Succession {
public:
  Succession(const ArrayAccess &first, const ArrayAccess &second)
      : first(first), second(second) {
    std::tie(firstAt, secondAt) = siblings(first.op, second.op);
    for (Operation *op = firstAt->getParentOp(); !isa<ir::KernelOp>(op);
         op = op->getParentOp())
      if (isa<scf::ForOp, scf::WhileOp>(op))
        loops.push_back(op);
  }

  /// Whether `second` may access an element that `first` has accessed, later
  /// in the same work item or in a part that runs later. Loops are looked at
  /// from the outside in: either the element is met in the same iteration, and
  /// the next loop decides, or the number of iterations between the two does.
  bool mayFollow() {
    for (; !loops.empty(); loops.pop_back()) {
      if (isOver())
        return false;
      Value counter = counterOf(loops.back());
      Meeting meeting = meetingIn(counter);
      if (meeting.kind == Meeting::Never)
        return false;
      if (meeting.kind != Meeting::After)
        return true;
      if (meeting.iterations != 0)
        return meeting.iterations > 0;
    }
    return !isOver() && follows() && meetingIn({}).kind != Meeting::Never;
  }

private:
  /// Whether the first reads after the part in which both stand; of loops
  /// around parts only those are left in which the two may be in one iteration.
  bool isOver() const {
    return readsAfterPart(first.op) &&
           (loops.empty() || !holdsRanges(loops.back())) &&
           samePart(first.op, second.op);
  }

  /// Whether the second runs after the first within one iteration of the
  /// innermost common loop.
  bool follows() const {
    if (firstAt->getBlock() == secondAt->getBlock())
      return firstAt->isBeforeInBlock(secondAt);
    if (!isa<scf::WhileOp>(firstAt->getParentOp()))
      return false;
    return firstAt->getParentRegion()->getRegionNumber() <
           secondAt->getParentRegion()->getRegionNumber();
  }

  /// The counter of a loop in the form of normalizeLoops and countIterations.
  static Value counterOf(Operation *loop) {
    if (auto forLoop = dyn_cast<scf::ForOp>(loop))
      return forLoop.getInductionVar();
    return cast<scf::WhileOp>(loop).getAfterArguments().back();
  }

  /// Whether `symbol` may differ where the elements meet: in loops that are
  /// done with it is the same iteration, and so the same value.
  bool varies(Value symbol) const {
    return llvm::any_of(loops, [&](Operation *loop) {
      return loop->isAncestor(symbol.getParentBlock()->getParentOp());
    });
  }

  Meeting meetingIn(Value counter) const {
    Meeting meeting{Meeting::Always};
    auto isFixed = [&](Value symbol) { return !varies(symbol); };
    for (auto [a, b] : llvm::zip(first.indices, second.indices)) {
      if (differInParity(a, b, isFixed))
        return {Meeting::Never};
      meeting = both(meeting, meetingOf(Affine::of(a), Affine::of(b), counter));
    }
    return meeting;
  }

  static bool isCountOrIteration(Value value) {
    auto loop = dyn_cast<scf::WhileOp>(value.getParentBlock()->getParentOp());
    return isCount(value) || (loop && value == counterOf(loop));
  }

  Meeting meetingOf(const Affine &a, const Affine &b, Value counter) const {
    if (areApart(
            a, b, [&](Value symbol) { return varies(symbol); },
            isCountOrIteration))
      return {Meeting::Never};
    for (const Affine *form : {&a, &b})
      for (auto [symbol, coefficient] : form->terms)
        if (symbol != counter &&
            (a.coefficient(symbol) != b.coefficient(symbol) || varies(symbol)))
          return {Meeting::Unknown};
    int64_t slope = counter ? a.coefficient(counter) : 0;
    int64_t distance = b.constant - a.constant;
    if (counter && slope != b.coefficient(counter))
      return {Meeting::Unknown};
    if (slope == 0)
      return {distance == 0 ? Meeting::Always : Meeting::Never};
    if (distance % slope != 0)
      return {Meeting::Never};
    return {Meeting::After, -distance / slope};
  }

  const ArrayAccess &first, &second;
  Operation *firstAt, *secondAt;
  /// Around both, innermost first; those are gone that are done with.
  SmallVector<Operation *> loops;
};

} // namespace

InFlightDiagnostic emitOverwritten(const Overwrite &overwrite) {
  InFlightDiagnostic error =
      emitError(overwrite.read)
      << "the gradient needs the value read here from " << overwrite.array
      << ", but it is overwritten before the kernel ends";
  error.attachNote(overwrite.write) << "it may be overwritten here";
  return error;
}

void refuse(const Overwrite &overwrite) {
  InFlightDiagnostic error = emitOverwritten(overwrite);
  error.attachNote()
      << "record the launch with a `Tape`, which keeps that value; or call "
         "`grad(initial_state, ...)` while the arrays hold what they held "
         "before "
         "the launch; or keep every version: give the array a time index and "
         "write element t+1 from element t, or write the result to another "
         "array";
}

Writes writesOf(ir::KernelOp kernel) {
  Writes writes;
  for (const ArrayAccess &access : accessesIn(kernel))
    if (access.isWrite() && !ir::isDirectory(access.array))
      writes[access.array].push_back(access);
  return writes;
}

std::optional<Overwrite> findOverwrite(const Writes &writes, ir::LoadOp load) {
  ArrayAccess read = *accessOf(load);
  for (const ArrayAccess &write : writes.lookup(read.array))
    if (Succession(read, write).mayFollow())
      return Overwrite{load.getLoc(), write.op->getLoc(),
                       ir::argumentText(cast<BlockArgument>(read.array))};
  return std::nullopt;
}

bool mayWriteAgain(const Writes &writes, Value array) {
  SmallVector<ArrayAccess> all = writes.lookup(array);
  return llvm::any_of(all, [&](const ArrayAccess &first) {
    return llvm::any_of(all, [&](const ArrayAccess &second) {
      return Succession(first, second).mayFollow();
    });
  });
}

bool mayFollowOwnWrite(const Writes &writes, ir::LoadOp load) {
  ArrayAccess read = *accessOf(load);
  return llvm::any_of(writes.lookup(read.array), [&](const ArrayAccess &write) {
    return inOneRun(statementOf(write.op), statementOf(load)) &&
           Succession(write, read).mayFollow();
  });
}

bool readsOwnStore(const Writes &writes, ir::LoadOp load) {
  ArrayAccess read = *accessOf(load);
  return llvm::any_of(writes.lookup(read.array), [&](const ArrayAccess &write) {
    bool same = isa<ir::RangeOp>(statementOf(load)) &&
                statementOf(write.op) == statementOf(load);
    return !certainlyApart(read, write, same ? isWorkItemValue : isSerialValue);
  });
}

static LogicalResult checkLateAdditions(ir::RangeOp range) {
  SmallVector<ArrayAccess> accesses = accessesIn(range);
  Writes late;
  for (const ArrayAccess &access : accesses)
    if (auto update = dyn_cast<ir::AtomicAddOp>(access.op))
      if (!update.getExclusive() && isa<FloatType>(update.getValue().getType()))
        late[access.array].push_back(access);
  for (const ArrayAccess &access : accesses)
    if (auto take = dyn_cast<ir::AtomicTakeOp>(access.op);
        take && !take.getExclusive()) {
      take.emitError("several work items may give the element this value, and "
                     "which of them gets the gradient is left to chance; this "
                     "kernel is deterministic")
              .attachNote()
          << "write it in serial code, or make the kernel without "
             "`deterministic`";
      return failure();
    }
  auto isFixed = [&](Value symbol) { return isUniform(symbol, range); };
  for (const ArrayAccess &access : accesses) {
    SmallVector<ArrayAccess> updates = late.lookup(access.array);
    auto *update = llvm::find_if(updates, [&](const ArrayAccess &update) {
      return !certainlyApart(access, update, isFixed);
    });
    if (update == updates.end() || isa<ir::AtomicAddOp>(access.op))
      continue;
    InFlightDiagnostic error = access.op->emitError(
        "a deterministic range makes its additions at its end, but this "
        "element, or its adjoint, may be added to before");
    error.attachNote(update->op->getLoc()) << "the addition is made here";
    error.attachNote() << "use elements whose index is the index of the range, "
                          "or a constant multiple of it plus a constant; or do "
                          "one of the two in a range of its own";
    return failure();
  }
  return success();
}

LogicalResult checkLateAdditions(ir::KernelOp kernel) {
  return ir::forAll<ir::RangeOp>(
      kernel, [](ir::RangeOp range) { return checkLateAdditions(range); });
}

} // namespace costate::autodiff
