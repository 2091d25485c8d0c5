/// Iterations that push no other loop's records: read ahead, and undone
/// together.

#include "conversion/PlaceTapes/Reverse.h"
#include "conversion/PlaceTapes/StraightCode.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace costate::conversion {
namespace {

using Records = llvm::DenseMap<int64_t, Values>;

/// A leaf while it is undone.
class Leaf {
public:
  Leaf(WorkItem &item, scf::ForOp reversed, const Iterations &iterations,
       Value row, const IRMapping &at, bool same);

  /// Back from the last row that any lane has.
  Values undo(ValueRange adjoints);

private:
  bool isShort() const;
  bool isPureIteration() const;
  Records readIteration(Value start);
  Values undoIteration(Value place, const Records &read, ValueRange carried);
  Values undoIteration(Value place, Value runs, const Records &read,
                       ValueRange carried);
  Values undoBatch(int64_t size, Value after, Value end, ValueRange carried);
  Values undoSmallBatches(Value count, Value none, Value &after,
                          ValueRange carried);
  Values undoBatches(Value count, ValueRange carried);
  Values undoOneByOne(Value count, ValueRange carried);
  Value endOf(Value iteration) {
    return b.add(row, b.times(iteration, level.rows()));
  }

  WorkItem &item;
  RowBuilder &b;
  const sizing::TileCosts &costs;
  scf::ForOp reversed;
  const TapeLevel &level;
  Iterations iterations;
  Value row;
  const IRMapping &at;
  bool same;  ///< all lanes that count have all iterations
  Value mine; ///< iterations from the first one on that are this lane's
  bool pure;  ///< see isPureIteration
};

Leaf::Leaf(WorkItem &item, scf::ForOp reversed, const Iterations &iterations,
           Value row, const IRMapping &at, bool same)
    : item(item), b(item.b), costs(item.costs.table.tiles()),
      reversed(reversed),
      level(item.shape.level(item.shape.forwardOf(reversed))),
      iterations(iterations), row(row), at(at), same(same) {
  Value here = b.least(iterations.own, iterations.end);
  mine = b.sub(b.most(here, iterations.first), iterations.first);
  pure = isPureIteration();
}

/// Whether running an iteration with any values changes nothing but what it
/// leaves.
bool Leaf::isPureIteration() const {
  scf::ForOp loop = reversed;
  return llvm::all_of(loop.getBody()->without_terminator(), [](Operation &op) {
    return isa<tape::PopOp>(op) || (op.getNumRegions() == 0 && isPure(&op));
  });
}

//===-- Iterations --------------------------------------------------------===//

/// All records of the iteration at `start`, whether it is this lane's or not.
Records Leaf::readIteration(Value start) {
  Records values;
  for (int64_t record : level.groups.front().records) {
    Value at = b.add(start, b.i32(item.shape.rowOf(record)));
    auto read = tape::ReadOp::create(b, item.shape.typesOf(record), at);
    values[record] = Values(read.getResults());
  }
  return values;
}

/// Iteration `first + place`, in all lanes.
Values Leaf::undoIteration(Value place, const Records &read,
                           ValueRange carried) {
  IRMapping inner = at;
  Value last = b.sub(iterations.own, b.i32(1));
  Value k = b.sub(b.sub(last, iterations.first), place);
  inner.map(reversed.getInductionVar(), b.index(k));
  inner.map(reversed.getRegionIterArgs(), carried);
  auto known = std::exchange(item.records, read);
  for (Operation &op : reversed.getBody()->without_terminator())
    clone(item, &op, inner, {Keep::Nothing, row, {}});
  item.records = std::move(known);
  return mapped(reversed.getBody()->getTerminator()->getOperands(), inner);
}

/// The same, where `runs` holds; null: in all lanes.
Values Leaf::undoIteration(Value place, Value runs, const Records &read,
                           ValueRange carried) {
  if (runs && !pure)
    return b.branch(
        runs, TypeRange(carried),
        [&] { return undoIteration(place, read, carried); },
        [&] { return Values(carried); });
  // Lanes that wait cost nothing: they compute as well, and forget it.
  Values next = undoIteration(place, read, carried);
  b.selectAll(runs, next, carried);
  return next;
}

//===-- Batches -----------------------------------------------------------===//

/// Whether code of a library stands behind it.
bool isCalled(Operation &op, bool fastMath) {
  if (isa<func::CallOp>(op))
    return true;
  return op.hasTrait<ir::OpTrait::IsFunction>() &&
         !(fastMath && op.getResult(0).getType().isF32());
}

/// How much code `op` becomes, about, if that of its function is inlined.
int64_t codeOf(Operation &op, const DeviceCosts &costs) {
  if (!isCalled(op, costs.fastMath))
    return 1;
  int64_t slots = costs.table.of(&op);
  return slots <= costs.table.smallFunction()
             ? slots
             : costs.table.tiles().batchedCode + 1;
}

bool Leaf::isShort() const {
  int64_t code = 0;
  scf::ForOp loop = reversed;
  loop.walk([&](Operation *op) {
    code += item.costs.inlines ? codeOf(*op, item.costs) : 1;
  });
  return code <= costs.batchedCode && level.rows() <= costs.batchedRows;
}

/// The `size` iterations in front of iteration `after`, whose rows end at
/// `end`.
Values Leaf::undoBatch(int64_t size, Value after, Value end,
                       ValueRange carried) {
  SmallVector<Records> read;
  for (int64_t k = 1; k <= size; ++k)
    read.push_back(readIteration(b.sub(end, b.i32(k * level.rows()))));
  if (size > 1)
    tape::AheadOp::create(b);
  bool free = pure && same;
  // One difference, which all of them compare.
  Value more = free ? Value() : b.sub(mine, after);
  Values now(carried);
  for (int64_t k = 1; k <= size; ++k) {
    Value runs;
    if (!free)
      runs =
          arith::CmpIOp::create(b, arith::CmpIPredicate::sgt, more, b.i32(-k));
    now = undoIteration(b.sub(after, b.i32(k)), runs, read[k - 1], now);
  }
  return now;
}

/// At most one batch of each size but the largest, so that larger ones make up
/// the iterations in front of `after`, which is `count` before.
Values Leaf::undoSmallBatches(Value count, Value none, Value &after,
                              ValueRange carried) {
  Values now(carried);
  for (int64_t size = 1; size < costs.batch; size *= 2) {
    Value bit = arith::AndIOp::create(b, count, b.i32(size));
    Value some = arith::CmpIOp::create(b, arith::CmpIPredicate::ne, bit, none);
    now = b.branch(
        some, TypeRange(carried),
        [&] { return undoBatch(size, after, endOf(after), now); },
        [&] { return now; });
    after = arith::AndIOp::create(b, count, b.i32(-2 * size));
  }
  return now;
}

/// Batches of all sizes that make up `count` iterations.
Values Leaf::undoBatches(Value count, ValueRange carried) {
  Value after = count, none = b.i32(0);
  Values now = undoSmallBatches(count, none, after, carried);
  SmallVector<Type> types = llvm::to_vector(TypeRange(ValueRange(now)));
  types.append({b.getI32Type(), b.getI32Type()});
  now.append({after, endOf(after)});
  auto goesOn = [&](ValueRange args) {
    Values next(args);
    next.push_back(b.less(none, args[args.size() - 2]));
    return next;
  };
  auto iteration = [&](ValueRange args) {
    Value after = args[args.size() - 2], end = args.back();
    Values next = undoBatch(costs.batch, after, end, args.drop_back(2));
    next.push_back(b.sub(after, b.i32(costs.batch)));
    next.push_back(b.sub(end, b.i32(costs.batch * level.rows())));
    return next;
  };
  Values ends = b.openLoop(types, now, goesOn, iteration);
  ends.truncate(carried.size());
  return ends;
}

//===-- All iterations ----------------------------------------------------===//

Values Leaf::undoOneByOne(Value count, ValueRange carried) {
  return b.loop(b.i32(0), count, carried, [&](Value j, ValueRange args) {
    Value place = b.sub(b.sub(count, j), b.i32(1));
    Value start = endOf(place);
    Value runs = b.less(place, mine);
    return undoIteration(place, runs, readIteration(start), args);
  });
}

Values Leaf::undo(ValueRange adjoints) {
  Value count = b.sub(iterations.end, iterations.first);
  return isShort() ? undoBatches(count, adjoints)
                   : undoOneByOne(count, adjoints);
}

} // namespace

Values undoLeaf(WorkItem &item, scf::ForOp reversed,
                const Iterations &iterations, Value row, ValueRange adjoints,
                const IRMapping &at, bool same) {
  return Leaf(item, reversed, iterations, row, at, same).undo(adjoints);
}

} // namespace costate::conversion
