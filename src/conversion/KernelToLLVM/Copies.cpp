#include "conversion/KernelToLLVM/Copies.h"
#include "conversion/KernelToLLVM/Patterns.h"
#include "conversion/KernelToLLVM/Runtime.h"

#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace costate::conversion {

static bool isInLoop(Operation *op, Operation *around) {
  for (op = op->getParentOp(); op != around; op = op->getParentOp())
    if (isa<LoopLikeOpInterface>(op))
      return true;
  return false;
}

static bool isCopiedWith(ir::AtomicAddOp add) {
  Type type = cast<ir::ArrayType>(add.getArray().getType()).getElementType();
  unsigned width = type.getIntOrFloatBitWidth();
  return !add.getExclusive() && !add->hasAttr(slabAttr) &&
         !add->hasAttr(accumulatorAttr) && (width == 32 || width == 64);
}

/// Whether `range` does nothing else with the array than such additions.
static bool isOnlyAdded(Value array, ir::RangeOp range) {
  return llvm::all_of(array.getUsers(), [&](Operation *user) {
    auto add = dyn_cast<ir::AtomicAddOp>(user);
    return !range->isAncestor(user) || isa<ir::ExtentOp>(user) ||
           (add && isCopiedWith(add));
  });
}

SmallVector<CopiedArray> markCopied(ir::RangeOp range) {
  llvm::MapVector<Value, CopiedArray> arrays;
  range.getBodyRegion().walk([&](ir::AtomicAddOp add) {
    Value array = add.getArray();
    if (!isCopiedWith(add) || !isOnlyAdded(array, range))
      return;
    CopiedArray &copied = arrays[array];
    copied.array = array;
    ++copied.additions;
    copied.isInLoop |= isInLoop(add, range);
    int64_t number = arrays.find(array) - arrays.begin();
    add->setAttr(copyAttr, Builder(range).getI64IntegerAttr(number));
  });
  return llvm::map_to_vector(arrays, [](auto &one) { return one.second; });
}

namespace {

/// An index that all work items of a range have in common.
struct Common {
  Value root; ///< null: 0
  int64_t shift = 0;

  bool operator==(const Common &) const = default;
};

/// Of `index`, if it is.
std::optional<Common> commonOf(Value index, ir::RangeOp range) {
  Common common{index};
  APInt constant;
  for (Operation *op; (op = common.root.getDefiningOp());) {
    if (matchPattern(common.root, m_ConstantInt(&constant))) {
      common.shift += constant.getSExtValue();
      common.root = {};
      return common;
    }
    bool isSum = isa<arith::AddIOp>(op), isDifference = isa<arith::SubIOp>(op);
    if ((!isSum && !isDifference) ||
        !matchPattern(op->getOperand(1), m_ConstantInt(&constant)))
      break;
    common.shift += isSum ? constant.getSExtValue() : -constant.getSExtValue();
    common.root = op->getOperand(0);
  }
  if (range.getBodyRegion().isAncestor(common.root.getParentRegion()))
    return std::nullopt;
  return common;
}

using Prefix = SmallVector<Common, 4>;

/// The elements of an array that begin with the same common indices, and the
/// additions to them.
struct Slice {
  Prefix prefix;
  SmallVector<ir::AtomicAddOp> additions;
};

/// Slices of one array.
class Slicer {
public:
  Slicer(ir::RangeOp range, Value array) : range(range), array(array) {}

  void run() {
    for (Operation *user : array.getUsers())
      if (range->isAncestor(user) && !isa<ir::ExtentOp>(user))
        add(user);
    while (mergeTwo()) {
    }
    for (Slice &slice : slices)
      if (!slice.prefix.empty() && isApart(slice))
        extract(slice);
  }

private:
  Prefix prefixOf(Operation *op) {
    Prefix prefix;
    if (auto access = dyn_cast<ir::ElementAccess>(op))
      for (Value index : access.getIndices()) {
        std::optional<Common> common = commonOf(index, range);
        if (!common)
          break;
        prefix.push_back(*common);
      }
    return prefix;
  }

  void add(Operation *user) {
    auto addition = dyn_cast<ir::AtomicAddOp>(user);
    if (!addition || !isCopiedWith(addition))
      others.push_back(prefixOf(user));
    else
      slices.push_back({prefixOf(user), {addition}});
  }

  static bool areApart(const Prefix &a, const Prefix &b) {
    return llvm::any_of(llvm::zip(a, b), [](auto pair) {
      auto &[x, y] = pair;
      return x.root == y.root && x.shift != y.shift;
    });
  }

  bool isApart(const Slice &slice) {
    return llvm::all_of(others, [&](const Prefix &other) {
      return areApart(slice.prefix, other);
    });
  }

  /// What may have elements in common becomes one slice.
  bool mergeTwo() {
    for (Slice &a : slices)
      for (Slice &b : slices)
        if (&a < &b && !areApart(a.prefix, b.prefix)) {
          merge(a, b);
          slices.erase(&b);
          return true;
        }
    return false;
  }

  static void merge(Slice &a, const Slice &b) {
    size_t same = 0;
    while (same < std::min(a.prefix.size(), b.prefix.size()) &&
           a.prefix[same] == b.prefix[same])
      ++same;
    a.prefix.truncate(same);
    llvm::append_range(a.additions, b.additions);
  }

  void extract(Slice &slice) {
    ImplicitLocOpBuilder b(range.getLoc(), range);
    ArrayView whole(array);
    size_t dims = slice.prefix.size();
    auto type = cast<ir::ArrayType>(array.getType());
    SmallVector<Value> parts = {placeOf(b, slice.prefix)};
    llvm::append_range(parts, whole.extents.drop_front(dims));
    Value part =
        castToArray(b, parts,
                    ir::ArrayType::get(b.getContext(), type.getElementType(),
                                       type.getRank() - dims),
                    whole.parameter);
    for (ir::AtomicAddOp addition : slice.additions) {
      SmallVector<Value> rest(addition.getIndices().drop_front(dims));
      addition.getArrayMutable().assign(part);
      addition.getIndicesMutable().assign(rest);
    }
  }

  /// The first element of the slice, which is there if anything is added.
  Value placeOf(ImplicitLocOpBuilder &b, const Prefix &prefix) {
    ArrayView whole(array);
    Value number;
    for (auto [dim, extent] : llvm::enumerate(whole.extents)) {
      if (number)
        number = arith::MulIOp::create(b, number, extent);
      if (dim >= prefix.size())
        continue;
      Value index = valueOf(b, prefix[dim]);
      number = number ? arith::AddIOp::create(b, number, index) : index;
    }
    Type element = cast<ir::ArrayType>(array.getType()).getElementType();
    return LLVM::GEPOp::create(b, whole.base.getType(), memoryType(element),
                               whole.base, ValueRange(number));
  }

  static Value valueOf(ImplicitLocOpBuilder &b, const Common &common) {
    Value shift = constant(b, common.shift);
    if (!common.root)
      return shift;
    return common.shift ? arith::AddIOp::create(b, common.root, shift)
                        : common.root;
  }

  ir::RangeOp range;
  Value array;
  SmallVector<Slice> slices;
  SmallVector<Prefix> others;
};

} // namespace

void sliceCopied(ir::RangeOp range) {
  llvm::SetVector<Value> arrays;
  range.getBodyRegion().walk([&](ir::AtomicAddOp add) {
    if (isCopiedWith(add))
      arrays.insert(add.getArray());
  });
  for (Value array : arrays)
    Slicer(range, array).run();
}

} // namespace costate::conversion
