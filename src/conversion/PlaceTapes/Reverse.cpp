/// Iterations of the reverse sweep, and a whole range.

#include "conversion/PlaceTapes/Cost.h"
#include "conversion/PlaceTapes/Rows.h"
#include "conversion/PlaceTapes/Walk.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace costate::conversion {

/// Iterations of which the rows are read before the first of them is undone:
/// loads take longer than what they are for.
constexpr int64_t readAhead = 4;
/// Of the code of one iteration, and rows of a record, for which that pays.
constexpr int64_t shortest = 64;
constexpr int64_t narrowest = 4;

struct Emitter::Undone {
  scf::ForOp reversed;
  const TapeLevel &level;
  Iterations iterations;
  Value row;
  const IRMapping &at;
  Value mine; ///< iterations from the first one on that are this lane's
  bool pure;  ///< see isPureIteration
  bool same;  ///< all lanes that count have all iterations
};

/// All records of the iteration at `start`, whether it is this lane's or not.
llvm::DenseMap<int64_t, Values> Emitter::readIteration(const Undone &leaf,
                                                       Value start) {
  llvm::DenseMap<int64_t, Values> values;
  for (int64_t record : leaf.level.groups.front().records) {
    Value at = add(start, i32(shape.rowOf(record)));
    auto read = tape::ReadOp::create(b, shape.typesOf(record), at);
    values[record] = Values(read.getResults());
  }
  return values;
}

/// Iteration `first + place`, where `runs` holds; null: in all lanes.
Values Emitter::undoIteration(const Undone &leaf, Value place, Value runs,
                              const llvm::DenseMap<int64_t, Values> &read,
                              ValueRange carried) {
  scf::ForOp reversed = leaf.reversed;
  auto body = [&] {
    IRMapping inner = leaf.at;
    Value last = sub(leaf.iterations.own, i32(1));
    Value k = sub(sub(last, leaf.iterations.first), place);
    inner.map(reversed.getInductionVar(), index(k));
    inner.map(reversed.getRegionIterArgs(), carried);
    auto known = std::exchange(records, read);
    for (Operation &op : reversed.getBody()->without_terminator())
      clone(&op, inner, {Keep::Nothing, leaf.row, {}});
    records = std::move(known);
    return mapped(reversed.getBody()->getTerminator()->getOperands(), inner);
  };
  if (!runs)
    return body();
  if (!leaf.pure)
    return branch(runs, TypeRange(carried), body,
                  [&] { return Values(carried); });
  // Lanes that wait cost nothing: they compute as well, and forget it.
  Values next = body();
  for (auto [value, old] : llvm::zip(next, carried))
    value = select(runs, value, old);
  return next;
}

/// Whether running an iteration with any values changes nothing but what it
/// leaves.
static bool isPureIteration(scf::ForOp reversed) {
  return llvm::all_of(
      reversed.getBody()->without_terminator(), [](Operation &op) {
        return isa<tape::PopOp>(op) || (op.getNumRegions() == 0 && isPure(&op));
      });
}

/// Whether code of a library stands behind it.
static bool isCalled(Operation &op, bool fastMath) {
  if (isa<func::CallOp>(op))
    return true;
  return op.hasTrait<ir::OpTrait::IsFunction>() &&
         !(fastMath && op.getResult(0).getType().isF32());
}

/// How much code `op` becomes, about, if that of its function is inlined.
static int64_t codeOf(Operation &op, bool fastMath) {
  if (!isCalled(op, fastMath))
    return 1;
  int64_t slots = slotsOf(&op, fastMath);
  return slots <= slotsOfSmallFunction ? slots : shortest + 1;
}

bool Emitter::isShort(scf::ForOp reversed, const TapeLevel &level) const {
  int64_t code = 0;
  reversed.walk([&](Operation *op) {
    code += costs.inlines ? codeOf(*op, costs.fastMath) : 1;
  });
  return code <= shortest && level.rows() <= narrowest;
}

/// The `size` iterations in front of iteration `after`, whose rows end at
/// `end`.
Values Emitter::undoBatch(const Undone &leaf, int64_t size, Value after,
                          Value end, ValueRange carried) {
  int64_t rows = leaf.level.rows();
  SmallVector<llvm::DenseMap<int64_t, Values>> read;
  for (int64_t k = 1; k <= size; ++k)
    read.push_back(readIteration(leaf, sub(end, i32(k * rows))));
  if (size > 1)
    tape::AheadOp::create(b);
  bool free = leaf.pure && leaf.same;
  // One difference, which all of them compare.
  Value more = free ? Value() : sub(leaf.mine, after);
  Values now(carried);
  for (int64_t k = 1; k <= size; ++k) {
    Value runs;
    if (!free)
      runs = arith::CmpIOp::create(b, arith::CmpIPredicate::sgt, more, i32(-k));
    now = undoIteration(leaf, sub(after, i32(k)), runs, read[k - 1], now);
  }
  return now;
}

