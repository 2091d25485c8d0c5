/// Iterations that are deeper than all rows: where nothing else is left to try,
/// each of them runs from a checkpoint of its own, as a work item whose loops
/// are cut as well. Two levels of checkpoints lead to it: segments, and the
/// iterations of one.

#include "conversion/PlaceTapes/Walk.h"

using namespace mlir;

namespace costate::conversion {

Emitter::Emitter(const Emitter &outer, Value active, Value row)
    : shape(outer.shape), b(outer.b), map(outer.map), tiles(true),
      costs(outer.costs), active(active), running(active), row(row) {}

void Emitter::start(const TapeLevel &level) {
  loopsLeft = level.loops.size();
  need = minRows = i32(0);
  fits = arith::ConstantOp::create(b, b.getBoolAttr(true));
}

/// The forward sweep of this iteration; returns the state after it.
Values Emitter::sweepInside(const LoopState &loop, ValueRange state, Value k) {
  const TapeLevel &level = shape.level(loop.op());
  start(level);
  Block *body = enterIteration(loop, state, k, active, map);
  ForwardWalk walk(*this, level, map, {Keep::Nothing, {}, {}}, true);
  walk.walk(body->begin(), body->getTerminator()->getIterator(), active);
  Values next = mapped(loop.yields(), map);
  for (auto [value, old] : llvm::zip(next, state))
    value = select(active, value, old);
  return next;
}

/// The reverse sweep of this iteration, the `k`th that is undone.
Values Emitter::reverseInside(scf::ForOp reversed, Value k,
                              ValueRange adjoints) {
  map.map(reversed.getInductionVar(), k);
  map.map(reversed.getRegionIterArgs(), adjoints);
  Block *body = reversed.getBody();
  ReverseWalk walk(*this, shape.level(shape.forwardOf(reversed)), map, {},
                   true);
  walk.walk(body->begin(), body->getTerminator()->getIterator(), active);
  Values next = mapped(body->getTerminator()->getOperands(), map);
  for (auto [value, old] : llvm::zip(next, adjoints))
    value = select(active, value, old);
  return next;
}

/// Runs all iterations, to see whether the inside of each fits after the
/// checkpoints.
void Emitter::planInside(OpenLoop &loop, Value left) {
  Value one = i32(1);
  Value segment =
      tape::SegmentOp::create(b, b.getI32Type(), loop.most, one, one);
  Value segments =
      arith::DivUIOp::create(b, sub(add(loop.most, segment), one), segment);
  Value checkpoints =
      times(add(segments, segment), loop.state.checkpointRows());
  Value isTried = both(tape::DrainsOp::create(b, b.getI1Type()),
                       both(negated(loop.fit), less(checkpoints, left)));
  Values found = branch(isTried, b.getI1Type(), [&] {
    Values inits = loop.inits;
    inits.push_back(arith::ConstantOp::create(b, b.getBoolAttr(true)));
    Values ends =
        this->loop(i32(0), loop.most, inits, [&](Value k, ValueRange args) {
          tape::FenceOp::create(b);
          Emitter inside(*this, less(k, loop.own), add(row, checkpoints));
          Values next = inside.sweepInside(loop.state, args.drop_back(), k);
          next.push_back(both(args.back(), inside.fits));
          return next;
        });
    return Values{ends.back()};
  });
  loop.inside = found[0];
  Value yes = arith::ConstantOp::create(b, b.getBoolAttr(true));
  loop.fit = select(loop.inside, yes, loop.fit);
  loop.kept = where(negated(loop.inside), loop.kept);
  loop.segment = select(loop.inside, segment, loop.segment);
  loop.segments = select(loop.inside, segments, loop.segments);
}

/// The iterations of one segment; `state`: in front of it.
Values Emitter::undoInside(const OpenLoop &loop, scf::ForOp reversed,
                           const Iterations &iterations, ValueRange state,
                           ValueRange adjoints) {
  int64_t words = loop.state.checkpointRows();
  auto checkpointOf = [&](Value k) {
    return add(loop.free, times(sub(k, iterations.first), words));
  };
  this->loop(
      iterations.first, iterations.end, state, [&](Value k, ValueRange now) {
        writeState(loop, checkpointOf(k), now);
        Iterations iteration{k, add(k, i32(1)), iterations.own};
        return run(loop.state, iteration, now, map, {Keep::Nothing, {}, {}})
            .state;
      });
  Value free = add(loop.free, times(loop.segment, words));
  Value count = sub(iterations.end, iterations.first);
  return this->loop(i32(0), count, adjoints, [&](Value j, ValueRange carried) {
    tape::FenceOp::create(b);
    Value k = sub(sub(iterations.end, i32(1)), j);
    Emitter inside(*this, less(k, iterations.own), free);
    inside.sweepInside(loop.state, restore(loop, checkpointOf(k), k), k);
    Value number = index(sub(sub(iterations.own, i32(1)), k));
    return inside.reverseInside(reversed, number, carried);
  });
}

} // namespace costate::conversion
