/// Constant folding of the dialect's own scalar operations.

#include "ir/Kernel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/CommonFolders.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace costate::ir {

Operation *CostateDialect::materializeConstant(OpBuilder &builder,
                                               Attribute value, Type type,
                                               Location loc) {
  return arith::ConstantOp::materialize(builder, value, type, loc);
}

static std::optional<APInt> asInt(Attribute attribute) {
  auto integer = dyn_cast_or_null<IntegerAttr>(attribute);
  return integer ? std::optional(integer.getValue()) : std::nullopt;
}

static OpFoldResult intAttr(Type type, const APInt &value) {
  return IntegerAttr::get(type, value);
}

OpFoldResult DivOp::fold(FoldAdaptor adaptor) {
  auto a = asInt(adaptor.getLhs()), b = asInt(adaptor.getRhs());
  if (b && b->isOne())
    return getLhs();
  if (!a || !b)
    return {};
  if (b->isZero())
    return intAttr(getType(), APInt::getZero(a->getBitWidth()));
  return intAttr(getType(), getIsUnsigned() ? a->udiv(*b) : a->sdiv(*b));
}

OpFoldResult RemOp::fold(FoldAdaptor adaptor) {
  auto a = asInt(adaptor.getLhs()), b = asInt(adaptor.getRhs());
  if (!a || !b)
    return {};
  if (b->isZero())
    return intAttr(getType(), APInt::getZero(a->getBitWidth()));
  return intAttr(getType(), getIsUnsigned() ? a->urem(*b) : a->srem(*b));
}

static uint64_t maskedCount(const APInt &count) {
  return count.getZExtValue() & (count.getBitWidth() - 1);
}

OpFoldResult ShlOp::fold(FoldAdaptor adaptor) {
  auto a = asInt(adaptor.getLhs()), b = asInt(adaptor.getRhs());
  if (!a || !b)
    return {};
  return intAttr(getType(), a->shl(maskedCount(*b)));
}

OpFoldResult ShrOp::fold(FoldAdaptor adaptor) {
  auto a = asInt(adaptor.getLhs()), b = asInt(adaptor.getRhs());
  if (!a || !b)
    return {};
  uint64_t count = maskedCount(*b);
  return intAttr(getType(), getIsUnsigned() ? a->lshr(count) : a->ashr(count));
}

OpFoldResult ToIntOp::fold(FoldAdaptor adaptor) {
  auto value = dyn_cast_or_null<FloatAttr>(adaptor.getValue());
  if (!value)
    return {};
  bool exact;
  APSInt result(getType().getIntOrFloatBitWidth(), getIsUnsigned());
  // APFloat saturates; NaN becomes 0 there too.
  value.getValue().convertToInteger(result, APFloat::rmTowardZero, &exact);
  return intAttr(getType(), result);
}

static bool isNumberOf(Type element, Value value) {
  Operation *op = value.getDefiningOp();
  if (auto narrow = dyn_cast_or_null<NarrowOp>(op))
    return narrow.getElement() == element;
  if (auto load = dyn_cast_or_null<LoadOp>(op))
    return load.getArray().getType().getElementType() == element;
  if (auto load = dyn_cast_or_null<LocalLoadOp>(op))
    return load.getLocal().getType().getElementType() == element;
  return false;
}

OpFoldResult NarrowOp::fold(FoldAdaptor adaptor) {
  if (isNumberOf(getElement(), getValue()))
    return getValue();
  if (auto a = asInt(adaptor.getValue())) {
    APInt low = a->trunc(getElement().getIntOrFloatBitWidth());
    bool isUnsigned = getElement().isUnsignedInteger();
    return intAttr(getType(), isUnsigned ? low.zext(32) : low.sext(32));
  }
  auto constant = dyn_cast_or_null<FloatAttr>(adaptor.getValue());
  if (!constant)
    return {};
  APFloat value = constant.getValue();
  bool inexact;
  constexpr auto nearest = APFloat::rmNearestTiesToEven;
  value.convert(APFloat::IEEEhalf(), nearest, &inexact);
  value.convert(APFloat::IEEEsingle(), nearest, &inexact);
  return FloatAttr::get(getType(), value);
}

OpFoldResult TripCountOp::fold(FoldAdaptor adaptor) {
  auto lo = asInt(adaptor.getLo()), hi = asInt(adaptor.getHi()),
       step = asInt(adaptor.getStep());
  if (!lo || !hi || !step || step->isZero())
    return {};
  bool up = step->isStrictlyPositive();
  if (up ? hi->sle(*lo) : lo->sle(*hi))
    return intAttr(getType(), APInt::getZero(64));
  APInt distance = up ? *hi - *lo : *lo - *hi;
  APInt stride = up ? *step : -*step;
  return intAttr(getType(), (distance - 1).udiv(stride) + 1);
}

OpFoldResult StrongMulOp::fold(FoldAdaptor adaptor) {
  if (!isa<FloatType>(getType()))
    return {};
  if (matchPattern(getF(), m_OneFloat()))
    return getG();
  if (matchPattern(getG(), m_OneFloat()))
    return getF();
  if (matchPattern(getG(), m_AnyZeroFloat()) ||
      (getSymmetric() && matchPattern(getF(), m_AnyZeroFloat())))
    return FloatAttr::get(getType(), 0.0);
  return {};
}

} // namespace costate::ir
