/// Does a range depend on the order of its work items?

#include "autodiff/replay/Replay.h"
#include "ir/Operations.h"

#include "mlir/IR/Matchers.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace costate::autodiff {

static LogicalResult refuseMixed(const ArrayAccess &load,
                                 const ArrayAccess &update, Refusal &refusal) {
  refusal.code = ErrorCode::CannotReplay;
  bool takes = isExtremum(update.op);
  const char *what = takes                             ? "minima or maxima"
                     : isa<ir::AtomicAddOp>(update.op) ? "additions"
                                                       : "atomic updates";
  InFlightDiagnostic error = load.op->emitError()
                             << "this read may or may not see " << what
                             << " that other work items of the same range "
                             << (takes ? "take" : "make")
                             << ", so the gradient is not defined";
  if (takes)
    error.attachNote(update.op->getLoc()) << "they are taken here";
  else
    error.attachNote(update.op->getLoc()) << "the " << what << " are made here";
  error.attachNote() << "read the array in a range of its own, before or after";
  return failure();
}

static bool isOfAll(const ArrayAccess &access, ir::RangeOp range) {
  return llvm::all_of(access.indices,
                      [&](Value index) { return isUniform(index, range); });
}

/// Whether a work item of `range` uses one element only in `accesses`, those of
/// an array, and no element is that of all work items.
static bool useOneElementEach(ir::RangeOp range,
                              ArrayRef<ArrayAccess> accesses) {
  return !isOfAll(accesses.front(), range) &&
         llvm::all_of(accesses, [&](const ArrayAccess &access) {
           return llvm::all_of(
               llvm::zip(accesses.front().indices, access.indices),
               [](auto pair) {
                 auto [a, b] = pair;
                 return isSame(Affine::of(a), Affine::of(b));
               });
         });
}

/// Whether work items of `range` that differ in one index only store to the
/// same element. An extent that is not known counts as more than 1.
static bool isShared(ir::StoreOp store, ir::RangeOp range) {
  llvm::DenseSet<Value> used;
  for (Value index : store.getIndices())
    for (auto [symbol, coefficient] : Affine::of(index).terms)
      if (coefficient != 0 && !isUniform(symbol, range))
        used.insert(symbol);
  bool shared = false;
  for (auto [extent, index] :
       llvm::zip(range.getExtents(), range.getBody()->getArguments()))
    shared |= !used.erase(index) && !isAtMostOne(extent);
  return shared && used.empty();
}

static LogicalResult checkSharedStores(ir::RangeOp range, Refusal &refusal) {
  for (auto store : range.getBody()->getOps<ir::StoreOp>()) {
    Value value = store.getValue();
    if (!isa<FloatType>(value.getType()) || isUniform(value, range) ||
        !isShared(store, range))
      continue;
    refusal.code = ErrorCode::CannotReplay;
    InFlightDiagnostic error = store.emitError(
        "several work items of the range store to this element, so which value "
        "remains is left to chance and the gradient is not defined");
    error.attachNote() << "add with `+=`, or store in serial code";
    return failure();
  }
  return success();
}

namespace {
/// By how much each index of a range differs between the work item that makes
/// one access and the one that makes another to the same element.
class Shifts {
public:
  explicit Shifts(ir::RangeOp range)
      : range(range), body(range.getBody()), extents(range.getExtents()) {}

  /// Adds what one dimension says; false if that is not known, or if the
  /// accesses never meet.
  bool add(Value from, Value to) {
    Affine form = Affine::of(from);
    std::optional<int64_t> distance = constantDifference(form, Affine::of(to));
    if (!distance)
      return false;
    form.terms.remove_if(
        [&](auto &term) { return isUniform(term.first, range); });
    if (form.isConstant())
      return *distance == 0;
    auto [symbol, coefficient] = *form.terms.begin();
    auto index = dyn_cast<BlockArgument>(symbol);
    if (form.terms.size() > 1 || !index || index.getOwner() != body ||
        *distance % coefficient != 0)
      return false;
    int64_t shift = *distance / coefficient;
    auto [known, isNew] = shifts.try_emplace(index.getArgNumber(), shift);
    return known->second == shift;
  }

