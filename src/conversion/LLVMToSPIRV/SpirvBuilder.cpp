#include "conversion/LLVMToSPIRV/SpirvBuilder.h"

#include "conversion/LLVMToSPIRV/AddressSpaces.h"

using namespace mlir;
namespace spv = mlir::spirv;

namespace costate::conversion {

//===-- Types and constants -----------------------------------------------===//

Type SpirvBuilder::wordOf(unsigned bits) {
  if (bits == 1)
    return getI1Type();
  return bits <= wordBits ? getI32Type() : getI64Type();
}

Type SpirvBuilder::typeOf(Type type) {
  if (auto pointer = dyn_cast<LLVM::LLVMPointerType>(type))
    return isGlobal(pointer.getAddressSpace()) ? getI64Type() : getI32Type();
  if (type.isIndex())
    return getI32Type();
  if (auto number = dyn_cast<IntegerType>(type))
    return number.getWidth() <= 64 ? wordOf(number.getWidth()) : Type();
  if (type.isF16() || type.isF32() || type.isF64()) {
    module.needType(type);
    return type;
  }
  return {};
}

Value SpirvBuilder::integer(Type type, APInt value) {
  if (type.isInteger(1))
    return spv::ConstantOp::create(*this, type, getBoolAttr(!value.isZero()));
  return spv::ConstantOp::create(
      *this, type,
      getIntegerAttr(type, value.zextOrTrunc(type.getIntOrFloatBitWidth())));
}

Value SpirvBuilder::i32(int64_t value) {
  return integer(getI32Type(), APInt(32, value, true, true));
}

Value SpirvBuilder::i64(int64_t value) {
  return integer(getI64Type(), APInt(64, value, true, true));
}

Value SpirvBuilder::zeroOf(Type type) {
  if (isa<FloatType>(type))
    return spv::ConstantOp::create(*this, type, getFloatAttr(type, 0.0));
  return integer(type, APInt(64, 0));
}

Value SpirvBuilder::constantOf(Type type, Attribute value) {
  if (auto number = dyn_cast<IntegerAttr>(value))
    return integer(type, number.getValue());
  if (isa<FloatAttr>(value))
    return spv::ConstantOp::create(*this, type, value);
  return {};
}

//===-- Words -------------------------------------------------------------===//

static bool isNarrow(unsigned bits) {
  return bits != 1 && bits != 32 && bits != 64;
}

Value SpirvBuilder::masked(Value word, unsigned bits) {
  if (!isNarrow(bits))
    return word;
  Type type = word.getType();
  APInt mask = APInt::getLowBitsSet(type.getIntOrFloatBitWidth(), bits);
  return spv::BitwiseAndOp::create(*this, word, integer(type, mask));
}

Value SpirvBuilder::extended(Value word, unsigned bits) {
  if (bits == 1)
    return select(word, i32(-1), i32(0));
  if (!isNarrow(bits))
    return word;
  Value rest = integer(
      word.getType(), APInt(32, word.getType().getIntOrFloatBitWidth() - bits));
  Value high = spv::ShiftLeftLogicalOp::create(*this, word, rest);
  return spv::ShiftRightArithmeticOp::create(*this, high, rest);
}

/// Where drivers compare what OpSConvert gives with constants as if it had no
/// sign, by other means.
Value SpirvBuilder::widened(Value number, Type to) {
  if (number.getType() == to)
    return number;
  if (!features().miscompilesSignExtension)
    return spv::SConvertOp::create(*this, to, number);
  Value sign = i64(int64_t(1) << 31);
  Value wide = spv::UConvertOp::create(*this, to, number);
  return spv::ISubOp::create(
      *this, spv::BitwiseXorOp::create(*this, wide, sign), sign);
}

Value SpirvBuilder::asBool(Value word) {
  Value bit = spv::BitwiseAndOp::create(*this, word,
                                        integer(word.getType(), APInt(64, 1)));
  return spv::INotEqualOp::create(*this, bit, zeroOf(word.getType()));
}

Value SpirvBuilder::select(Value condition, Value yes, Value no) {
  return spv::SelectOp::create(*this, condition, yes, no);
}

Value SpirvBuilder::resized(Value word, Type to) {
  if (word.getType() == to)
    return word;
  if (word.getType().isInteger(1))
    return select(word, integer(to, APInt(64, 1)), zeroOf(to));
  return spv::UConvertOp::create(*this, to, word);
}

Value SpirvBuilder::truncated(Value value, unsigned bits) {
  if (bits == 1)
    return asBool(value);
  return masked(resized(value, wordOf(bits)), bits);
}

Value SpirvBuilder::bitcast(Value value, Type to) {
  if (value.getType() == to)
    return value;
  unsigned from = value.getType().getIntOrFloatBitWidth();
  unsigned bits = to.getIntOrFloatBitWidth();
  auto half = getIntegerType(16);
  if (from == bits)
    return spv::BitcastOp::create(*this, to, value);
  module.needType(half);
  if (to.isF16())
    return spv::BitcastOp::create(*this, to, resized(value, half));
  return resized(spv::BitcastOp::create(*this, half, value), to);
}

} // namespace costate::conversion
