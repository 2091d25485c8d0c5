#include "autodiff/cut/Segments.h"

#include "autodiff/rules/Rules.h"
#include "ir/Kernel.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace costate::autodiff {

namespace {

/// Cuts one loop with the bounds 0 and a trip count, and the step 1.
class Cutter {
public:
  Cutter(scf::ForOp loop, TripCounts &tripCounts)
      : loop(loop), tripCounts(tripCounts), b(loop.getLoc(), loop) {}

  Parts run(const Segments &segments) {
    scf::ForOp outer = create(segments.count, loop.getInitArgs());
    outer->setAttr(ir::rerunAttr, b.getUnitAttr());
    Value behind = arith::MulIOp::create(b, segments.count, segments.length);
    scf::ForOp rest = create(segments.rest, outer.getResults());
    rest->setAttr(ir::restAttr, b.getUnitAttr());
    copyBody(rest, behind);

    b.setInsertionPointToStart(outer.getBody());
    Value first =
        arith::MulIOp::create(b, outer.getInductionVar(), segments.length);
    scf::ForOp segment = create(segments.length, outer.getRegionIterArgs());
    segment->setAttr(ir::segmentAttr, b.getUnitAttr());
    scf::YieldOp::create(b, segment.getResults());
    moveBody(segment, first);
    loop.replaceAllUsesWith(rest.getResults());
    loop.erase();
    return {outer, rest};
  }

private:
  scf::ForOp create(Value count, ValueRange inits) {
    auto created = scf::ForOp::create(b, indexConstant(b, 0), count,
                                      indexConstant(b, 1), inits);
    if (inits.empty())
      created.getBody()->getTerminator()->erase();
    return created;
  }

  /// The number of the iteration of the loop that was.
  Value numberIn(scf::ForOp part, Value first) {
    ImplicitLocOpBuilder inside(loop.getLoc(), part.getBody(),
                                part.getBody()->begin());
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
  ImplicitLocOpBuilder b;
};

} // namespace

Parts cutInto(const Segments &segments, scf::ForOp loop,
              TripCounts &tripCounts) {
  return Cutter(loop, tripCounts).run(segments);
}

} // namespace costate::autodiff
