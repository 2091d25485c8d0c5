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
  Formula f(a);
  Value x = a.operand(0), zero = f.constant(0);
  Value up = arith::CmpFOp::create(a.b, arith::CmpFPredicate::OGT, x, zero);
  Value down = arith::CmpFOp::create(a.b, arith::CmpFPredicate::OLT, x, zero);
  Value negative = arith::SelectOp::create(a.b, down, f.constant(-1), zero);
  return times(arith::SelectOp::create(a.b, up, f.constant(1), negative));
}

/// 1 / (2 y)
Factor sqrtRule(const RuleArguments &a, unsigned) {
  Formula f(a);
  return times(f.div(f.constant(0.5), a.result()));
}

/// -y / (2 x)
Factor rsqrtRule(const RuleArguments &a, unsigned) {
  Formula f(a);
  Value y = a.result();
  return times(f.mul(f.constant(-0.5), f.div(y, a.operand(0))));
}

/// 1 / (3 y^2)
Factor cbrtRule(const RuleArguments &a, unsigned) {
  Formula f(a);
  Value y = a.result();
  Value third = f.constant(1.0 / 3.0);
  return times(f.div(third, f.mul(y, y)));
}

Factor expRule(const RuleArguments &a, unsigned) { return times(a.result()); }

Factor exp2Rule(const RuleArguments &a, unsigned) {
  Formula f(a);
  return times(f.mul(a.result(), f.constant(std::numbers::ln2)));
}

Factor exp10Rule(const RuleArguments &a, unsigned) {
  Formula f(a);
  return times(f.mul(a.result(), f.constant(std::numbers::ln10)));
}

/// exp(x), which unlike y + 1 keeps its digits for large negative x
Factor expm1Rule(const RuleArguments &a, unsigned) {
  return times(ir::ExpOp::create(a.b, a.operand(0)));
}

Factor logRule(const RuleArguments &a, unsigned) {
  return times(Formula(a).reciprocal(a.operand(0)));
}

Factor log2Rule(const RuleArguments &a, unsigned) {
  Formula f(a);
  return times(f.div(f.constant(std::numbers::log2e), a.operand(0)));
}

Factor log10Rule(const RuleArguments &a, unsigned) {
  Formula f(a);
  return times(f.div(f.constant(std::numbers::log10e), a.operand(0)));
}

Factor log1pRule(const RuleArguments &a, unsigned) {
  Formula f(a);
  return times(f.reciprocal(f.add(f.constant(1), a.operand(0))));
}

/// log(x), and 0 at x = p = 0: there x^p jumps from 1 to 0, and the derivative
/// by p counts as 0.
Value logOfBase(Formula &f, const RuleArguments &a) {
  auto equal = arith::CmpFPredicate::OEQ;
  Value x = a.operand(0), zero = f.constant(0);
  Value xIsZero = arith::CmpFOp::create(a.b, equal, x, zero);
  Value pIsZero = arith::CmpFOp::create(a.b, equal, a.operand(1), zero);
  Value jumps = arith::AndIOp::create(a.b, xIsZero, pIsZero);
  Value base = arith::SelectOp::create(a.b, jumps, f.constant(1), x);
  return ir::LogOp::create(a.b, base);
}

/// x^p: p x^(p-1) dx + x^p log(x) dp; a factor p of 0 hides 1/x.
Factor powRule(const RuleArguments &a, unsigned index) {
  Formula f(a);
  if (index == 1)
    return times(f.strong(a.result(), logOfBase(f, a)));
  Value x = a.operand(0), p = a.operand(1);
  Value lower = f.sub(p, f.constant(1));
  return times(f.strong(p, ir::PowOp::create(a.b, x, lower)));
}

Factor sinRule(const RuleArguments &a, unsigned) {
  return times(ir::CosOp::create(a.b, a.operand(0)));
}

Factor cosRule(const RuleArguments &a, unsigned) {
  return times(Formula(a).neg(ir::SinOp::create(a.b, a.operand(0))));
}

