#include "autodiff/cut/Cut.h"

#include "autodiff/cut/Budget.h"
#include "autodiff/cut/Counting.h"
#include "autodiff/cut/Segments.h"
#include "autodiff/cut/Tally.h"
#include "autodiff/replay/Accesses.h"
#include "autodiff/rules/Rules.h"
#include "ir/Tape.h"

using namespace mlir;

namespace costate::autodiff {
namespace {

/// Why a loop cannot run again, and where.
struct Obstacle {
  Operation *op;
  const char *reason, *wayOut;
};

/// Arrays of memory are not part of a checkpoint. What the forward sweep
/// overwrites on scratch copies of them is gone when an iteration runs again.
std::optional<Obstacle> obstacleOf(Operation *loop) {
  std::optional<Obstacle> obstacle;
  loop->walk([&](Operation *op) {
    if (obstacle)
      return;
    if (isa<ir::RangeOp>(op))
      obstacle = {op, "there is a parallel loop in it",
                  "launch that as a kernel of its own from a loop on the host, "
                  "and record the launches with a `Tape` that has `snapshots`"};
    else if (op->hasAttr(ir::replayedAttr))
      obstacle = {op,
                  "it overwrites elements of an array that it has read before",
                  "keep the state of the loop in variables or private arrays; "
                  "or make an iteration a launch, and record the launches with "
                  "a `Tape` that has `snapshots`"};
  });
  return obstacle;
}

LogicalResult refuse(Operation *loop, const Obstacle &obstacle) {
  InFlightDiagnostic error =
      loop->emitError("this loop cannot run again from checkpoints: ")
      << obstacle.reason;
  error.attachNote(obstacle.op->getLoc()) << "this is the place";
  error.attachNote() << obstacle.wayOut << "; or leave `checkpoints` out";
  return failure();
}

/// Whether each iteration certainly saves as much as any other.
bool isEven(Operation *loop) {
  return llvm::all_of(loop->getRegions(), [](Region &region) {
    return llvm::none_of(region.getOps(), [](Operation &op) {
      return isa<scf::SCFDialect>(op.getDialect()) && op.getNumRegions();
    });
  });
}

/// Whether a work item runs it once at most.
bool isOutermost(Operation *loop) {
  Operation *around = loop->getParentOp();
  while (isa<scf::IfOp>(around))
    around = around->getParentOp();
  return isa<ir::RangeOp>(around);
}

/// With no more than `checkpoints`, of which the rest has one. It is the
/// longest part: the others find on the tape what it has left free. Parts of
/// two iterations or more stay loops, whose sums are one sum.
Segments segmentsOf(Builder &b, Value iterations, int64_t checkpoints) {
  Value most = indexConstant(b, checkpoints), one = indexConstant(b, 1);
  Value floor = ir::DivOp::create(b, iterations, most);
  Value padded =
      arith::AddIOp::create(b, iterations, indexConstant(b, checkpoints - 1));
  Value ceiling = ir::DivOp::create(b, padded, most);
  Value isLong =
      arith::CmpIOp::create(b, arith::CmpIPredicate::sge, floor, most);
  Value length = arith::SelectOp::create(b, isLong, floor, ceiling);
  length = arith::MaxSIOp::create(b, length, indexConstant(b, 2));
  Value all = ir::DivOp::create(b, iterations, length);
  Value others = arith::SubIOp::create(b, all, one);
  Value count = arith::MaxSIOp::create(b, others, indexConstant(b, 0));
  Value covered = arith::MulIOp::create(b, count, length);
  Value rest = arith::SubIOp::create(b, iterations, covered);
  return {count, length, iterations, covered, rest, /*isUneven=*/false};
}

/// A segment that runs again may save more than the rest has.
void claimSegments(Parts parts, int64_t number) {
  for (Operation *part : {parts.segments, parts.segment, parts.rest})
    LoopNumbers::set(part, number);
  Builder b(parts.segment.getLoc(), parts.segment);
  Tally tally(b);
  tally.addIteration(*parts.segment.getBody(), number,
                     [](Operation *) { return false; });
  b.setInsertionPointAfter(parts.segment);
  tape::ClaimOp::create(b, tally.bytes(b));
}

/// `claims`: its number, if its segments say what they will save.
LogicalResult cut(Operation *op, int64_t checkpoints, TripCounts &tripCounts,
                  std::optional<int64_t> claims) {
  if (std::optional<Obstacle> obstacle = obstacleOf(op))
    return refuse(op, *obstacle);
  auto loop = dyn_cast<scf::ForOp>(op);
  if (!loop)
    loop = countFirst(cast<scf::WhileOp>(op), tripCounts);
  if (!loop)
    return op->emitError("this loop cannot run again from checkpoints: what "
                         "decides whether it goes on has effects")
               .attachNote()
           << "leave `checkpoints` out";
  Builder b(loop.getLoc(), loop);
  Value iterations =
      arith::MaxSIOp::create(b, loop.getUpperBound(), indexConstant(b, 0));
  Segments segments = segmentsOf(b, iterations, checkpoints);
  Parts parts = cutInto(segments, loop, tripCounts);
  parts.segments->setAttr(ir::checkpointsAttr,
                          b.getI64IntegerAttr(checkpoints));
  if (claims)
    claimSegments(parts, *claims);
  return success();
}

} // namespace

LogicalResult cutLoops(ir::KernelOp kernel, TripCounts &tripCounts, Cuts cuts,
                       Refusal &refusal) {
  refusal.code = ErrorCode::CannotReplay;
  SmallVector<std::pair<Operation *, int64_t>> loops; // inner ones first
  kernel.walk([&](Operation *op) {
    if (auto number = op->getAttrOfType<IntegerAttr>(ir::checkpointsAttr))
      loops.push_back({op, number.getInt()});
  });
  LoopNumbers numbers;
  if (cuts.measured)
    numbers.give(*kernel.getBody());
  for (auto [loop, checkpoints] : loops) {
    std::optional<Obstacle> obstacle = obstacleOf(loop);
    if (cuts.tiles && checkpoints > 1 && isOutermost(loop) &&
        !(obstacle && isEven(loop)))
      continue;
    bool isTold = !cuts.measured || isEven(loop);
    if (!isTold && !Tally::canTell(loop)) {
      loop->setAttr(ir::wholeAttr, UnitAttr::get(loop->getContext()));
      continue;
    }
    loop->removeAttr(ir::checkpointsAttr);
    std::optional<int64_t> claims;
    if (!isTold)
      claims = LoopNumbers::of(loop);
    if (checkpoints > 1 && failed(cut(loop, checkpoints, tripCounts, claims)))
      return failure();
  }
  refusal.code = ErrorCode::NotDifferentiable;
  if (cuts.byBudget)
    cutByBudget(
        kernel, numbers, tripCounts,
        [](Operation *loop) { return !obstacleOf(loop); }, cuts.measured);
  return success();
}

} // namespace costate::autodiff