/// Batches of all sizes that make up `count` iterations, one of each but the
/// last.
Values Emitter::undoBatches(const Undone &leaf, Value count,
                            ValueRange carried) {
  int64_t rows = leaf.level.rows();
  Type i32Type = b.getI32Type();
  Values now(carried);
  Value after = count, none = i32(0);
  auto endOf = [&](Value iterations) {
    return add(leaf.row, times(iterations, rows));
  };
  for (int64_t size = 1; size < readAhead; size *= 2) {
    Value some =
        arith::CmpIOp::create(b, arith::CmpIPredicate::ne,
                              arith::AndIOp::create(b, count, i32(size)), none);
    now = branch(
        some, TypeRange(carried),
        [&] { return undoBatch(leaf, size, after, endOf(after), now); },
        [&] { return now; });
    after = arith::AndIOp::create(b, count, i32(-2 * size));
  }
  SmallVector<Type> types = llvm::to_vector(TypeRange(ValueRange(now)));
  types.append({i32Type, i32Type});
  now.append({after, endOf(after)});
  auto goesOn = [&](ValueRange args) {
    Values next(args);
    next.push_back(less(none, args[args.size() - 2]));
    return next;
  };
  auto iteration = [&](ValueRange args) {
    Value after = args[args.size() - 2], end = args.back();
    Values next = undoBatch(leaf, readAhead, after, end, args.drop_back(2));
    next.append({sub(after, i32(readAhead)), sub(end, i32(readAhead * rows))});
    return next;
  };
  Values ends = openLoop(types, now, goesOn, iteration);
  ends.truncate(carried.size());
  return ends;
}

/// Back from the last row that any lane has.
Values Emitter::undoLeaf(scf::ForOp reversed, const Iterations &iterations,
                         Value row, ValueRange adjoints, const IRMapping &at,
                         bool same) {
  const TapeLevel &level = shape.level(shape.forwardOf(reversed));
  Value here = least(iterations.own, iterations.end);
  Value mine = sub(most(here, iterations.first), iterations.first);
  Undone leaf{
      reversed, level, iterations, row, at, mine, isPureIteration(reversed),
      same};
  Value count = sub(iterations.end, iterations.first);
  if (isShort(reversed, level))
    return undoBatches(leaf, count, adjoints);
  return loop(i32(0), count, adjoints, [&](Value j, ValueRange args) {
    Value place = sub(sub(count, j), i32(1));
    Value start = add(leaf.row, times(place, level.rows()));
    return undoIteration(leaf, place, less(place, leaf.mine),
                         readIteration(leaf, start), args);
  });
}

Values Emitter::undoNest(scf::ForOp reversed, const Iterations &iterations,
                         Value &row, ValueRange adjoints, const IRMapping &at) {
  const TapeLevel &level = shape.level(shape.forwardOf(reversed));
  Values inits(adjoints);
  inits.push_back(row);
  Value count = sub(iterations.end, iterations.first);
  Values ends = loop(i32(0), count, inits, [&](Value j, ValueRange carried) {
    Value k = sub(sub(iterations.end, i32(1)), j);
    Value mine = less(k, iterations.own);
    IRMapping inner = at;
    inner.map(reversed.getInductionVar(),
              index(sub(sub(iterations.own, i32(1)), k)));
    inner.map(reversed.getRegionIterArgs(), carried.drop_back());
    ReverseWalk walk(*this, level, inner, carried.back(), false);
    Block *body = reversed.getBody();
    walk.walk(body->begin(), body->getTerminator()->getIterator(), mine);
    Values next = mapped(body->getTerminator()->getOperands(), inner);
    for (auto [value, old] : llvm::zip(next, carried.drop_back()))
      value = select(mine, value, old);
    next.push_back(walk.start());
    return next;
  });
  row = ends.pop_back_val();
  return ends;
}

void Emitter::undoInner(scf::ForOp reversed, Value pred, IRMapping &at,
                        Value &row) {
  const TapeLevel &level = shape.level(shape.forwardOf(reversed));
  Value own = ownIterations(reversed, pred, at);
  Value most = maxTripCount(reversed, pred, own);
  Values inits = mapped(reversed.getInitArgs(), at);
  Iterations iterations{i32(0), most, own};
  if (level.isLeaf()) {
    row = sub(row, times(most, level.rows()));
    at.map(reversed.getResults(),
           undoLeaf(reversed, iterations, row, inits, at));
  } else {
    at.map(reversed.getResults(),
           undoNest(reversed, iterations, row, inits, at));
  }
}

void Emitter::reportNeed() {
  if (!tiles)
    return;
  tape::ReportOp::create(b, fits, need, minRows);
  running = both(active, fits);
}

void Emitter::emit() {
  const TapeLevel &level = shape.level(nullptr);
  if (tiles) {
    active = tape::ActiveOp::create(b, b.getI1Type());
    row = i32(0);
    start(level);
  }
  Block *body = shape.body();
  tape::PivotOp pivot = shape.pivot;
  ForwardWalk forward(*this, level, map, {Keep::Nothing, {}, {}}, true);
  forward.walk(body->begin(), pivot->getIterator(), active);
  reportNeed();
  ReverseWalk reverse(*this, level, map, {}, true);
  reverse.walk(std::next(pivot->getIterator()),
               body->getTerminator()->getIterator(), running);
}

} // namespace costate::conversion