/// 1 + y^2
Factor tanRule(const RuleArguments &a, unsigned) {
  Formula f(a);
  Value y = a.result();
  return times(f.add(f.constant(1), f.mul(y, y)));
}

/// sqrt((1 - x)(1 + x))
Value chord(Formula &f, const RuleArguments &a) {
  Value x = a.operand(0), one = f.constant(1);
  return math::SqrtOp::create(a.b, f.mul(f.sub(one, x), f.add(one, x)));
}

Factor asinRule(const RuleArguments &a, unsigned) {
  Formula f(a);
  return times(f.reciprocal(chord(f, a)));
}

Factor acosRule(const RuleArguments &a, unsigned) {
  Formula f(a);
  return times(f.neg(f.reciprocal(chord(f, a))));
}

/// 1 / (1 + x^2)
Factor atanRule(const RuleArguments &a, unsigned) {
  Formula f(a);
  Value x = a.operand(0);
  return times(f.reciprocal(f.add(f.constant(1), f.mul(x, x))));
}

/// atan2(u, v): (v du - u dv) / (u^2 + v^2); 0 at the origin.
Factor atan2Rule(const RuleArguments &a, unsigned index) {
  Formula f(a);
  Value u = a.operand(0), v = a.operand(1);
  Value inverse = f.reciprocal(ir::HypotOp::create(a.b, u, v));
  Value scaled = f.strong(index == 0 ? v : f.neg(u), inverse);
  return times(f.strong(scaled, inverse));
}

Factor sinhRule(const RuleArguments &a, unsigned) {
  return times(ir::CoshOp::create(a.b, a.operand(0)));
}

Factor coshRule(const RuleArguments &a, unsigned) {
  return times(ir::SinhOp::create(a.b, a.operand(0)));
}

/// (1 - y)(1 + y)
Factor tanhRule(const RuleArguments &a, unsigned) {
  Formula f(a);
  Value y = a.result(), one = f.constant(1);
  return times(f.mul(f.sub(one, y), f.add(one, y)));
}

/// 1 / sqrt(1 + x^2)
Factor asinhRule(const RuleArguments &a, unsigned) {
  Formula f(a);
  Value x = a.operand(0);
  return times(f.reciprocal(ir::HypotOp::create(a.b, x, f.constant(1))));
}

/// 1 / (sqrt(x - 1) sqrt(x + 1))
Factor acoshRule(const RuleArguments &a, unsigned) {
  Formula f(a);
  Value x = a.operand(0), one = f.constant(1);
  Value low = math::SqrtOp::create(a.b, f.sub(x, one));
  Value high = math::SqrtOp::create(a.b, f.add(x, one));
  return times(f.reciprocal(f.mul(low, high)));
}

/// 1 / ((1 - x)(1 + x))
Factor atanhRule(const RuleArguments &a, unsigned) {
  Formula f(a);
  Value x = a.operand(0), one = f.constant(1);
  return times(f.reciprocal(f.mul(f.sub(one, x), f.add(one, x))));
}

/// 2 / sqrt(pi) exp(-x^2)
Value bell(const RuleArguments &a, int sign) {
  Formula f(a);
  Value x = a.operand(0);
  Value bell = ir::ExpOp::create(a.b, f.neg(f.mul(x, x)));
  return f.mul(f.constant(sign * 2 * std::numbers::inv_sqrtpi), bell);
}

Factor erfRule(const RuleArguments &a, unsigned) { return times(bell(a, 1)); }
Factor erfcRule(const RuleArguments &a, unsigned) { return times(bell(a, -1)); }

/// (x dx + y dy) / hypot; 0 at the origin.
Factor hypotRule(const RuleArguments &a, unsigned index) {
  Formula f(a);
  return times(f.strong(a.operand(index), f.reciprocal(a.result())));
}

Factor fmaRule(const RuleArguments &a, unsigned index) {
  if (index == 2)
    return {Factor::One, {}};
  return times(a.operand(1 - index));
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
