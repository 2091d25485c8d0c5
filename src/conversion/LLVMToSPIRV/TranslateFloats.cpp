#include "conversion/LLVMToSPIRV/Operations.h"

using namespace mlir;
namespace spv = mlir::spirv;

namespace costate::conversion {
namespace {

//===-- Arithmetic --------------------------------------------------------===//

template <Unary compute> LogicalResult unary(Translation &t, Operation *op) {
  return t.set(op, compute(t.b, t.operand(op, 0)));
}

/// Nobody is to make another operation of it.
template <class To> LogicalResult exactly(Translation &t, Operation *op) {
  To made = To::create(t.b, t.operand(op, 0), t.operand(op, 1));
  made->setAttr("no_contraction", t.b.getUnitAttr());
  return t.set(op, made);
}

LogicalResult fma(Translation &t, LLVM::FMAOp op) {
  Value x = t.operand(op, 0);
  return t.set(op, spv::GLFmaOp::create(t.b, x.getType(), x, t.operand(op, 1),
                                        t.operand(op, 2)));
}

//===-- Comparisons -------------------------------------------------------===//

Value never(SpirvBuilder &b, Value, Value) { return b.zeroOf(b.getI1Type()); }

Value always(SpirvBuilder &b, Value, Value) {
  return b.integer(b.getI1Type(), APInt(1, 1));
}

Value unordered(SpirvBuilder &b, Value x, Value y) {
  Value isX = spv::IsNanOp::create(b, x);
  Value isY = spv::IsNanOp::create(b, y);
  return spv::LogicalOrOp::create(b, isX, isY);
}

Value ordered(SpirvBuilder &b, Value x, Value y) {
  return spv::LogicalNotOp::create(b, unordered(b, x, y));
}

Binary comparison(LLVM::FCmpPredicate predicate) {
  using Is = LLVM::FCmpPredicate;
  switch (predicate) {
  case Is::_false:
    return never;
  case Is::_true:
    return always;
  case Is::oeq:
    return make<spv::FOrdEqualOp>;
  case Is::ogt:
    return make<spv::FOrdGreaterThanOp>;
  case Is::oge:
    return make<spv::FOrdGreaterThanEqualOp>;
  case Is::olt:
    return make<spv::FOrdLessThanOp>;
  case Is::ole:
    return make<spv::FOrdLessThanEqualOp>;
  case Is::one:
    return make<spv::FOrdNotEqualOp>;
  case Is::ord:
    return ordered;
  case Is::ueq:
    return make<spv::FUnordEqualOp>;
  case Is::ugt:
    return make<spv::FUnordGreaterThanOp>;
  case Is::uge:
    return make<spv::FUnordGreaterThanEqualOp>;
  case Is::ult:
    return make<spv::FUnordLessThanOp>;
  case Is::ule:
    return make<spv::FUnordLessThanEqualOp>;
  case Is::une:
    return make<spv::FUnordNotEqualOp>;
  case Is::uno:
    return unordered;
  }
}

LogicalResult compare(Translation &t, LLVM::FCmpOp op) {
  Binary compare = comparison(op.getPredicate());
  return t.set(op, compare(t.b, t.operand(op, 0), t.operand(op, 1)));
}

} // namespace

llvm::ArrayRef<KnownOperation> floatOperations() {
  static const KnownOperation all[] = {
      row<LLVM::FAddOp, exactly<spv::FAddOp>>(),
      row<LLVM::FSubOp, exactly<spv::FSubOp>>(),
      row<LLVM::FMulOp, exactly<spv::FMulOp>>(),
      row<LLVM::FDivOp, exactly<spv::FDivOp>>(),
      row<LLVM::FNegOp, unary<make<spv::FNegateOp>>>(),
      row<LLVM::FAbsOp, unary<make<spv::GLFAbsOp>>>(),
      row<LLVM::SqrtOp, unary<make<spv::GLSqrtOp>>>(),
      row<LLVM::FFloorOp, unary<make<spv::GLFloorOp>>>(),
      row<LLVM::FCeilOp, unary<make<spv::GLCeilOp>>>(),
      row<LLVM::RoundEvenOp, unary<make<spv::GLRoundEvenOp>>>(),
      row<LLVM::FMAOp, fma>(),
      row<LLVM::FCmpOp, compare>(),
  };
  return all;
}

} // namespace costate::conversion
