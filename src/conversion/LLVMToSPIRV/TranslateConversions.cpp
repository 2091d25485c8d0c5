#include "conversion/LLVMToSPIRV/Lanes.h"
#include "conversion/LLVMToSPIRV/Operations.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
namespace spv = mlir::spirv;

namespace costate::conversion {
namespace {

struct Conversion {
  SpirvBuilder &b;
  Value x;
  unsigned from, to; ///< bits of integers
  Type type;         ///< of what it becomes
};
using Convert = Value (*)(const Conversion &);

unsigned bitsOf(Type type) {
  auto number = dyn_cast<IntegerType>(type);
  return number ? number.getWidth() : 64;
}

/// The same number of 16 bits, but no driver knows that it was rounded:
/// NVIDIA's (580.159.04) takes f32(f16(x)) for x.
Value unknown(SpirvBuilder &b, Value half) {
  Value word = perLane(b, b.bitcast(half, b.getI32Type()));
  return b.bitcast(word, half.getType());
}

LogicalResult convert(Translation &t, Operation *op, Convert convert,
                      bool rounds) {
  Type from = op->getOperand(0).getType(), to = op->getResult(0).getType();
  Type type = t.b.typeOf(to);
  if (!type)
    return t.none(op);
  Value result =
      convert({t.b, t.operand(op, 0), bitsOf(from), bitsOf(to), type});
  if (rounds && type.isF16() && t.b.features().skipsHalfRounding)
    result = unknown(t.b, result);
  return t.set(op, result);
}

template <class Op, Convert with> KnownOperation conversion() {
  return {Op::getOperationName(), [](Translation &t, Operation *op) {
            return convert(t, op, with, /*rounds=*/false);
          }};
}

template <class Op, Convert with> KnownOperation rounding() {
  return {Op::getOperationName(), [](Translation &t, Operation *op) {
            return convert(t, op, with, /*rounds=*/true);
          }};
}

Value truncate(const Conversion &c) { return c.b.truncated(c.x, c.to); }

Value extendByZero(const Conversion &c) { return c.b.resized(c.x, c.type); }

Value extendBySign(const Conversion &c) {
  return c.b.masked(c.b.widened(c.b.extended(c.x, c.from), c.type), c.to);
}

Value fromSigned(const Conversion &c) {
  return spv::ConvertSToFOp::create(c.b, c.type, c.b.extended(c.x, c.from));
}

Value fromUnsigned(const Conversion &c) {
  Value word = c.from == 1 ? c.b.resized(c.x, c.b.getI32Type()) : c.x;
  return spv::ConvertUToFOp::create(c.b, c.type, word);
}

template <class To> Value toInteger(const Conversion &c) {
  if (c.to == 1)
    return c.b.asBool(To::create(c.b, c.b.getI32Type(), c.x));
  return c.b.masked(To::create(c.b, c.type, c.x), c.to);
}

Value betweenFloats(const Conversion &c) {
  return spv::FConvertOp::create(c.b, c.type, c.x);
}

Value bits(const Conversion &c) { return c.b.bitcast(c.x, c.type); }

Value address(const Conversion &c) {
  return c.b.masked(c.b.resized(c.x, c.type), c.to);
}

Value same(const Conversion &c) { return c.x; }

} // namespace

llvm::ArrayRef<KnownOperation> conversionOperations() {
  static const KnownOperation all[] = {
      conversion<LLVM::TruncOp, truncate>(),
      conversion<arith::TruncIOp, truncate>(),
      conversion<LLVM::ZExtOp, extendByZero>(),
      conversion<LLVM::SExtOp, extendBySign>(),
      rounding<LLVM::SIToFPOp, fromSigned>(),
      rounding<LLVM::UIToFPOp, fromUnsigned>(),
      conversion<LLVM::FPToSIOp, toInteger<spv::ConvertFToSOp>>(),
      conversion<LLVM::FPToUIOp, toInteger<spv::ConvertFToUOp>>(),
      conversion<LLVM::FPExtOp, betweenFloats>(),
      rounding<LLVM::FPTruncOp, betweenFloats>(),
      conversion<LLVM::BitcastOp, bits>(),
      conversion<LLVM::PtrToIntOp, address>(),
      conversion<LLVM::IntToPtrOp, address>(),
      conversion<LLVM::FreezeOp, same>(),
      conversion<arith::IndexCastUIOp, same>(),
  };
  return all;
}

} // namespace costate::conversion
