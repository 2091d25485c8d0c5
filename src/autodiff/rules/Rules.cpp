#include "autodiff/rules/Rules.h"

#include "autodiff/rules/Tables.h"
#include "ir/Kernel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace costate::autodiff {

Rule findRule(Operation *op) {
  static const llvm::StringMap<Rule> table = [] {
    llvm::StringMap<Rule> rules;
    addArithRules(rules);
    addMathRules(rules);
    addCustomRule(rules);
    return rules;
  }();
  return table.lookup(op->getName().getStringRef());
}

LogicalResult emitNoRule(Operation *op) {
  if (isa<arith::BitcastOp>(op))
    return op->emitError("`bit_cast` reads the bits of a value that depends on "
                         "an array with a gradient; bits have no derivative")
               .attachNote()
           << "if they count as constants, write "
              "`bit_cast<T>(stop_gradient(x))`";
  return op->emitError("the derivative of `" + op->getName().getStringRef() +
                       "` is not known")
             .attachNote()
         << "compute it from operations that have one, or from values that do "
            "not depend on an array with a gradient";
}

bool isDiscrete(Operation *op) {
  return isa<arith::CmpFOp, ir::ToIntOp, ir::StopGradientOp, arith::FPToSIOp,
             arith::FPToUIOp, math::IsNaNOp, math::IsInfOp, math::IsFiniteOp,
             math::IsNormalOp, math::FloorOp, math::CeilOp, math::RoundOp,
             math::RoundEvenOp, math::TruncOp, ir::ByOrderOp>(op);
}

Value indexConstant(Builder &b, int64_t value) {
  return arith::ConstantOp::create(b, b.getI64IntegerAttr(value));
}

Value floatConstant(Builder &b, Type type, double value) {
  return arith::ConstantOp::create(b, b.getFloatAttr(type, value));
}

static bool isFiniteConstant(Value value) {
  FloatAttr constant;
  return matchPattern(value, m_Constant(&constant)) &&
         constant.getValue().isFinite();
}

static Value convert(Builder &b, Value g, Type type) {
  if (g.getType() == type)
    return g;
  if (type.isF64())
    return arith::ExtFOp::create(b, type, g);
  return arith::TruncFOp::create(b, type, g);
}

static Value product(Builder &b, Value g, Value factor) {
  g = convert(b, g, factor.getType());
  if (isFiniteConstant(factor))
    return arith::MulFOp::create(b, g, factor);
  return ir::StrongMulOp::create(b, g, factor);
}

Value applyFactor(Builder &b, Value g, Factor factor, Type type) {
  switch (factor.kind) {
  case Factor::Zero:
    return {};
  case Factor::One:
    return g;
  case Factor::MinusOne:
    return arith::NegFOp::create(b, g);
  case Factor::Times: {
    Value all = product(b, g, factor.value);
    if (factor.times != 1)
      all = arith::MulFOp::create(
          b, all, floatConstant(b, all.getType(), factor.times));
    return convert(b, all, type);
  }
  case Factor::StrongBy:
    return ir::StrongMulOp::create(b, factor.value, g, /*symmetric=*/true);
  case Factor::If: {
    Value zero = floatConstant(b, type, 0);
    return arith::SelectOp::create(b, factor.value, g, zero);
  }
  case Factor::IfNot: {
    Value zero = floatConstant(b, type, 0);
    return arith::SelectOp::create(b, factor.value, zero, g);
  }
  case Factor::Share: {
    Value half = arith::MulFOp::create(b, g, floatConstant(b, type, 0.5));
    Value share = arith::SelectOp::create(b, factor.tie, half, g);
    Value zero = floatConstant(b, type, 0);
    return arith::SelectOp::create(b, factor.value, share, zero);
  }
  case Factor::Convert:
    return convert(b, g, type);
  }
  llvm_unreachable("unknown factor");
}

} // namespace costate::autodiff
