#include "autodiff/replay/Accesses.h"

#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace costate::autodiff {

void ArrayAccess::redirect(Value other) const {
  llvm::find_if(op->getOpOperands(), [&](OpOperand &operand) {
    return operand.get() == array;
  })->set(other);
}

std::optional<int64_t> integerOf(Operation *op, StringRef attribute) {
  auto number = op->getAttrOfType<IntegerAttr>(attribute);
  return number ? std::optional(number.getInt()) : std::nullopt;
}

BlockArgument appendArray(ir::KernelOp kernel, Value array, Type type,
                          StringRef attribute) {
  Builder b(kernel.getContext());
  auto note = b.getDictionaryAttr(
      b.getNamedAttr(attribute, b.getI64IntegerAttr(argumentOf(array))));
  unsigned last = kernel.getNumArguments();
  (void)kernel.insertArgument(last, type, note, array.getLoc());
  return kernel.getArgument(last);
}

ir::KernelOp copyOf(ir::KernelOp kernel, StringRef suffix) {
  OpBuilder builder(kernel->getContext());
  builder.setInsertionPointAfter(kernel);
  auto copy = cast<ir::KernelOp>(builder.clone(*kernel));
  copy.setSymName((kernel.getSymName() + suffix).str());
  return copy;
}

std::optional<ArrayAccess> accessOf(Operation *op) {
  if (auto access = dyn_cast<ir::ElementAccess>(op))
    return ArrayAccess{op, access.getArray(), access.getIndices()};
  return std::nullopt;
}

Relation relate(OperandRange one, OperandRange other) {
  bool same = true;
  for (auto [a, b] : llvm::zip(one, other)) {
    auto distance = constantDifference(Affine::of(a), Affine::of(b));
    if (distance && *distance != 0)
      return Relation::Apart;
    same &= distance.has_value();
  }
  return same ? Relation::Same : Relation::Unknown;
}

SmallVector<ArrayAccess> accessesIn(Operation *op) {
  SmallVector<ArrayAccess> accesses;
  op->walk<WalkOrder::PreOrder>([&](Operation *nested) {
    if (auto access = accessOf(nested))
      accesses.push_back(*access);
  });
  return accesses;
}

llvm::MapVector<Value, SmallVector<ArrayAccess>>
accessesByArray(Operation *op) {
  llvm::MapVector<Value, SmallVector<ArrayAccess>> byArray;
  for (const ArrayAccess &access : accessesIn(op))
    byArray[access.array].push_back(access);
  return byArray;
}

bool isSerialValue(Value value) {
  return isa<ir::KernelOp>(value.getParentBlock()->getParentOp());
}

bool holdsRanges(Operation *op) {
  return ir::contains(op, [op](Operation *inner) {
    return inner != op && isa<ir::RangeOp>(inner);
  });
}

bool isUniform(Value value, ir::RangeOp range) {
  return matchPattern(value, m_Constant()) ||
         !range.getRegion().isAncestor(value.getParentRegion());
}

bool isAtMostOne(Value extent) {
  APInt count;
  return matchPattern(extent, m_ConstantInt(&count)) && count.sle(1);
}

/// Whether dimension `dim` of all accesses is the same multiple of `index` plus
/// constants that differ by less than the multiple.
static bool separates(ArrayRef<ArrayAccess> accesses, unsigned dim,
                      Value index) {
  Affine first = Affine::of(accesses.front().indices[dim]);
  int64_t slope = first.coefficient(index), low = 0, high = 0;
  if (first.terms.size() != 1 || slope == 0)
    return false;
  for (const ArrayAccess &access : accesses) {
    auto distance = constantDifference(Affine::of(access.indices[dim]), first);
    if (!distance)
      return false;
    low = std::min(low, *distance);
    high = std::max(high, *distance);
  }
  uint64_t spread = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
  uint64_t step = static_cast<uint64_t>(slope);
  return spread < (slope < 0 ? -step : step);
}

bool areExclusive(ir::RangeOp range, ArrayRef<ArrayAccess> accesses) {
  unsigned rank = accesses.front().indices.size();
  return llvm::all_of(range.getIndices(), [&](Value index) {
    return llvm::any_of(llvm::seq(rank), [&](unsigned dim) {
      return separates(accesses, dim, index);
    });
  });
}

llvm::DenseSet<Value> exclusiveArrays(ir::RangeOp range) {
  llvm::DenseSet<Value> exclusive;
  for (auto &[array, accesses] : accessesByArray(range))
    if (areExclusive(range, accesses))
      exclusive.insert(array);
  return exclusive;
}

void markExclusive(ir::KernelOp kernel) {
  kernel.walk([](ir::RangeOp range) {
    llvm::DenseSet<Value> exclusive = exclusiveArrays(range);
    range.walk([&](Operation *op) {
      llvm::TypeSwitch<Operation *>(op)
          .Case<ir::AtomicAddOp, ir::AtomicMinOp, ir::AtomicMaxOp>(
              [&](auto update) {
                if (exclusive.contains(update.getArray()))
                  update.setExclusive(true);
              });
    });
  });
}

//===-- Sections ----------------------------------------------------------===//

/// The index as a constant or a scalar argument plus a constant, if it is one.
static std::optional<SliceIndex> sliceOf(Value index) {
  Affine form = Affine::of(index);
  if (form.isConstant())
    return SliceIndex{-1, form.constant};
  auto [symbol, coefficient] = *form.terms.begin();
  auto argument = dyn_cast<BlockArgument>(symbol);
  if (form.terms.size() != 1 || coefficient != 1 || !argument ||
      !isa<ir::KernelOp>(argument.getOwner()->getParentOp()))
    return std::nullopt;
  return SliceIndex{static_cast<int32_t>(argument.getArgNumber()),
                    form.constant};
}

void widen(std::optional<ArraySection> &section, const ArrayAccess &access) {
  bool started = section.has_value();
  if (!started)
    section.emplace().dims.resize(access.indices.size());
  for (auto [slices, index] : llvm::zip(section->dims, access.indices)) {
    if (started && slices.empty())
      continue;
    std::optional<SliceIndex> slice = sliceOf(index);
    if (!slice)
      slices.clear();
    else if (!llvm::is_contained(slices, *slice))
      slices.push_back(*slice);
  }
}

std::vector<ArraySection>
complete(ArrayRef<std::optional<ArraySection>> sections) {
  std::vector<ArraySection> all;
  for (const std::optional<ArraySection> &section : sections)
    all.push_back(section.value_or(ArraySection()));
  return all;
}

} // namespace costate::autodiff