  /// Whether the two work items differ and exist. Extents that are not known
  /// count as 2.
  bool isInside() const {
    bool differ = false;
    for (auto [number, shift] : shifts) {
      APInt extent(64, 2);
      (void)matchPattern(extents[number], m_ConstantInt(&extent));
      if (extent.sle(shift) || extent.sle(-shift))
        return false;
      differ |= shift != 0;
    }
    return differ;
  }

private:
  ir::RangeOp range;
  Block *body;
  OperandRange extents;
  llvm::SmallDenseMap<unsigned, int64_t> shifts;
};
} // namespace

/// Whether work items next to each other access one element.
static bool neighboursMeet(ir::RangeOp range, const ArrayAccess &a,
                           const ArrayAccess &b) {
  Shifts shifts(range);
  for (auto [from, to] : llvm::zip(a.indices, b.indices))
    if (!shifts.add(from, to))
      return false;
  return shifts.isInside();
}

/// Whether work items of `range` may have elements of their own, the only ones
/// that they use: if so, which checkOwners finds out, only the order within a
/// work item counts.
static bool mayHaveTheirOwn(ir::RangeOp range, ArrayRef<ArrayAccess> accesses) {
  if (useOneElementEach(range, accesses))
    return true;
  auto isPlain = [](const ArrayAccess &access) {
    return !isUpdate(access.op) || isa<ir::AtomicAddOp>(access.op);
  };
  auto isCertainlyMet = [&](const ArrayAccess &access) {
    return isOfAll(access, range) ||
           llvm::any_of(accesses, [&](const ArrayAccess &other) {
             return access.isWrite() && neighboursMeet(range, access, other);
           });
  };
  return llvm::all_of(accesses, isPlain) &&
         llvm::none_of(accesses, isCertainlyMet);
}

static LogicalResult checkMixed(ir::RangeOp range, ArrayRef<bool> active,
                                Refusal &refusal) {
  llvm::DenseSet<Value> exclusive = exclusiveArrays(range);
  for (auto &[array, accesses] : accessesByArray(range)) {
    auto update = llvm::find_if(
        accesses, [](auto &access) { return isUpdate(access.op); });
    auto load =
        llvm::find_if(accesses, [](auto &access) { return access.isLoad(); });
    if (ir::isDirectory(array))
      continue;
    bool isActive = active[argumentOf(array)];
    if (update != accesses.end() && load != accesses.end() &&
        !exclusive.contains(array) &&
        !(isActive && mayHaveTheirOwn(range, accesses)))
      return refuseMixed(*load, *update, refusal);
  }
  return success();
}

static LogicalResult checkNeighbours(ir::RangeOp range, Refusal &refusal) {
  llvm::MapVector<Value, SmallVector<ArrayAccess>> accesses;
  for (Operation &op : *range.getBody())
    if (auto access = accessOf(&op); access && !ir::isDirectory(access->array))
      accesses[access->array].push_back(*access);
  for (auto &[array, all] : accesses)
    for (const ArrayAccess &store : all) {
      if (!isa<ir::StoreOp>(store.op))
        continue;
      for (const ArrayAccess &other : all) {
        if (!neighboursMeet(range, store, other))
          continue;
        refusal.code = ErrorCode::CannotReplay;
        InFlightDiagnostic error = other.op->emitError(
            "one work item of the range uses the element that another one "
            "stores, so what it finds is left to chance and the gradient is "
            "not defined");
        error.attachNote(store.op->getLoc()) << "the element is stored here";
        error.attachNote() << "store into another array, or use one range for "
                              "each";
        return failure();
      }
    }
  return success();
}

LogicalResult checkOrderFree(ir::KernelOp primal, ArrayRef<bool> active,
                             Refusal &refusal) {
  return ir::forAll<ir::RangeOp>(primal, [&](ir::RangeOp range) {
    return success(succeeded(checkMixed(range, active, refusal)) &&
                   succeeded(checkSharedStores(range, refusal)) &&
                   succeeded(checkNeighbours(range, refusal)));
  });
}

} // namespace costate::autodiff
