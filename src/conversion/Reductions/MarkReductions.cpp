#include "conversion/KernelToLLVM/Accumulators.h"
#include "conversion/Reductions/Passes.h"
#include "ir/Blocks.h"

#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/DenseMap.h"

using namespace mlir;

namespace costate::conversion {
#define GEN_PASS_DEF_MARKREDUCTIONS
#include "conversion/Reductions/Passes.h.inc"

namespace {

/// Whether lanes that come to a use of a value together likely agree on it: it
/// does not follow from the indices of the range.
class CommonValues {
public:
  explicit CommonValues(ir::RangeOp range) : region(range.getBodyRegion()) {}

  bool contain(Value value) {
    if (!region.isAncestor(value.getParentRegion()))
      return true;
    // What a loop carries may depend on itself.
    auto [known, isNew] = seen.try_emplace(value, true);
    if (!isNew)
      return known->second;
    bool common = find(value);
    seen[value] = common;
    return common;
  }

private:
  bool find(Value value) {
    if (auto argument = dyn_cast<BlockArgument>(value))
      return findArgument(argument);
    auto result = cast<OpResult>(value);
    Operation *op = result.getOwner();
    unsigned number = result.getResultNumber();
    if (auto loop = dyn_cast<scf::ForOp>(op))
      return contain(loop.getInitArgs()[number]) &&
             contain(loop.getYieldedValues()[number]);
    if (auto loop = dyn_cast<scf::WhileOp>(op))
      return contain(loop.getConditionOp().getArgs()[number]);
    if (auto branch = dyn_cast<scf::IfOp>(op))
      return contain(branch.getCondition()) &&
             contain(branch.thenYield().getResults()[number]) &&
             contain(branch.elseYield().getResults()[number]);
    return !op->getNumRegions() &&
           (isMemoryEffectFree(op) || isa<ir::LoadOp>(op)) &&
           llvm::all_of(op->getOperands(), [&](Value v) { return contain(v); });
  }

  bool findArgument(BlockArgument argument) {
    Operation *parent = argument.getOwner()->getParentOp();
    unsigned number = argument.getArgNumber();
    if (auto loop = dyn_cast<scf::ForOp>(parent))
      return number == 0 ? contain(loop.getLowerBound())
                         : contain(loop.getInitArgs()[number - 1]) &&
                               contain(loop.getYieldedValues()[number - 1]);
    auto loop = dyn_cast<scf::WhileOp>(parent);
    if (!loop)
      return false;
    if (argument.getOwner() == loop.getAfterBody())
      return contain(loop.getConditionOp().getArgs()[number]);
    return contain(loop.getInits()[number]) &&
           contain(loop.getYieldOp().getResults()[number]);
  }

  Region &region;
  llvm::DenseMap<Value, bool> seen;
};

class Marker {
public:
  Marker(ir::RangeOp range, size_t most)
      : most(most), range(range), region(range.getBodyRegion()), common(range) {
    auto pivots = range.getBody()->getOps<tape::PivotOp>();
    if (!pivots.empty())
      pivot = *pivots.begin();
  }

  /// Barriers of blocks are not for those of sums to come between.
  void run() {
    if (ir::hasBlocks(range))
      return;
    SmallVector<ir::AtomicAddOp> adds;
    region.walk([&](ir::AtomicAddOp add) {
      if (!add.getExclusive() && !add->hasAttr(ir::replayedAttr))
        adds.push_back(add);
    });
    for (ir::AtomicAddOp add : adds)
      mark(add);
    markAccumulators();
  }

private:
  void mark(ir::AtomicAddOp add) {
    Builder b(add.getContext());
    if (std::optional<size_t> number =
            isSum(add) ? numberOf(add, elements) : std::nullopt)
      add->setAttr(reductionAttr, b.getI64IntegerAttr(*number));
    else if (llvm::all_of(add.getIndices(),
                          [&](Value v) { return common.contain(v); }))
      markCommon(add);
    else if (isWideFloat(add.getValue().getType()) &&
             ir::isOfAdjoint(add.getArray()))
      add->setAttr(skipsZerosAttr, b.getUnitAttr());
  }

  /// Blocks keep such sums until they end, where nobody may find them before.
  void markCommon(ir::AtomicAddOp add) {
    UnitAttr flag = UnitAttr::get(add.getContext());
    add->setAttr(commonAttr, flag);
    auto array = cast<ir::ArrayType>(add.getArray().getType());
    if (isWideFloat(array.getElementType()) && isReverse(add) &&
        isOnlyAddedTo(add.getArray()))
      add->setAttr(inBlockAttr, flag);
  }

