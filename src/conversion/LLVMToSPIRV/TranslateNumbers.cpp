#include "conversion/LLVMToSPIRV/Saturation.h"
#include "conversion/LLVMToSPIRV/Translator.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
namespace spv = mlir::spirv;

namespace costate::conversion {

static constexpr unsigned wordBits = 32;

//===-- Types and constants -----------------------------------------------===//

Type Translator::wordOf(unsigned bits) {
  if (bits == 1)
    return b.getI1Type();
  return bits <= wordBits ? b.getI32Type() : b.getI64Type();
}

Type Translator::typeOf(Type type) {
  if (auto pointer = dyn_cast<LLVM::LLVMPointerType>(type))
    return isGlobal(pointer.getAddressSpace()) ? b.getI64Type()
                                               : b.getI32Type();
  if (type.isIndex())
    return b.getI32Type();
  if (auto number = dyn_cast<IntegerType>(type))
    return number.getWidth() <= 64 ? wordOf(number.getWidth()) : Type();
  if (type.isF16() || type.isF32() || type.isF64()) {
    module.needType(type);
    return type;
  }
  return {};
}

Value Translator::integer(Type type, APInt value) {
  if (type.isInteger(1))
    return spv::ConstantOp::create(b, type, b.getBoolAttr(!value.isZero()));
  return spv::ConstantOp::create(
      b, type,
      b.getIntegerAttr(type, value.zextOrTrunc(type.getIntOrFloatBitWidth())));
}

Value Translator::i32(int64_t value) {
  return integer(b.getI32Type(), APInt(32, value, true, true));
}

Value Translator::i64(int64_t value) {
  return integer(b.getI64Type(), APInt(64, value, true, true));
}

Value Translator::zeroOf(Type type) {
  if (isa<FloatType>(type))
    return spv::ConstantOp::create(b, type, b.getFloatAttr(type, 0.0));
  return integer(type, APInt(64, 0));
}

Value Translator::constantOf(Type type, Attribute value) {
  if (auto number = dyn_cast<IntegerAttr>(value))
    return integer(type, number.getValue());
  if (isa<FloatAttr>(value))
    return spv::ConstantOp::create(b, type, value);
  return {};
}

//===-- Words -------------------------------------------------------------===//

unsigned Translator::bitsOf(Value value) {
  if (auto number = dyn_cast<IntegerType>(value.getType()))
    return number.getWidth();
  return 64;
}

bool Translator::isNarrow(unsigned bits) {
  return bits != 1 && bits != 32 && bits != 64;
}

Value Translator::masked(Value word, unsigned bits) {
  if (!isNarrow(bits))
    return word;
  Type type = word.getType();
  APInt mask = APInt::getLowBitsSet(type.getIntOrFloatBitWidth(), bits);
  return spv::BitwiseAndOp::create(b, word, integer(type, mask));
}

/// The sign of the lowest `bits` in all above them.
Value Translator::extended(Value word, unsigned bits) {
  if (bits == 1)
    return select(word, i32(-1), i32(0));
  if (!isNarrow(bits))
    return word;
  Value rest = integer(
      word.getType(), APInt(32, word.getType().getIntOrFloatBitWidth() - bits));
  Value high = spv::ShiftLeftLogicalOp::create(b, word, rest);
  return spv::ShiftRightArithmeticOp::create(b, high, rest);
}

/// To 64 bits, with the sign. Where drivers compare what OpSConvert gives with
/// constants as if it had none, by other means.
Value Translator::widened(Value number, Type to) {
  if (number.getType() == to)
    return number;
  if (!module.features().miscompilesSignExtension)
    return spv::SConvertOp::create(b, to, number);
  Value sign = i64(int64_t(1) << 31);
  Value wide = spv::UConvertOp::create(b, to, number);
  return spv::ISubOp::create(b, spv::BitwiseXorOp::create(b, wide, sign), sign);
}

Value Translator::asBool(Value word) {
  Value bit =
      spv::BitwiseAndOp::create(b, word, integer(word.getType(), APInt(64, 1)));
  return spv::INotEqualOp::create(b, bit, zeroOf(word.getType()));
}

Value Translator::select(Value condition, Value yes, Value no) {
  return spv::SelectOp::create(b, condition, yes, no);
}

/// Without a sign.
Value Translator::resized(Value word, Type to) {
  if (word.getType() == to)
    return word;
  if (word.getType().isInteger(1))
    return select(word, integer(to, APInt(64, 1)), zeroOf(to));
  return spv::UConvertOp::create(b, to, word);
}

Value Translator::truncated(Value value, unsigned bits) {
  if (bits == 1)
    return asBool(value);
  return masked(resized(value, wordOf(bits)), bits);
}

Value Translator::bitcast(Value value, Type to) {
  if (value.getType() == to)
    return value;
  unsigned from = value.getType().getIntOrFloatBitWidth();
  unsigned bits = to.getIntOrFloatBitWidth();
  auto half = b.getIntegerType(16);
  if (from == bits)
    return spv::BitcastOp::create(b, to, value);
  module.needType(half);
  if (to.isF16())
    return spv::BitcastOp::create(b, to, resized(value, half));
  return resized(spv::BitcastOp::create(b, half, value), to);
}

/// The same number of 16 bits, but no driver knows that it was rounded:
/// NVIDIA's (580.159.04) takes f32(f16(x)) for x.
Value Translator::unknown(Value half) {
  Value word = perLane(bitcast(half, b.getI32Type()));
  return bitcast(word, half.getType());
}

//===-- Integers ----------------------------------------------------------===//

LogicalResult Translator::boolOp(Operation *op) {
  Value x = operand(op, 0), y = operand(op, 1);
  if (isa<LLVM::AndOp, LLVM::MulOp>(op))
    return set(op, spv::LogicalAndOp::create(b, x, y));
  if (isa<LLVM::OrOp>(op))
    return set(op, spv::LogicalOrOp::create(b, x, y));
  if (isa<LLVM::XOrOp, LLVM::AddOp, LLVM::SubOp>(op))
    return set(op, spv::LogicalNotEqualOp::create(b, x, y));
  return none(op);
}

/// `number`, hidden in a way that other sums do not mix with if it stands for
/// an extremum `value` that `other` is added to or taken from.
Value Translator::hiddenExtremum(Value number, Value value, Value other) {
  if (!isExtremumOf(value, other))
    return number;
  return spv::BitwiseXorOp::create(b, number, laneOrZero(number.getType()));
}

LogicalResult Translator::integerOp(Operation *op) {
  unsigned bits = bitsOf(op->getResult(0));
  if (bits == 1)
    return boolOp(op);
  Value x = operand(op, 0), y = operand(op, 1);
  bool hidesSum = isWideSum(op) && module.features().miscompilesSaturation;
  if (hidesSum) {
    x = hiddenExtremum(x, op->getOperand(0), op->getOperand(1));
    y = hiddenExtremum(y, op->getOperand(1), op->getOperand(0));
  }
  if (isa<LLVM::SDivOp, LLVM::SRemOp, LLVM::AShrOp>(op))
    x = extended(x, bits);
  if (isa<LLVM::SDivOp, LLVM::SRemOp>(op))
    y = extended(y, bits);
  bool isNegation = isa<LLVM::SubOp>(op) && bits >= wordBits &&
                    matchPattern(op->getOperand(0), m_Zero());
  if (isNegation && module.features().miscompilesNegatedMinimum)
    x = perLane(x);
  // The sign of a remainder of negative numbers is left open.
  auto remainder = [&]() -> Value {
    Value whole = spv::IMulOp::create(b, spv::SDivOp::create(b, x, y), y);
    return spv::ISubOp::create(b, x, whole);
  };
  Value result =
      llvm::TypeSwitch<Operation *, Value>(op)
          .Case([&](LLVM::AddOp) { return spv::IAddOp::create(b, x, y); })
          .Case([&](LLVM::SubOp) { return spv::ISubOp::create(b, x, y); })
          .Case([&](LLVM::MulOp) { return spv::IMulOp::create(b, x, y); })
          .Case([&](LLVM::UDivOp) { return spv::UDivOp::create(b, x, y); })
          .Case([&](LLVM::URemOp) { return spv::UModOp::create(b, x, y); })
          .Case([&](LLVM::SDivOp) { return spv::SDivOp::create(b, x, y); })
          .Case([&](LLVM::SRemOp) { return remainder(); })
          .Case([&](LLVM::AndOp) { return spv::BitwiseAndOp::create(b, x, y); })
          .Case([&](LLVM::OrOp) { return spv::BitwiseOrOp::create(b, x, y); })
          .Case([&](LLVM::XOrOp) { return spv::BitwiseXorOp::create(b, x, y); })
          .Case([&](LLVM::ShlOp) {
            return spv::ShiftLeftLogicalOp::create(b, x, y);
          })
          .Case([&](LLVM::LShrOp) {
            return spv::ShiftRightLogicalOp::create(b, x, y);
          })
          .Case([&](LLVM::AShrOp) {
            return spv::ShiftRightArithmeticOp::create(b, x, y);
          })
          .Default([](Operation *) { return Value(); });
  if (hidesSum && maySaturate(op))
    result = perLane(result);
  return result ? set(op, masked(result, bits)) : none(op);
}

LogicalResult Translator::compareInts(LLVM::ICmpOp op) {
  using Is = LLVM::ICmpPredicate;
  Value x = operand(op, 0), y = operand(op, 1);
  unsigned bits = bitsOf(op.getLhs());
  if (!isa<IntegerType>(op.getLhs().getType()))
    bits = x.getType().getIntOrFloatBitWidth();
  if (bits == 1) {
    x = resized(x, b.getI32Type());
    y = resized(y, b.getI32Type());
  }
  bool isSigned = llvm::is_contained({Is::slt, Is::sle, Is::sgt, Is::sge},
                                     op.getPredicate());
  if (isSigned) {
    x = bits == 1 ? spv::SNegateOp::create(b, x).getResult()
                  : extended(x, bits);
    y = bits == 1 ? spv::SNegateOp::create(b, y).getResult()
                  : extended(y, bits);
  }
  switch (op.getPredicate()) {
  case Is::eq:
    return set(op, spv::IEqualOp::create(b, x, y));
  case Is::ne:
    return set(op, spv::INotEqualOp::create(b, x, y));
  case Is::slt:
    return set(op, spv::SLessThanOp::create(b, x, y));
  case Is::sle:
    return set(op, spv::SLessThanEqualOp::create(b, x, y));
  case Is::sgt:
    return set(op, spv::SGreaterThanOp::create(b, x, y));
  case Is::sge:
    return set(op, spv::SGreaterThanEqualOp::create(b, x, y));
  case Is::ult:
    return set(op, spv::ULessThanOp::create(b, x, y));
  case Is::ule:
    return set(op, spv::ULessThanEqualOp::create(b, x, y));
  case Is::ugt:
    return set(op, spv::UGreaterThanOp::create(b, x, y));
  case Is::uge:
    return set(op, spv::UGreaterThanEqualOp::create(b, x, y));
  }
}

//===-- Floats ------------------------------------------------------------===//

/// Nobody is to make another operation of it.
Value Translator::exactly(Operation *op) {
  op->setAttr("no_contraction", b.getUnitAttr());
  return op->getResult(0);
}

LogicalResult Translator::floatOp(Operation *op) {
  Value x = operand(op, 0);
  if (isa<LLVM::FNegOp>(op))
    return set(op, spv::FNegateOp::create(b, x));
  Value y = operand(op, 1);
  if (isa<LLVM::FAddOp>(op))
    return set(op, exactly(spv::FAddOp::create(b, x, y)));
  if (isa<LLVM::FSubOp>(op))
    return set(op, exactly(spv::FSubOp::create(b, x, y)));
  if (isa<LLVM::FMulOp>(op))
    return set(op, exactly(spv::FMulOp::create(b, x, y)));
  if (isa<LLVM::FDivOp>(op))
    return set(op, exactly(spv::FDivOp::create(b, x, y)));
  return none(op);
}

LogicalResult Translator::compareFloats(LLVM::FCmpOp op) {
  using Is = LLVM::FCmpPredicate;
  Value x = operand(op, 0), y = operand(op, 1);
  auto unordered = [&]() -> Value {
    Value isX = spv::IsNanOp::create(b, x);
    Value isY = spv::IsNanOp::create(b, y);
    return spv::LogicalOrOp::create(b, isX, isY);
  };
  switch (op.getPredicate()) {
  case Is::_false:
    return set(op, zeroOf(b.getI1Type()));
  case Is::_true:
    return set(op, integer(b.getI1Type(), APInt(1, 1)));
  case Is::oeq:
    return set(op, spv::FOrdEqualOp::create(b, x, y));
  case Is::ogt:
    return set(op, spv::FOrdGreaterThanOp::create(b, x, y));
  case Is::oge:
    return set(op, spv::FOrdGreaterThanEqualOp::create(b, x, y));
  case Is::olt:
    return set(op, spv::FOrdLessThanOp::create(b, x, y));
  case Is::ole:
    return set(op, spv::FOrdLessThanEqualOp::create(b, x, y));
  case Is::one:
    return set(op, spv::FOrdNotEqualOp::create(b, x, y));
  case Is::ord:
    return set(op, spv::LogicalNotOp::create(b, unordered()));
  case Is::ueq:
    return set(op, spv::FUnordEqualOp::create(b, x, y));
  case Is::ugt:
    return set(op, spv::FUnordGreaterThanOp::create(b, x, y));
  case Is::uge:
    return set(op, spv::FUnordGreaterThanEqualOp::create(b, x, y));
  case Is::ult:
    return set(op, spv::FUnordLessThanOp::create(b, x, y));
  case Is::ule:
    return set(op, spv::FUnordLessThanEqualOp::create(b, x, y));
  case Is::une:
    return set(op, spv::FUnordNotEqualOp::create(b, x, y));
  case Is::uno:
    return set(op, unordered());
  }
}

LogicalResult Translator::mathOp(Operation *op) {
  Value x = operand(op, 0);
  Value result =
      llvm::TypeSwitch<Operation *, Value>(op)
          .Case([&](LLVM::FAbsOp) { return spv::GLFAbsOp::create(b, x); })
          .Case([&](LLVM::SqrtOp) { return spv::GLSqrtOp::create(b, x); })
          .Case([&](LLVM::FFloorOp) { return spv::GLFloorOp::create(b, x); })
          .Case([&](LLVM::FCeilOp) { return spv::GLCeilOp::create(b, x); })
          .Case([&](LLVM::RoundEvenOp) {
            return spv::GLRoundEvenOp::create(b, x);
          })
          .Case([&](LLVM::FMAOp) {
            return spv::GLFmaOp::create(b, x.getType(), x, operand(op, 1),
                                        operand(op, 2));
          })
          .Case([&](LLVM::CountLeadingZerosOp) {
            return spv::ISubOp::create(b, i32(wordBits - 1),
                                       spv::GLFindUMsbOp::create(b, x));
          })
          .Case([&](LLVM::CountTrailingZerosOp) {
            Value isNone = spv::IEqualOp::create(b, x, i32(0));
            return select(isNone, i32(wordBits),
                          spv::GLFindILsbOp::create(b, x));
          })
          .Case([&](LLVM::CtPopOp) { return spv::BitCountOp::create(b, x); })
          .Case([&](LLVM::BitReverseOp) {
            return spv::BitReverseOp::create(b, x);
          })
          .Default([](Operation *) { return Value(); });
  return result ? set(op, result) : none(op);
}

//===-- Conversions -------------------------------------------------------===//

LogicalResult Translator::castOp(Operation *op) {
  Value x = operand(op, 0);
  unsigned from = bitsOf(op->getOperand(0)), to = bitsOf(op->getResult(0));
  Type type = typeOf(op->getResult(0).getType());
  if (!type)
    return none(op);
  auto asSigned = [&](Type word) { return widened(extended(x, from), word); };
  auto asUnsigned = [&]() {
    return from == 1 ? resized(x, b.getI32Type()) : x;
  };
  Value result =
      llvm::TypeSwitch<Operation *, Value>(op)
          .Case<LLVM::TruncOp, arith::TruncIOp>(
              [&](auto) { return truncated(x, to); })
          .Case([&](LLVM::ZExtOp) { return resized(x, type); })
          .Case([&](LLVM::SExtOp) { return masked(asSigned(type), to); })
          .Case([&](LLVM::SIToFPOp) {
            return spv::ConvertSToFOp::create(b, type, extended(x, from));
          })
          .Case([&](LLVM::UIToFPOp) {
            return spv::ConvertUToFOp::create(b, type, asUnsigned());
          })
          .Case([&](LLVM::FPToSIOp) -> Value {
            if (to == 1)
              return asBool(spv::ConvertFToSOp::create(b, b.getI32Type(), x));
            return masked(spv::ConvertFToSOp::create(b, type, x), to);
          })
          .Case([&](LLVM::FPToUIOp) -> Value {
            if (to == 1)
              return asBool(spv::ConvertFToUOp::create(b, b.getI32Type(), x));
            return masked(spv::ConvertFToUOp::create(b, type, x), to);
          })
          .Case<LLVM::FPExtOp, LLVM::FPTruncOp>(
              [&](auto) { return spv::FConvertOp::create(b, type, x); })
          .Case([&](LLVM::BitcastOp) { return bitcast(x, type); })
          .Case<LLVM::PtrToIntOp, LLVM::IntToPtrOp>(
              [&](auto) { return masked(resized(x, type), to); })
          .Case<LLVM::FreezeOp, arith::IndexCastUIOp>([&](auto) { return x; })
          .Default([](Operation *) { return Value(); });
  bool rounds =
      type.isF16() && isa<LLVM::FPTruncOp, LLVM::SIToFPOp, LLVM::UIToFPOp>(op);
  if (result && rounds && module.features().skipsHalfRounding)
    result = unknown(result);
  return result ? set(op, result) : none(op);
}

} // namespace costate::conversion
