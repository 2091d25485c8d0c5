#include "conversion/KernelToDevice/Passes.h"
#include "conversion/KernelToLLVM/Outline.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace costate::conversion {
#define GEN_PASS_DEF_SPLITSERIAL
#include "conversion/KernelToDevice/Passes.h.inc"

namespace {

/// Whether the host begins `op`, or control flow around such operations.
bool isOfHost(Operation *op) {
  return isa<tape::PivotOp>(op) || op->hasTrait<OpTrait::IsTerminator>() ||
         ir::contains<ir::RangeOp, ir::CopyOp>(op);
}

using Operations = llvm::DenseSet<Operation *>;

/// What `op`, or what is in it, uses.
void forEachUse(Operation *op, function_ref<void(Value)> f) {
  op->walk([&](Operation *nested) {
    for (Value value : nested->getOperands())
      f(value);
  });
}

/// What may decide how much a range pushes: its extents, and all that its
/// forward sweep uses.
void forEachUseInFront(ir::RangeOp range, function_ref<void(Value)> f) {
  llvm::for_each(range->getOperands(), f);
  for (Operation &op : *range.getBody()) {
    if (isa<tape::PivotOp>(op))
      return;
    forEachUse(&op, f);
  }
}

/// A launch that only measures leaves out the reverse sweep, but for ranges
/// with tapes. What their forward sweeps use moves in front of the pivot, as
/// far as it follows from nothing after it; ranges that need more are measured
/// right before they run.
class ForwardNeeds {
public:
  explicit ForwardNeeds(tape::PivotOp pivot) : pivot(pivot) {}

  void provide() {
    collect();
    Operation *next = nullptr;
    for (Operation *op = pivot->getNextNode(); op; op = next) {
      next = op->getNextNode();
      auto range = dyn_cast<ir::RangeOp>(op);
      if (range && pushes(range) && isLate(range))
        range->setAttr(measuredInPlaceAttr, UnitAttr::get(op->getContext()));
      if (!wanted.contains(op))
        continue;
      if (isOfHost(op) || !isMemoryEffectFree(op) || isLate(op))
        late.insert(op);
      else
        op->moveBefore(pivot);
    }
  }

private:
  static bool pushes(ir::RangeOp range) {
    return contains(range.getRegion(), isPush);
  }

  /// What forward sweeps use, and what that follows from.
  void collect() {
    auto want = [&](Value value) {
      Operation *op = value.getDefiningOp();
      if (op && op->getBlock() == pivot->getBlock())
        wanted.insert(op);
    };
    for (Operation *op = &pivot->getBlock()->back(); op != pivot;
         op = op->getPrevNode()) {
      if (wanted.contains(op))
        forEachUse(op, want);
      else if (auto range = dyn_cast<ir::RangeOp>(op); range && pushes(range))
        forEachUseInFront(range, want);
    }
  }

  bool isLate(Operation *op) {
    bool found = false;
    auto look = [&](Value value) {
      found |= late.contains(value.getDefiningOp());
    };
    if (auto range = dyn_cast<ir::RangeOp>(op))
      forEachUseInFront(range, look);
    else
      forEachUse(op, look);
    return found;
  }

  tape::PivotOp pivot;
  Operations wanted, late;
};

class Splitter {
public:
  explicit Splitter(ir::KernelOp kernel) : kernel(kernel) {}

  void run() {
    Block &block = kernel.getRegion().front();
    for (tape::PivotOp pivot : block.getOps<tape::PivotOp>())
      ForwardNeeds(pivot).provide();
    split(block);
  }

private:
  void split(Block &block) {
    known.insert(block.args_begin(), block.args_end());
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (isKnown(&op)) {
        known.insert(op.result_begin(), op.result_end());
      } else if (isOfHost(&op)) {
        close(&op);
        enter(&op);
      } else {
        group.insert(&op);
      }
    }
  }

  void enter(Operation *op) {
    if (isa<tape::PivotOp>(op)) {
      isPastPivot = true;
      op->erase();
      return;
    }
    if (isa<ir::RangeOp>(op)) {
      if (isPastPivot)
        op->setAttr(afterPivotAttr, UnitAttr::get(op->getContext()));
      return;
    }
    for (Region &region : op->getRegions())
      if (!region.empty())
        split(region.front());
    known.insert(op->result_begin(), op->result_end());
  }

  /// Integers that follow from what the host knows, and constants.
  bool isKnown(Operation *op) {
    if (op->hasTrait<OpTrait::ConstantLike>() || isa<ir::ExtentOp>(op))
      return true;
    auto isInteger = [](Type type) { return type.isIntOrIndex(); };
    auto count = dyn_cast<ir::TripCountOp>(op);
    return op->getNumResults() && !op->getNumRegions() &&
           (count ? count.cannotFail() : isPure(op)) &&
           llvm::all_of(op->getResultTypes(), isInteger) &&
           llvm::all_of(op->getOperandTypes(), isInteger) &&
           llvm::all_of(op->getOperands(),
                        [&](Value value) { return known.contains(value); });
  }

  bool isUsedOutside(Value value) {
    return llvm::any_of(value.getUsers(), [&](Operation *user) {
      Operation *top = value.getParentBlock()->findAncestorOpInBlock(*user);
      return !group.contains(top);
    });
  }

  /// A private array that several regions use stays in front of them; the group
  /// makes it 0 where it is declared.
  void share(ir::LocalOp local) {
    OpBuilder b(local);
    Operation *clear =
        ir::LocalClearOp::create(b, local.getLoc(), local.getLocal());
    SmallVector<Operation *> ops;
    for (Operation *op : group)
      ops.push_back(op == local ? clear : op);
    group.clear();
    group.insert(ops.begin(), ops.end());
    local->moveBefore(clear);
  }

  /// Makes a region of the group, in front of `end`.
  void close(Operation *end) {
    if (group.empty())
      return;
    for (Operation *op : llvm::to_vector(group))
      if (auto local = dyn_cast<ir::LocalOp>(op))
        if (isUsedOutside(local))
          share(local);
    SmallVector<Value> results;
    for (Operation *op : group)
      llvm::copy_if(op->getResults(), std::back_inserter(results),
                    [&](Value value) { return isUsedOutside(value); });
    OpBuilder b(end);
    Location loc = group.front()->getLoc();
    auto serial = ir::SerialOp::create(b, loc, ValueRange(results).getTypes(),
                                       isPastPivot);
    Block &body = serial.getBodyRegion().emplaceBlock();
    for (auto [value, result] : llvm::zip(results, serial.getValues()))
      value.replaceUsesWithIf(result, [&](OpOperand &use) {
        return !group.contains(
            value.getParentBlock()->findAncestorOpInBlock(*use.getOwner()));
      });
    for (Operation *op : group)
      op->moveBefore(&body, body.end());
    b.setInsertionPointToEnd(&body);
    ir::YieldOp::create(b, loc, results);
    group.clear();
  }

  ir::KernelOp kernel;
  llvm::DenseSet<Value> known; ///< to the host
  llvm::SetVector<Operation *> group;
  bool isPastPivot = false;
};

struct SplitSerial : impl::SplitSerialBase<SplitSerial> {
  void runOnOperation() override { Splitter(getOperation()).run(); }
};

} // namespace
} // namespace costate::conversion
