#include "conversion/LLVMToSPIRV/Parts.h"

#include "conversion/LLVMToSPIRV/Lanes.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
namespace spv = mlir::spirv;

namespace costate::conversion {

Value joined(SpirvBuilder &b, Value low, Value high, Type type) {
  Value wide = b.resized(high, b.getI64Type());
  Value top = spv::ShiftLeftLogicalOp::create(b, wide, b.i64(32));
  Value both = spv::BitwiseOrOp::create(b, b.resized(low, b.getI64Type()), top);
  return b.bitcast(both, b.typeOf(type));
}

std::pair<Value, Value> halves(SpirvBuilder &b, Value value) {
  Value wide = b.bitcast(value, b.getI64Type());
  Value high = spv::ShiftRightLogicalOp::create(b, wide, b.i64(32));
  return {b.resized(wide, b.getI32Type()), b.resized(high, b.getI32Type())};
}

/// By how many bits a part of a word is above its end.
static Value shiftOf(SpirvBuilder &b, Value bytes) {
  Value within = spv::BitwiseAndOp::create(b, bytes, b.i32(3));
  return spv::ShiftLeftLogicalOp::create(b, within, b.i32(3));
}

Value partOf(SpirvBuilder &b, Value word, Value bytes, Type type) {
  unsigned bits = std::max(8u, type.getIntOrFloatBitWidth());
  Value shift = shiftOf(b, bytes);
  Value part = b.masked(spv::ShiftRightLogicalOp::create(b, word, shift), bits);
  if (type.isInteger(1))
    return b.asBool(part);
  return isa<FloatType>(type) ? b.bitcast(part, type) : part;
}

Part placed(SpirvBuilder &b, Value value, Value bytes, Type type) {
  unsigned bits = std::max(8u, type.getIntOrFloatBitWidth());
  if (isa<FloatType>(value.getType()))
    value = b.bitcast(value, b.getI32Type());
  Value shift = shiftOf(b, bytes);
  Value word = b.resized(value, b.getI32Type());
  Value own = spv::ShiftLeftLogicalOp::create(b, word, shift);
  Value mask =
      spv::ShiftLeftLogicalOp::create(b, b.i32((1u << bits) - 1), shift);
  return {own, spv::NotOp::create(b, mask)};
}

//===-- From bytes to elements --------------------------------------------===//

/// `bytes` / 2^`log`, if it is known to be a whole number.
static Value quotient(SpirvBuilder &b, Value bytes, unsigned log) {
  auto part = [&](Value value) -> Value {
    APInt number;
    if (!matchPattern(value, m_ConstantInt(&number)) ||
        number.countr_zero() < log)
      return {};
    Type type = value.getType();
    return spv::ConstantOp::create(b, type,
                                   IntegerAttr::get(type, number.ashr(log)));
  };
  if (Value number = part(bytes))
    return number;
  if (auto product = bytes.getDefiningOp<spv::IMulOp>())
    if (Value factor = part(product.getOperand2()))
      return spv::IMulOp::create(b, product.getOperand1(), factor);
  return {};
}

Value divided(SpirvBuilder &b, Value bytes, unsigned log) {
  bool inParts = !b.features().miscompilesPlaceSums;
  if (inParts || matchPattern(bytes, m_Constant()))
    if (Value whole = quotient(b, bytes, log))
      return whole;
  if (auto sum = bytes.getDefiningOp<spv::IAddOp>(); sum && inParts) {
    Value one = sum.getOperand1(), other = sum.getOperand2();
    if (Value whole = quotient(b, other, log))
      return spv::IAddOp::create(b, divided(b, one, log), whole);
    if (Value whole = quotient(b, one, log))
      return spv::IAddOp::create(b, divided(b, other, log), whole);
  }
  if (log == 0)
    return inParts ? bytes : perLane(b, bytes);
  Type type = bytes.getType();
  Value shift = spv::ConstantOp::create(b, type, IntegerAttr::get(type, log));
  return spv::ShiftRightArithmeticOp::create(b, bytes, shift);
}

} // namespace costate::conversion
