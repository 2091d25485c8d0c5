/// Rules of `arith` and of the kernel dialect.

#include "autodiff/rules/Tables.h"
#include "ir/Kernel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace costate::autodiff {

namespace {

Factor zeroRule(const RuleArguments &, unsigned) { return {Factor::Zero, {}}; }
Factor oneRule(const RuleArguments &, unsigned) { return {Factor::One, {}}; }
Factor negRule(const RuleArguments &, unsigned) {
  return {Factor::MinusOne, {}};
}
Factor convertRule(const RuleArguments &, unsigned) {
  return {Factor::Convert, {}};
}

Factor subRule(const RuleArguments &, unsigned index) {
  return {index == 0 ? Factor::One : Factor::MinusOne, {}};
}

/// d(x/y) = (1/y) dx - (x/y)(1/y) dy, with one division for both
Factor divRule(const RuleArguments &a, unsigned index) {
  Number inverse = 1 / operand(a, 1);
  return times(index == 0 ? inverse : -(result(a) * inverse));
}

/// fmod(x, y) = x - n y with the whole number n = trunc(x/y). A rounded x/y may
/// reach the next whole number (1 / 0.1 is 10, but n is 9); (x - fmod) / y is
/// near n.
Factor remRule(const RuleArguments &a, unsigned index) {
  if (index == 0)
    return {Factor::One, {}};
  Number multiple = operand(a, 0) - result(a);
  return times(-(multiple / operand(a, 1)).of<math::RoundEvenOp>());
}

/// min and max: the derivative goes where the value came from; on a tie, half
/// to each operand, since the operations commute. Operands are compared with
/// each other, not with the result: under fast-math a recomputed operand may
/// differ from it in the last bit.
template <arith::CmpFPredicate beatsOrTies>
Factor extremumRule(const RuleArguments &a, unsigned index) {
  using Predicate = arith::CmpFPredicate;
  Value own = a.operand(index), other = a.operand(1 - index);
  Value wins = arith::CmpFOp::create(a.b, beatsOrTies, own, other);
  Value alone = arith::CmpFOp::create(a.b, Predicate::UNO, other, other);
  Value counts = arith::OrIOp::create(a.b, wins, alone);
  Value tie = arith::CmpFOp::create(a.b, Predicate::OEQ, own, other);
  return {Factor::Share, counts, tie};
}

Factor selectRule(const RuleArguments &a, unsigned index) {
  if (index == 0)
    return {Factor::Zero, {}};
  return {index == 1 ? Factor::If : Factor::IfNot, a.operand(0)};
}

/// strong_mul(g, f) has the derivative strong_mul(dg, f) + strong_mul(g, df).
/// Where f is a primal value, a 0 of it does not hide an inf in dg.
Factor strongMulRule(const RuleArguments &a, unsigned index) {
  if (index == 0 && !cast<ir::StrongMulOp>(a.op).getSymmetric())
    return times(a.operand(1));
  return {Factor::StrongBy, a.operand(1 - index)};
}

/// How many factors x the product `value` of them and constants has; 0 if it is
/// none.
int degree(Value value, Value x, int depth = 0) {
  constexpr int deepest = 6;
  if (value == x)
    return 1;
  auto product = value.getDefiningOp<arith::MulFOp>();
  if (!product || depth == deepest)
    return 0;
  Value a = product.getLhs(), b = product.getRhs();
  int ofA = degree(a, x, depth + 1), ofB = degree(b, x, depth + 1);
  bool isKnown = (ofA || matchPattern(a, m_Constant())) &&
                 (ofB || matchPattern(b, m_Constant()));
  return isKnown ? ofA + ofB : 0;
}

} // namespace

/// c x^n times x is differentiated by that x alone, with n + 1 times c x^n.
Factor mulRule(const RuleArguments &a, unsigned index) {
  Value own = a.op->getOperand(index), other = a.op->getOperand(1 - index);
  if (degree(own, other) > 1)
    return {Factor::Zero, {}};
  if (int n = degree(other, own); n > 1)
    return {Factor::Times, a.operand(1 - index), {}, n + 1.0};
  return times(a.operand(1 - index));
}

void addArithRules(llvm::StringMap<Rule> &rules) {
  rules["arith.addf"] = oneRule;
  rules["arith.subf"] = subRule;
  rules["arith.negf"] = negRule;
  rules["arith.mulf"] = mulRule;
  rules["arith.divf"] = divRule;
  rules["arith.remf"] = remRule;
  rules["arith.extf"] = convertRule;
  rules["arith.truncf"] = convertRule;
  rules["costate.narrow"] = convertRule;
  rules["arith.select"] = selectRule;
  for (const char *name : {"arith.maximumf", "arith.maxnumf"})
    rules[name] = extremumRule<arith::CmpFPredicate::OGE>;
  for (const char *name : {"arith.minimumf", "arith.minnumf"})
    rules[name] = extremumRule<arith::CmpFPredicate::OLE>;
  for (const char *name : {"arith.sitofp", "arith.uitofp"})
    rules[name] = zeroRule;
  rules["costate.strong_mul"] = strongMulRule;
}

} // namespace costate::autodiff
