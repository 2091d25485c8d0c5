#include "sizing/Narrow.h"

#include "ir/Kernel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace costate::sizing {
namespace {

/// The largest number that an integer may be; none: that is not known, or it
/// may be negative.
class Bound {
public:
  static std::optional<uint64_t> of(Value value, unsigned depth = 0) {
    constexpr unsigned deepest = 8;
    APInt known;
    if (matchPattern(value, m_ConstantInt(&known)))
      return known.isNegative() ? std::nullopt
                                : std::optional(known.getZExtValue());
    if (depth == deepest || !isa<IntegerType>(value.getType()))
      return std::nullopt;
    if (auto argument = dyn_cast<BlockArgument>(value))
      return ofArgument(argument, depth + 1);
    return ofResult(value.getDefiningOp(), depth + 1);
  }

private:
  using Most = std::optional<uint64_t>;

  /// The counter of a loop.
  static Most ofArgument(BlockArgument argument, unsigned depth) {
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    if (!loop || argument.getArgNumber() > 0 ||
        !matchPattern(loop.getLowerBound(), m_Zero()) ||
        !matchPattern(loop.getStep(), m_One()))
      return std::nullopt;
    return of(loop.getUpperBound(), depth);
  }

  static Most ofResult(Operation *op, unsigned depth) {
    auto operand = [&](unsigned k) { return of(op->getOperand(k), depth); };
    if (isa<arith::AndIOp, arith::MinUIOp>(op))
      return smaller(operand(0), operand(1));
    if (isa<arith::MinSIOp>(op))
      return both(operand(0), operand(1),
                  [](uint64_t x, uint64_t y) { return std::min(x, y); });
    if (isa<arith::SelectOp>(op))
      return both(operand(1), operand(2),
                  [](uint64_t x, uint64_t y) { return std::max(x, y); });
    if (isa<arith::ExtUIOp>(op))
      return ofBits(op->getOperand(0).getType());
    if (auto count = dyn_cast<ir::TripCountOp>(op))
      return ofCount(count, depth);
    return std::nullopt;
  }

  /// From 0 upwards there are not more iterations than numbers, and none to a
  /// negative one.
  static Most ofCount(ir::TripCountOp count, unsigned depth) {
    APInt step;
    bool isUpwards = matchPattern(count.getLo(), m_Zero()) &&
                     matchPattern(count.getStep(), m_ConstantInt(&step)) &&
                     step.isStrictlyPositive();
    if (!isUpwards)
      return std::nullopt;
    if (auto least = count.getHi().getDefiningOp<arith::MinSIOp>())
      return smaller(of(least.getLhs(), depth), of(least.getRhs(), depth));
    return of(count.getHi(), depth);
  }

  static Most ofBits(Type type) {
    return llvm::maskTrailingOnes<uint64_t>(type.getIntOrFloatBitWidth());
  }

  static Most smaller(Most x, Most y) {
    return x && y ? std::min(*x, *y) : x ? x : y;
  }

  template <class F> static Most both(Most x, Most y, F of) {
    return x && y ? Most(of(*x, *y)) : std::nullopt;
  }
};

/// The narrow numbers that a value is one of, also where loops and branches
/// hand them on.
class Element {
public:
  /// Null: none.
  Type of(Value value) {
    Type element = find(value);
    bool isNarrow = element && !isa<NoneType>(element) && ir::isNarrow(element);
    return isNarrow ? element : Type();
  }

private:
  /// `none`: a constant that all types have that it may meet.
  Type find(Value value) {
    constexpr unsigned mostSteps = 64;
    if (++steps > mostSteps)
      return {};
    if (Type assumed = carried.lookup(value))
      return assumed;
    FloatAttr number;
    if (matchPattern(value, m_Constant(&number)) && number)
      return isHalf(number) ? NoneType::get(value.getContext()) : Type();
    if (auto argument = dyn_cast<BlockArgument>(value))
      return ofCarried(argument);
    Operation *op = value.getDefiningOp();
    unsigned result = cast<OpResult>(value).getResultNumber();
    if (auto load = dyn_cast<ir::LoadOp>(op))
      return cast<ir::ArrayType>(load.getArray().getType()).getElementType();
    if (auto narrow = dyn_cast<ir::NarrowOp>(op))
      return narrow.getElement();
    if (auto select = dyn_cast<arith::SelectOp>(op))
      return join(find(select.getTrueValue()), find(select.getFalseValue()));
    if (auto branch = dyn_cast<scf::IfOp>(op))
      return join(find(branch.thenYield().getOperand(result)),
                  find(branch.elseYield().getOperand(result)));
    if (auto loop = dyn_cast<scf::ForOp>(op))
      return ofCarried(loop.getRegionIterArg(result));
    return {};
  }

