/// Rules of `math`. x is the operand, y the result.

#include "autodiff/rules/Tables.h"
#include "ir/Kernel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <numbers>

using namespace mlir;

namespace costate::autodiff {
namespace {

/// sign(x), 0 at 0
Factor absRule(const RuleArguments &a, unsigned) {
  Number x = operand(a), zero = x.constant(0);
  Value up = arith::CmpFOp::create(a.b, arith::CmpFPredicate::OGT, x, zero);
  Value down = arith::CmpFOp::create(a.b, arith::CmpFPredicate::OLT, x, zero);
  Value negative = arith::SelectOp::create(a.b, down, x.constant(-1), zero);
  return times(arith::SelectOp::create(a.b, up, x.constant(1), negative));
}

Factor sqrtRule(const RuleArguments &a, unsigned) {
  return times(0.5 / result(a));
}

Factor rsqrtRule(const RuleArguments &a, unsigned) {
  return times(-0.5 * (result(a) / operand(a)));
}

Factor cbrtRule(const RuleArguments &a, unsigned) {
  Number y = result(a);
  return times(1.0 / 3.0 / (y * y));
}

Factor expRule(const RuleArguments &a, unsigned) { return times(result(a)); }

Factor exp2Rule(const RuleArguments &a, unsigned) {
  return times(result(a) * std::numbers::ln2);
}

Factor exp10Rule(const RuleArguments &a, unsigned) {
  return times(result(a) * std::numbers::ln10);
}

/// exp(x), which unlike y + 1 keeps its digits for large negative x
Factor expm1Rule(const RuleArguments &a, unsigned) {
  return times(operand(a).of<ir::ExpOp>());
}

Factor logRule(const RuleArguments &a, unsigned) {
  return times(1 / operand(a));
}

Factor log2Rule(const RuleArguments &a, unsigned) {
  return times(std::numbers::log2e / operand(a));
}

Factor log10Rule(const RuleArguments &a, unsigned) {
  return times(std::numbers::log10e / operand(a));
}

Factor log1pRule(const RuleArguments &a, unsigned) {
  return times(1 / (1 + operand(a)));
}

/// log(x), and 0 at x = p = 0: there x^p jumps from 1 to 0, and the derivative
/// by p counts as 0.
Number logOfBase(const RuleArguments &a, Number x, Number p) {
  auto equal = arith::CmpFPredicate::OEQ;
  Value zero = x.constant(0);
  Value xIsZero = arith::CmpFOp::create(a.b, equal, x, zero);
  Value pIsZero = arith::CmpFOp::create(a.b, equal, p, zero);
  Value jumps = arith::AndIOp::create(a.b, xIsZero, pIsZero);
  Value base = arith::SelectOp::create(a.b, jumps, x.constant(1), x);
  return {a.b, ir::LogOp::create(a.b, base)};
}

/// x^p: p x^(p-1) dx + x^p log(x) dp; a factor p of 0 hides 1/x.
Factor powRule(const RuleArguments &a, unsigned index) {
  Number x = operand(a, 0), p = operand(a, 1);
  if (index == 1)
    return times(result(a).strong(logOfBase(a, x, p)));
  return times(p.strong(x.of<ir::PowOp>(p - 1)));
}

Factor sinRule(const RuleArguments &a, unsigned) {
  return times(operand(a).of<ir::CosOp>());
}

Factor cosRule(const RuleArguments &a, unsigned) {
  return times(-operand(a).of<ir::SinOp>());
}

Factor tanRule(const RuleArguments &a, unsigned) {
  Number y = result(a);
  return times(1 + y * y);
}

Number chord(Number x) { return ((1 - x) * (1 + x)).root(); }

/// 1 / sqrt(1 - x^2)
Factor asinRule(const RuleArguments &a, unsigned) {
  return times(1 / chord(operand(a)));
}

/// -1 / sqrt(1 - x^2)
Factor acosRule(const RuleArguments &a, unsigned) {
  return times(-(1 / chord(operand(a))));
}

Factor atanRule(const RuleArguments &a, unsigned) {
  Number x = operand(a);
  return times(1 / (1 + x * x));
}

/// atan2(u, v): (v du - u dv) / (u^2 + v^2); 0 at the origin.
Factor atan2Rule(const RuleArguments &a, unsigned index) {
  Number u = operand(a, 0), v = operand(a, 1);
  Number inverse = 1 / u.of<ir::HypotOp>(v);
  return times((index == 0 ? v : -u).strong(inverse).strong(inverse));
}

Factor sinhRule(const RuleArguments &a, unsigned) {
  return times(operand(a).of<ir::CoshOp>());
}

Factor coshRule(const RuleArguments &a, unsigned) {
  return times(operand(a).of<ir::SinhOp>());
}

Factor tanhRule(const RuleArguments &a, unsigned) {
  Number y = result(a);
  return times((1 - y) * (1 + y));
}

/// 1 / sqrt(1 + x^2)
Factor asinhRule(const RuleArguments &a, unsigned) {
  Number x = operand(a);
  return times(1 / x.of<ir::HypotOp>(x.constant(1)));
}

/// 1 / (sqrt(x - 1) sqrt(x + 1))
Factor acoshRule(const RuleArguments &a, unsigned) {
  Number x = operand(a), low = (x - 1).root(), high = (x + 1).root();
  return times(1 / (low * high));
}

Factor atanhRule(const RuleArguments &a, unsigned) {
  Number x = operand(a);
  return times(1 / ((1 - x) * (1 + x)));
}

/// 2 / sqrt(pi) exp(-x^2)
Number bell(Number x, int sign) {
  return sign * 2 * std::numbers::inv_sqrtpi * (-(x * x)).of<ir::ExpOp>();
}

/// 2 / sqrt(pi) exp(-x^2)
Factor erfRule(const RuleArguments &a, unsigned) {
  return times(bell(operand(a), 1));
}

/// -2 / sqrt(pi) exp(-x^2)
Factor erfcRule(const RuleArguments &a, unsigned) {
  return times(bell(operand(a), -1));
}

/// (x dx + y dy) / hypot; 0 at the origin.
Factor hypotRule(const RuleArguments &a, unsigned index) {
  return times(operand(a, index).strong(1 / result(a)));
}

Factor fmaRule(const RuleArguments &a, unsigned index) {
  return index == 2 ? Factor{Factor::One, {}} : mulRule(a, index);
}

} // namespace

void addMathRules(llvm::StringMap<Rule> &rules) {
  rules["math.absf"] = absRule;
  rules["math.sqrt"] = sqrtRule;
  rules["math.fma"] = fmaRule;
#define COSTATE_FUNCTION(Name, name, ...)                                      \
  rules[ir::Name##Op::getOperationName()] = name##Rule;
#include "costate/detail/operations.def"
}

} // namespace costate::autodiff
