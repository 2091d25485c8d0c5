/// Iterations of `while` loops in the forward sweep.

#include "conversion/PlaceTapes/Forward.h"
#include "conversion/PlaceTapes/Walk.h"

using namespace mlir;

namespace costate::conversion {
namespace {

/// One that runs to its end, while it does.
class OpenRun {
public:
  OpenRun(WorkItem &item, const LoopState &loop, const IRMapping &at,
          const Place &place)
      : item(item), b(item.b), loop(loop), at(at), place(place),
        open(cast<scf::WhileOp>(loop.op())) {}

protected:
  /// What it passes on, and whether it goes on.
  Values condition(ValueRange state);

  WorkItem &item;
  RowBuilder &b;
  const LoopState &loop;
  const IRMapping &at;
  const Place &place;
  scf::WhileOp open;
};

Values OpenRun::condition(ValueRange state) {
  IRMapping inner = at;
  Values values = passedOn(item, loop, state, {}, inner);
  values.push_back(inner.lookupOrDefault(open.getConditionOp().getCondition()));
  return values;
}

//===-- Leaves ------------------------------------------------------------===//

class OpenLeaf : public OpenRun {
public:
  using OpenRun::OpenRun;
  Outcome run(Value pred, ValueRange state);

private:
  Values before(ValueRange args);
  Values iteration(ValueRange args, Value room);

  int64_t rows = item.shape.level(open).rows();
};

Values OpenLeaf::before(ValueRange args) {
  Values next = condition(args.drop_back());
  next.insert(std::prev(next.end()), args.back());
  return next;
}

Values OpenLeaf::iteration(ValueRange args, Value room) {
  IRMapping inner = at;
  inner.map(open.getAfterArguments(), args.drop_back());
  Place here = leafIteration(b, place, args.back(), room, rows);
  ForwardWalk walk(item, item.shape.level(open), inner, here, false);
  walk.walk(*open.getAfterBody(), {});
  Values next = mapped(loop.yields(), inner);
  next.push_back(b.addUpTo(args.back(), b.i32(1)));
  return next;
}

Outcome OpenLeaf::run(Value pred, ValueRange state) {
  Value room = roomOf(b, place, rows);
  SmallVector<Type> types(open.getResultTypes());
  types.push_back(b.getI32Type());
  Values ends = b.branch(pred, types, [&] {
    Values inits(state);
    inits.push_back(b.i32(0));
    return b.openLoop(
        types, inits, [&](ValueRange args) { return before(args); },
        [&](ValueRange args) { return iteration(args, room); });
  });
  Outcome out;
  out.iterations = ends.pop_back_val();
  out.state = ends;
  if (place.counts()) {
    out.row = rowAfter(b, place, b.warpMax(out.iterations), rows);
    out.unit = b.i32(rows);
  }
  return out;
}

//===-- Nests -------------------------------------------------------------===//

/// All lanes iterate until the last one is done.
class OpenNest : public OpenRun {
public:
  using OpenRun::OpenRun;
  Outcome run(Value pred, ValueRange state);

private:
  Values initial(Value pred, ValueRange state);
  Values before(ValueRange carried);
  Values iteration(ValueRange carried);

  // Carried: the state, the results so far, and after them
  unsigned results = loop.inits().size();
  unsigned goesOn = results + open.getNumResults(); ///< whether this lane does
  unsigned iterations = goesOn + 1;
  unsigned row = iterations + 1;
  unsigned unit = row + 1; ///< the deepest iteration
};

Values OpenNest::initial(Value pred, ValueRange state) {
  Values inits(state);
  for (Type type : open.getResultTypes())
    inits.push_back(b.zeroOf(type));
  inits.push_back(pred ? pred : b.boolean(true));
  inits.push_back(b.i32(0));
  inits.push_back(place.counts() ? place.row : b.i32(0));
  inits.push_back(b.i32(1));
  return inits;
}

Values OpenNest::before(ValueRange carried) {
  Value own = carried[goesOn];
  SmallVector<Type> types(open.getResultTypes());
  types.push_back(b.getI1Type());
  Values now = b.branch(own, types,
                        [&] { return condition(carried.take_front(results)); });
  Values next(carried);
  for (unsigned k = results; k < goesOn; ++k)
    next[k] = b.select(own, now[k - results], carried[k]);
  next[goesOn] = b.both(own, now.back());
  Value flag = arith::ExtUIOp::create(b, b.getI32Type(), next[goesOn]);
  Value none = b.i32(0);
  next.push_back(b.less(none, b.warpMax(flag)));
  return next;
}

Values OpenNest::iteration(ValueRange carried) {
  Value own = carried[goesOn], start = carried[row];
  IRMapping inner = at;
  inner.map(open.getAfterArguments(), carried.slice(results, goesOn - results));
  Place here = place.counts() ? place.at(start) : place;
  ForwardWalk walk(item, item.shape.level(open), inner, here, false);
  walk.walk(*open.getAfterBody(), own);
  Values next(carried);
  for (auto [k, value] : llvm::enumerate(mapped(loop.yields(), inner)))
    next[k] = b.select(own, value, carried[k]);
  Value taken = arith::ExtUIOp::create(b, b.getI32Type(), own);
  next[iterations] = b.addUpTo(carried[iterations], taken);
  if (place.counts()) {
    next[row] = walk.end();
    next[unit] = b.most(carried[unit], b.sub(next[row], start));
  }
  return next;
}

Outcome OpenNest::run(Value pred, ValueRange state) {
  Values inits = initial(pred, state);
  Values ends = b.openLoop(
      llvm::to_vector(TypeRange(ValueRange(inits))), inits,
      [&](ValueRange carried) { return before(carried); },
      [&](ValueRange carried) { return iteration(carried); });
  Outcome out;
  out.state.assign(ends.begin() + results, ends.begin() + goesOn);
  out.iterations = ends[iterations];
  if (place.counts()) {
    out.row = ends[row];
    out.unit = ends[unit];
  }
  return out;
}

} // namespace

Outcome runOpen(WorkItem &item, const LoopState &loop, Value pred,
                ValueRange state, const IRMapping &at, const Place &place) {
  return item.shape.level(loop.op()).isLeaf()
             ? OpenLeaf(item, loop, at, place).run(pred, state)
             : OpenNest(item, loop, at, place).run(pred, state);
}

} // namespace costate::conversion