  /// If that holds at the start of one iteration, and so at the start of the
  /// next one.
  Type ofCarried(BlockArgument argument) {
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    if (!loop || argument.getArgNumber() == 0)
      return {};
    unsigned number = argument.getArgNumber() - 1;
    Type first = find(loop.getInitArgs()[number]);
    if (!first)
      return {};
    carried[argument] = first;
    Type all = join(first, find(loop.getYieldedValues()[number]));
    if (all && all != first) { // known only now
      carried[argument] = all;
      all = join(all, find(loop.getYieldedValues()[number]));
    }
    carried.erase(argument);
    return all;
  }

  static bool isHalf(FloatAttr number) {
    APFloat value = number.getValue();
    bool loses = false;
    value.convert(APFloat::IEEEhalf(), APFloat::rmNearestTiesToEven, &loses);
    return !loses && number.getType().isF32();
  }

  static Type join(Type a, Type b) {
    if (!a || !b || a == b)
      return a && b ? a : Type();
    return isa<NoneType>(a) ? b : isa<NoneType>(b) ? a : Type();
  }

  llvm::DenseMap<Value, Type> carried; ///< assumed
  unsigned steps = 0;
};

/// Without a sign if it has none.
Type typeOfElement(Type element) {
  unsigned bits = element.getIntOrFloatBitWidth();
  if (element.isF16())
    return element;
  bool isUnsigned = element.isUnsignedInteger();
  return IntegerType::get(element.getContext(), bits,
                          isUnsigned ? IntegerType::Signless
                                     : IntegerType::Signed);
}

/// The signed type of 8 or 16 bits that has been clamped to; null: none.
Type clampedTo(Value value) {
  auto above = value.getDefiningOp<arith::MaxSIOp>();
  auto below = above ? above.getLhs().getDefiningOp<arith::MinSIOp>() : nullptr;
  APInt least, most;
  if (!below || !matchPattern(above.getRhs(), m_ConstantInt(&least)) ||
      !matchPattern(below.getRhs(), m_ConstantInt(&most)))
    return {};
  for (unsigned bits : {8, 16})
    if (least.isSignedIntN(bits) && most.isSignedIntN(bits))
      return IntegerType::get(value.getContext(), bits, IntegerType::Signed);
  return {};
}

} // namespace

Type storedType(Value value) {
  if (Type element = Element().of(value))
    return typeOfElement(element);
  if (Type element = clampedTo(value))
    return element;
  Type type = value.getType();
  std::optional<uint64_t> most =
      isa<IntegerType>(type) ? Bound::of(value) : std::nullopt;
  if (!most)
    return type;
  for (unsigned bits : {8, 16, 32})
    if (bits < type.getIntOrFloatBitWidth() &&
        *most <= llvm::maskTrailingOnes<uint64_t>(bits))
      return IntegerType::get(value.getContext(), bits);
  return type;
}

SmallVector<Type> storedTypes(ValueRange values) {
  return llvm::map_to_vector(values, storedType);
}

} // namespace costate::sizing