  static bool isWideFloat(Type type) {
    return isa<FloatType>(type) && !ir::isNarrow(type);
  }

  bool isSum(ir::AtomicAddOp add) {
    return isa<FloatType>(add.getValue().getType()) && isReverse(add) &&
           llvm::all_of(add.getIndices(),
                        [&](Value v) { return isFixed(v); }) &&
           isOnlyAddedTo(add.getArray());
  }

  //===-- Updates of integers ---------------------------------------------===//

  void markAccumulators() {
    SmallVector<ir::ElementAccess> updates;
    region.walk([&](ir::ElementAccess access) {
      if (isAccumulated(access))
        updates.push_back(access);
    });
    Builder b(range.getContext());
    SmallVector<ir::ElementAccess> known;
    for (ir::ElementAccess access : updates)
      if (std::optional<size_t> number = numberOf(access, known))
        access->setAttr(accumulatorAttr, b.getI64IntegerAttr(*number));
  }

  bool isAccumulated(ir::ElementAccess access) {
    std::optional<Update> update = updateOf(access);
    return update && access->getOperand(0).getType().isInteger() &&
           !access->hasAttr(ir::replayedAttr) && isReverse(access) &&
           llvm::all_of(access.getIndices(),
                        [&](Value v) { return isFixed(v); }) &&
           isOnlyUpdated(access.getArray(), *update);
  }

  /// By updates of one kind, whose order does not matter.
  bool isOnlyUpdated(Value array, Update update) {
    return llvm::all_of(array.getUsers(), [&](Operation *user) {
      return updateOf(user) == update || isa<ir::ExtentOp>(user) ||
             !region.isAncestor(user->getParentRegion());
    });
  }

  bool isReverse(Operation *op) {
    Operation *top = range.getBody()->findAncestorOpInBlock(*op);
    return !pivot || pivot->isBeforeInBlock(top);
  }

  bool isFixed(Value value) {
    return matchPattern(value, m_Constant()) ||
           !region.isAncestor(value.getParentRegion());
  }

  bool isOnlyAddedTo(Value array) {
    return llvm::all_of(array.getUsers(), [&](Operation *user) {
      return isa<ir::AtomicAddOp, ir::ExtentOp>(user) ||
             !region.isAncestor(user->getParentRegion());
    });
  }

  /// Of the element among `known`; nothing if there are too many.
  std::optional<size_t> numberOf(ir::ElementAccess access,
                                 SmallVector<ir::ElementAccess> &known) {
    OpBuilder b(range);
    size_t first = access->getNumOperands() - access.getIndices().size();
    for (auto [k, index] : llvm::enumerate(access.getIndices()))
      access->setOperand(first + k, inFront(b, index));
    auto isSame = [&](ir::ElementAccess other) {
      return other.getArray() == access.getArray() &&
             llvm::equal(other.getIndices(), access.getIndices(), isEqual);
    };
    auto same = llvm::find_if(known, isSame);
    if (same == known.end()) {
      if (known.size() == most)
        return std::nullopt;
      same = known.insert(known.end(), access);
    }
    return same - known.begin();
  }

  static bool isEqual(Value a, Value b) {
    APInt x, y;
    return a == b || (matchPattern(a, m_ConstantInt(&x)) &&
                      matchPattern(b, m_ConstantInt(&y)) && x == y);
  }

  /// A constant, or what is there already.
  Value inFront(OpBuilder &b, Value value) {
    if (!region.isAncestor(value.getParentRegion()))
      return value;
    Value &moved = constants[value];
    if (!moved)
      moved = b.clone(*value.getDefiningOp())->getResult(0);
    return moved;
  }

  const size_t most; ///< elements of a range
  ir::RangeOp range;
  Region &region;
  tape::PivotOp pivot;
  CommonValues common;
  SmallVector<ir::ElementAccess> elements; ///< one addition to each
  llvm::DenseMap<Value, Value> constants;  ///< in front of the range
};

struct MarkReductions : impl::MarkReductionsBase<MarkReductions> {
  using MarkReductionsBase::MarkReductionsBase;

  void runOnOperation() override {
    getOperation().walk([&](ir::RangeOp range) { Marker(range, most).run(); });
  }
};

} // namespace
} // namespace costate::conversion
