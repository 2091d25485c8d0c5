#include "conversion/LLVMToSPIRV/Lanes.h"
#include "conversion/LLVMToSPIRV/Operations.h"
#include "conversion/LLVMToSPIRV/Saturation.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
namespace spv = mlir::spirv;

namespace costate::conversion {
namespace {

//===-- Arithmetic --------------------------------------------------------===//

/// Of which operands the sign counts.
enum class Signed { None, First, Both };

/// What computes it from words, and from two bools; null: nothing.
struct Rule {
  Binary ofWords, ofBools;
  Signed operands;
};

unsigned bitsOf(Value value) {
  if (auto number = dyn_cast<IntegerType>(value.getType()))
    return number.getWidth();
  return 64;
}

/// `number`, hidden in a way that other sums do not mix with if it stands for
/// an extremum `value` that `other` is added to or taken from.
Value hiddenExtremum(SpirvBuilder &b, Value number, Value value, Value other) {
  if (!isExtremumOf(value, other))
    return number;
  return spv::BitwiseXorOp::create(b, number, laneOrZero(b, number.getType()));
}

/// The sign of a remainder of negative numbers is left open.
Value remainder(SpirvBuilder &b, Value x, Value y) {
  Value whole = spv::IMulOp::create(b, spv::SDivOp::create(b, x, y), y);
  return spv::ISubOp::create(b, x, whole);
}

bool isNegation(Operation *op, unsigned bits) {
  return isa<LLVM::SubOp>(op) && bits >= wordBits &&
         matchPattern(op->getOperand(0), m_Zero());
}

LogicalResult arithmetic(Translation &t, Operation *op, const Rule &rule) {
  SpirvBuilder &b = t.b;
  unsigned bits = bitsOf(op->getResult(0));
  Value x = t.operand(op, 0), y = t.operand(op, 1);
  if (bits == 1)
    return rule.ofBools ? t.set(op, rule.ofBools(b, x, y)) : t.none(op);
  bool hidesSum = isWideSum(op) && b.features().miscompilesSaturation;
  if (hidesSum) {
    x = hiddenExtremum(b, x, op->getOperand(0), op->getOperand(1));
    y = hiddenExtremum(b, y, op->getOperand(1), op->getOperand(0));
  }
  if (rule.operands != Signed::None)
    x = b.extended(x, bits);
  if (rule.operands == Signed::Both)
    y = b.extended(y, bits);
  if (isNegation(op, bits) && b.features().miscompilesNegatedMinimum)
    x = perLane(b, x);
  Value result = rule.ofWords(b, x, y);
  if (hidesSum && maySaturate(op))
    result = perLane(b, result);
  return t.set(op, b.masked(result, bits));
}

template <class Op, Binary ofWords, Binary ofBools = nullptr,
          Signed operands = Signed::None>
KnownOperation integers() {
  return {Op::getOperationName(), [](Translation &t, Operation *op) {
            return arithmetic(t, op, {ofWords, ofBools, operands});
          }};
}

//===-- Bits --------------------------------------------------------------===//

template <Unary compute> LogicalResult ofBits(Translation &t, Operation *op) {
  return t.set(op, compute(t.b, t.operand(op, 0)));
}

Value leadingZeros(SpirvBuilder &b, Value x) {
  Value most = b.i32(wordBits - 1);
  return spv::ISubOp::create(b, most, spv::GLFindUMsbOp::create(b, x));
}

Value trailingZeros(SpirvBuilder &b, Value x) {
  Value isNone = spv::IEqualOp::create(b, x, b.i32(0));
  Value all = b.i32(wordBits);
  return b.select(isNone, all, spv::GLFindILsbOp::create(b, x));
}

//===-- Comparisons -------------------------------------------------------===//

struct Comparison {
  Binary compare;
  bool isSigned;
};

Comparison comparison(LLVM::ICmpPredicate predicate) {
  using Is = LLVM::ICmpPredicate;
  switch (predicate) {
  case Is::eq:
    return {make<spv::IEqualOp>, false};
  case Is::ne:
    return {make<spv::INotEqualOp>, false};
  case Is::slt:
    return {make<spv::SLessThanOp>, true};
  case Is::sle:
    return {make<spv::SLessThanEqualOp>, true};
  case Is::sgt:
    return {make<spv::SGreaterThanOp>, true};
  case Is::sge:
    return {make<spv::SGreaterThanEqualOp>, true};
  case Is::ult:
    return {make<spv::ULessThanOp>, false};
  case Is::ule:
    return {make<spv::ULessThanEqualOp>, false};
  case Is::ugt:
    return {make<spv::UGreaterThanOp>, false};
  case Is::uge:
    return {make<spv::UGreaterThanEqualOp>, false};
  }
}

LogicalResult compare(Translation &t, LLVM::ICmpOp op) {
  SpirvBuilder &b = t.b;
  Value x = t.operand(op, 0), y = t.operand(op, 1);
  unsigned bits = bitsOf(op.getLhs());
  if (!isa<IntegerType>(op.getLhs().getType()))
    bits = x.getType().getIntOrFloatBitWidth();
  if (bits == 1) {
    x = b.resized(x, b.getI32Type());
    y = b.resized(y, b.getI32Type());
  }
  auto [compare, isSigned] = comparison(op.getPredicate());
  auto withSign = [&](Value number) -> Value {
    return bits == 1 ? spv::SNegateOp::create(b, number).getResult()
                     : b.extended(number, bits);
  };
  if (isSigned) {
    x = withSign(x);
    y = withSign(y);
  }
  return t.set(op, compare(b, x, y));
}

} // namespace

llvm::ArrayRef<KnownOperation> integerOperations() {
  constexpr Binary isOther = make<spv::LogicalNotEqualOp>;
  constexpr Binary both = make<spv::LogicalAndOp>;
  static const KnownOperation all[] = {
      integers<LLVM::AddOp, make<spv::IAddOp>, isOther>(),
      integers<LLVM::SubOp, make<spv::ISubOp>, isOther>(),
      integers<LLVM::MulOp, make<spv::IMulOp>, both>(),
      integers<LLVM::UDivOp, make<spv::UDivOp>>(),
      integers<LLVM::URemOp, make<spv::UModOp>>(),
      integers<LLVM::SDivOp, make<spv::SDivOp>, nullptr, Signed::Both>(),
      integers<LLVM::SRemOp, remainder, nullptr, Signed::Both>(),
      integers<LLVM::AndOp, make<spv::BitwiseAndOp>, both>(),
      integers<LLVM::OrOp, make<spv::BitwiseOrOp>, make<spv::LogicalOrOp>>(),
      integers<LLVM::XOrOp, make<spv::BitwiseXorOp>, isOther>(),
      integers<LLVM::ShlOp, make<spv::ShiftLeftLogicalOp>>(),
      integers<LLVM::LShrOp, make<spv::ShiftRightLogicalOp>>(),
      integers<LLVM::AShrOp, make<spv::ShiftRightArithmeticOp>, nullptr,
               Signed::First>(),
      row<LLVM::CountLeadingZerosOp, ofBits<leadingZeros>>(),
      row<LLVM::CountTrailingZerosOp, ofBits<trailingZeros>>(),
      row<LLVM::CtPopOp, ofBits<make<spv::BitCountOp>>>(),
      row<LLVM::BitReverseOp, ofBits<make<spv::BitReverseOp>>>(),
      row<LLVM::ICmpOp, compare>(),
  };
  return all;
}

} // namespace costate::conversion
