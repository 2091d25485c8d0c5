#include "autodiff/cut/Segments.h"

#include "autodiff/rules/Rules.h"
#include "ir/Kernel.h"
#include "ir/Tape.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace costate::autodiff {

namespace {

/// Cuts one loop with the bounds 0 and a trip count, and the step 1.
class Cutter {
public:
  Cutter(scf::ForOp loop, TripCounts &tripCounts)
      : loop(loop), tripCounts(tripCounts), b(loop.getLoc(), loop) {}

  Parts run(const Segments &segments) {
    scf::ForOp outer = createOuter(segments);
    scf::ForOp rest = create(segments.rest, outer.getResults());
    rest->setAttr(ir::restAttr, b.getUnitAttr());
    copyBody(rest, segments.covered);
    scf::ForOp segment = fill(outer, segments);
    replaceBy(rest);
    return {outer, segment, rest};
  }

  scf::ForOp divide(const Segments &segments) {
    scf::ForOp outer = createOuter(segments);
    outer->setAttr(ir::segmentAttr, b.getUnitAttr());
    scf::ForOp segment = fill(outer, segments);
    replaceBy(outer);
    return segment;
  }

private:
  scf::ForOp createOuter(const Segments &segments) {
    scf::ForOp outer = create(segments.count, loop.getInitArgs());
    outer->setAttr(ir::rerunAttr, b.getUnitAttr());
    Builder before(loop.getLoc(), outer);
    tape::ScheduleOp::create(before, segments.count, segments.length,
                             segments.rest, segments.iterations,
                             /*online=*/false, /*keep=*/false);
    return outer;
  }

  /// Moves the body into the loop over one segment, in `outer`.
  scf::ForOp fill(scf::ForOp outer, const Segments &segments) {
    b.setInsertionPointToStart(outer.getBody());
    Value first =
        arith::MulIOp::create(b, outer.getInductionVar(), segments.length);
    scf::ForOp segment =
        create(lengthOf(segments, first), outer.getRegionIterArgs());
    segment->setAttr(ir::segmentAttr, b.getUnitAttr());
    scf::YieldOp::create(b, segment.getResults());
    moveBody(segment, first);
    return segment;
  }

  Value lengthOf(const Segments &segments, Value first) {
    if (!segments.isUneven)
      return segments.length;
    Value left = arith::SubIOp::create(b, segments.covered, first);
    left = arith::MaxSIOp::create(b, left, indexConstant(b, 0));
    return arith::MinSIOp::create(b, segments.length, left);
  }

  void replaceBy(scf::ForOp last) {
    loop.replaceAllUsesWith(last.getResults());
    loop.erase();
  }

  scf::ForOp create(Value count, ValueRange inits) {
    auto created = scf::ForOp::create(b, indexConstant(b, 0), count,
                                      indexConstant(b, 1), inits);
    if (inits.empty())
      created.getBody()->getTerminator()->erase();
    return created;
  }

  /// The number of the iteration of the loop that was.
  Value numberIn(scf::ForOp part, Value first) {
    Builder inside(loop.getLoc(), part.getBody(), part.getBody()->begin());
    return arith::AddIOp::create(inside, first, part.getInductionVar());
  }

  void copyBody(scf::ForOp part, Value first) {
    IRMapping copies;
    copies.map(loop.getInductionVar(), numberIn(part, first));
    copies.map(loop.getRegionIterArgs(), part.getRegionIterArgs());
    OpBuilder inside = OpBuilder::atBlockEnd(part.getBody());
    for (Operation &op : *loop.getBody())
      inside.clone(op, copies);
    for (auto [op, copy] : copies.getOperationMap())
      if (Value count = tripCounts.lookup(op))
        tripCounts[copy] = copies.lookup(count);
  }

  void moveBody(scf::ForOp part, Value first) {
    Value number = numberIn(part, first);
    loop.getInductionVar().replaceAllUsesWith(number);
    for (auto [before, after] :
         llvm::zip_equal(loop.getRegionIterArgs(), part.getRegionIterArgs()))
      before.replaceAllUsesWith(after);
    Block &body = *part.getBody();
    body.getOperations().splice(body.end(), loop.getBody()->getOperations());
  }

  scf::ForOp loop;
  TripCounts &tripCounts;
  Builder b;
};

} // namespace

Parts cutInto(const Segments &segments, scf::ForOp loop,
              TripCounts &tripCounts) {
  return Cutter(loop, tripCounts).run(segments);
}

scf::ForOp divideInto(const Segments &segments, scf::ForOp segment) {
  TripCounts none; // nothing is copied
  return Cutter(segment, none).divide(segments);
}

scf::ForOp forElements(Value local, Builder &b,
                       function_ref<void(Builder &, Value)> body) {
  Value first = indexConstant(b, 0), one = indexConstant(b, 1);
  Value size = indexConstant(b, cast<ir::LocalType>(local.getType()).getSize());
  auto loop = scf::ForOp::create(b, first, size, one);
  Builder inner(b.getLoc(), loop.getBody()->getTerminator());
  body(inner, loop.getInductionVar());
  return loop;
}

SmallVector<Value> localsOf(Block &body, bool changed) {
  llvm::SetVector<Value> loaded;
  llvm::DenseSet<Value> written;
  body.walk([&](Operation *op) {
    if (auto load = dyn_cast<ir::LocalLoadOp>(op))
      loaded.insert(load.getLocal());
    if (ir::writesLocal(op))
      written.insert(ir::localOf(op));
  });
  SmallVector<Value> locals;
  for (Value local : loaded)
    if (!body.getParent()->isAncestor(local.getParentRegion()) &&
        written.contains(local) == changed)
      locals.push_back(local);
  return locals;
}

} // namespace costate::autodiff
