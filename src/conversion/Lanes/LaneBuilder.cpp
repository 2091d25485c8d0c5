#include "conversion/Lanes/LaneBuilder.h"

using namespace mlir;

namespace costate::conversion {

VectorType LaneBuilder::vectorOf(Type type) const {
  return VectorType::get({lanes}, type);
}

Value LaneBuilder::number(Type type, int64_t value) {
  return arith::ConstantOp::create(*this, getIntegerAttr(type, value));
}

Value LaneBuilder::zero(Type type) {
  return arith::ConstantOp::create(*this, getZeroAttr(type));
}

Value LaneBuilder::splat(Value scalar) {
  Value none = LLVM::PoisonOp::create(*this, vectorOf(scalar.getType()));
  Value first = insert(none, scalar, number(getI64Type(), 0));
  return LLVM::ShuffleVectorOp::create(*this, first, none,
                                       SmallVector<int32_t>(lanes, 0));
}

Value LaneBuilder::laneNumbers(Type type) {
  SmallVector<Attribute> numbers;
  for (unsigned lane = 0; lane < lanes; ++lane)
    numbers.push_back(getIntegerAttr(type, lane));
  return arith::ConstantOp::create(
      *this, DenseElementsAttr::get(vectorOf(type), numbers));
}

Value LaneBuilder::orAll(Value mask) {
  if (mask)
    return mask;
  return arith::ConstantOp::create(
      *this, DenseElementsAttr::get(vectorOf(getI1Type()), getBoolAttr(true)));
}

Value LaneBuilder::both(Value mask, Value condition) {
  if (!mask)
    return condition;
  return arith::SelectOp::create(*this, mask, condition, zero(mask.getType()));
}

Value LaneBuilder::butNot(Value mask, Value condition) {
  Value none = zero(condition.getType());
  Value others = arith::SelectOp::create(*this, condition, none, orAll(mask));
  return both(mask, others);
}

/// The assembler's text is empty, which needs no parser of a processor.
Value LaneBuilder::hidden(Value number) {
  return LLVM::InlineAsmOp::create(
             *this, number.getType(), number, "", "=r,0",
             /*has_side_effects=*/false, /*is_align_stack=*/false,
             LLVM::tailcallkind::TailCallKind::None, /*asm_dialect=*/{},
             /*operand_attrs=*/{})
      .getRes();
}

Value LaneBuilder::opaque(Value mask) {
  Value bits = hidden(bitsOf(mask));
  if (lanes < 64)
    bits = arith::TruncIOp::create(*this, getIntegerType(lanes), bits);
  return LLVM::BitcastOp::create(*this, mask.getType(), bits);
}

Value LaneBuilder::select(Value mask, Value active, Value other) {
  return mask ? arith::SelectOp::create(*this, mask, active, other).getResult()
              : active;
}

Value LaneBuilder::bitsOf(Value mask) {
  Type i64 = getI64Type();
  if (!mask)
    return number(i64, static_cast<int64_t>(~uint64_t(0) >> (64 - lanes)));
  Value bits = LLVM::BitcastOp::create(*this, getIntegerType(lanes), mask);
  return lanes == 64 ? bits : arith::ExtUIOp::create(*this, i64, bits);
}

Value LaneBuilder::any(Value mask) {
  Value bits = LLVM::BitcastOp::create(*this, getIntegerType(lanes), mask);
  return arith::CmpIOp::create(*this, arith::CmpIPredicate::ne, bits,
                               number(bits.getType(), 0));
}

static Type elementOf(Value vector) {
  return cast<VectorType>(vector.getType()).getElementType();
}

Value LaneBuilder::largest(Value vector) {
  return LLVM::vector_reduce_umax::create(*this, elementOf(vector), vector);
}

Value LaneBuilder::sum(Value vector) {
  Type type = elementOf(vector);
  if (!isa<FloatType>(type))
    return LLVM::vector_reduce_add::create(*this, type, vector);
  Value start = arith::ConstantOp::create(*this, getFloatAttr(type, -0.0));
  return LLVM::vector_reduce_fadd::create(*this, type, start, vector,
                                          LLVM::FastmathFlags::reassoc);
}

Value LaneBuilder::extract(Value vector, Value lane) {
  return LLVM::ExtractElementOp::create(*this, vector, lane);
}

Value LaneBuilder::insert(Value vector, Value value, Value lane) {
  return LLVM::InsertElementOp::create(*this, vector, value, lane);
}

Value LaneBuilder::slice(Value vector, unsigned first, unsigned count) {
  SmallVector<int32_t> wanted;
  for (unsigned lane = first; lane < first + count; ++lane)
    wanted.push_back(static_cast<int32_t>(lane));
  Value none = LLVM::PoisonOp::create(*this, vector.getType());
  return LLVM::ShuffleVectorOp::create(*this, vector, none, wanted);
}

} // namespace costate::conversion
