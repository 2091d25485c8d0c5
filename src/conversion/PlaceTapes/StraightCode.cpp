#include "conversion/PlaceTapes/StraightCode.h"

#include "sizing/Rows.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace costate::conversion {

Values mapped(ValueRange values, const IRMapping &at) {
  return llvm::map_to_vector(
      values, [&](Value value) { return at.lookupOrDefault(value); });
}

//===-- Records -----------------------------------------------------------===//

static void write(const WorkItem &item, RowBuilder &b, tape::PushOp push,
                  ValueRange values, const Place &place) {
  if (!place.writes())
    return;
  Value row = b.add(place.row, b.i32(item.shape.rowOf(*push.getRecord())));
  if (place.keep == Keep::Rows) {
    tape::WriteOp::create(b, values, row);
    return;
  }
  Value fit = place.fits;
  if (!fit) {
    Value end = b.add(row, b.i32(sizing::RowLayout(values.getTypes()).rows));
    fit = arith::CmpIOp::create(b, arith::CmpIPredicate::ule, end, place.limit);
  }
  b.branch(fit, {}, [&] {
    tape::WriteOp::create(b, values, row);
    return Values();
  });
}

static Values read(const WorkItem &item, RowBuilder &b, tape::PopOp pop,
                   Value row) {
  int64_t record = *pop.getRecord();
  if (auto known = item.records.find(record); known != item.records.end())
    return known->second;
  Value place = b.add(row, b.i32(item.shape.rowOf(record)));
  auto values = tape::ReadOp::create(b, pop.getResultTypes(), place);
  return Values(values.getResults());
}

/// Pushes and pops of branches in straight code.
static void replaceNested(const WorkItem &item, Operation *copy,
                          const Place &place) {
  copy->walk([&](Operation *op) {
    RowBuilder b(op->getLoc(), op);
    if (auto push = dyn_cast<tape::PushOp>(op)) {
      write(item, b, push, push.getValues(), place);
      push.erase();
    } else if (auto pop = dyn_cast<tape::PopOp>(op)) {
      pop->replaceAllUsesWith(read(item, b, pop, place.row));
      pop.erase();
    }
  });
}

void clone(WorkItem &item, Operation *op, IRMapping &at, const Place &place) {
  RowBuilder &b = item.b;
  b.setLoc(op->getLoc());
  if (auto push = dyn_cast<tape::PushOp>(op)) {
    write(item, b, push, mapped(push.getValues(), at), place);
    return;
  }
  if (auto pop = dyn_cast<tape::PopOp>(op)) {
    at.map(pop.getValues(), read(item, b, pop, place.row));
    return;
  }
  Operation *copy = b.clone(*op, at);
  if (item.shape.isOnTape(op))
    replaceNested(item, copy, place);
}

//===-- Lanes that wait ---------------------------------------------------===//

/// Whether running it with any values changes nothing but its results.
static bool isHarmless(Operation *op) {
  auto count = dyn_cast<ir::TripCountOp>(op);
  return op->getNumRegions() == 0 && (count ? count.cannotFail() : isPure(op));
}

/// Whether all lanes may run `ops`, for less than a branch costs: those that
/// wait have rows as well, and forget what comes of it.
static bool areForAll(ArrayRef<Operation *> ops) {
  sizing::Costs costs(sizing::Target::Gpu);
  int64_t slots = 0;
  for (Operation *op : ops) {
    if (isa<tape::PushOp, tape::PopOp>(op))
      continue;
    if (!isHarmless(op))
      return false;
    slots += costs.of(op);
  }
  return slots <= costs.tiles().branch;
}

/// What costs nothing and cannot fail is computed by all lanes; private arrays
/// are there for all of their block.
static bool isForAll(Operation *op,
                     const llvm::DenseSet<Operation *> &guarded) {
  if (op->hasTrait<OpTrait::ConstantLike>() || isa<ir::LocalOp>(op))
    return true;
  return isHarmless(op) &&
         llvm::all_of(op->getResultTypes(),
                      [](Type type) { return type.isInteger(); }) &&
         llvm::none_of(op->getOperands(), [&](Value value) {
           return guarded.contains(value.getDefiningOp());
         });
}

static bool isUsedOutside(Value result,
                          const llvm::DenseSet<Operation *> &ops) {
  Block *block = result.getParentBlock();
  return llvm::any_of(result.getUsers(), [&](Operation *user) {
    return !ops.contains(block->findAncestorOpInBlock(*user));
  });
}

void cloneWhere(WorkItem &item, ArrayRef<Operation *> ops, Value pred,
                IRMapping &at, const Place &place) {
  llvm::DenseSet<Operation *> guarded;
  if (areForAll(ops))
    pred = {};
  for (Operation *op : ops) {
    if (!pred || isForAll(op, guarded))
      clone(item, op, at, place);
    else
      guarded.insert(op);
  }
  if (guarded.empty())
    return;
  Values outs;
  for (Operation *op : ops)
    if (guarded.contains(op))
      for (Value result : op->getResults())
        if (isUsedOutside(result, guarded))
          outs.push_back(result);
  Values results = item.b.branch(pred, TypeRange(ValueRange(outs)), [&] {
    for (Operation *op : ops)
      if (guarded.contains(op))
        clone(item, op, at, place);
    return mapped(outs, at);
  });
  for (auto [out, result] : llvm::zip(outs, results))
    at.map(out, result);
}

} // namespace costate::conversion
