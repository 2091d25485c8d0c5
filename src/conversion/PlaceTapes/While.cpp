/// Iterations of `while` loops in the forward sweep.

#include "conversion/PlaceTapes/Forward.h"
#include "conversion/PlaceTapes/Walk.h"

using namespace mlir;

namespace costate::conversion {
namespace {

/// What it passes on, and whether it goes on.
Values condition(WorkItem &item, const LoopState &loop, ValueRange state,
                 IRMapping at) {
  auto open = cast<scf::WhileOp>(loop.op());
  Values values = passedOn(item, loop, state, {}, at);
  values.push_back(at.lookupOrDefault(open.getConditionOp().getCondition()));
  return values;
}

Outcome runLeaf(WorkItem &item, const LoopState &loop, Value pred,
                ValueRange state, const IRMapping &at, const Place &place) {
  RowBuilder &b = item.b;
  auto open = cast<scf::WhileOp>(loop.op());
  const TapeLevel &level = item.shape.level(open);
  int64_t rows = level.rows();
  Value room = roomOf(b, place, rows);
  SmallVector<Type> types(open.getResultTypes());
  types.push_back(b.getI32Type());
  auto before = [&](ValueRange args) {
    Values next = condition(item, loop, args.drop_back(), at);
    next.insert(std::prev(next.end()), args.back());
    return next;
  };
  auto iteration = [&](ValueRange args) {
    IRMapping inner = at;
    inner.map(open.getAfterArguments(), args.drop_back());
    Place here = leafIteration(b, place, args.back(), room, rows);
    ForwardWalk(item, level, inner, here, false).walk(*open.getAfterBody(), {});
    Values next = mapped(loop.yields(), inner);
    next.push_back(b.addUpTo(args.back(), b.i32(1)));
    return next;
  };
  Outcome out;
  out.state = b.branch(pred, types, [&] {
    Values inits(state);
    inits.push_back(b.i32(0));
    return b.openLoop(types, inits, before, iteration);
  });
  out.iterations = out.state.pop_back_val();
  if (place.counts()) {
    out.row = rowAfter(b, place, b.warpMax(out.iterations), rows);
    out.unit = b.i32(rows);
  }
  return out;
}

//===-- Nests -------------------------------------------------------------===//

/// All lanes iterate until the last one is done.
class OpenNest {
public:
  OpenNest(WorkItem &item, const LoopState &loop, const IRMapping &at,
           const Place &place)
      : item(item), b(item.b), loop(loop), at(at), place(place),
        open(cast<scf::WhileOp>(loop.op())) {}
  Outcome run(Value pred, ValueRange state);

private:
  Values initial(Value pred, ValueRange state);
  Values before(ValueRange carried);
  Values iteration(ValueRange carried);

  WorkItem &item;
  RowBuilder &b;
  const LoopState &loop;
  const IRMapping &at;
  const Place &place;
  scf::WhileOp open;
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
  Values now = b.branch(own, types, [&] {
    return condition(item, loop, carried.take_front(results), at);
  });
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
             ? runLeaf(item, loop, pred, state, at, place)
             : OpenNest(item, loop, at, place).run(pred, state);
}

} // namespace costate::conversion
