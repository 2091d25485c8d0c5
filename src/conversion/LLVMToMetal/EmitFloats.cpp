/// Floats: by operators that round once (Prelude.metal says how), those of 64
/// bits by functions of integers (Float64.metal).

#include "conversion/LLVMToMetal/Emission.h"

using namespace mlir;

namespace costate::conversion {
namespace {

/// The function of f64 that `name` ends.
std::string ofDoubles(Emission &e, const Twine &name,
                      ArrayRef<std::string> arguments) {
  e.module.needDoubles();
  return call("costate_f64_" + name, arguments);
}

//===-- Arithmetic --------------------------------------------------------===//

struct Operator {
  const char *symbol, *ofDoubles;
};

LogicalResult arithmetic(Emission &e, Operation *op, const Operator &is) {
  const std::string &x = e.operand(op, 0), &y = e.operand(op, 1);
  if (op->getResult(0).getType().isF64())
    return e.set(op, ofDoubles(e, is.ofDoubles, {x, y}));
  return e.set(op, x + " " + is.symbol + " " + y);
}

template <class Op, const auto &is> EmittedOperation floats() {
  return {Op::getOperationName(),
          [](Emission &e, Operation *op) { return arithmetic(e, op, is); }};
}

constexpr Operator sum{"+", "add"}, difference{"-", "sub"}, product{"*", "mul"},
    quotient{"/", "div"};

struct Function {
  const char *name, *ofHalves, *ofDoubles;
};

LogicalResult apply(Emission &e, Operation *op, const Function &function) {
  const std::string &x = e.operand(op, 0);
  if (op->getResult(0).getType().isF64())
    return e.set(op, ofDoubles(e, function.ofDoubles, {x}));
  bool isHalf = op->getResult(0).getType().isF16();
  return e.set(op, call(isHalf ? function.ofHalves : function.name, {x}));
}

template <class Op, const auto &function> EmittedOperation unary() {
  return {Op::getOperationName(),
          [](Emission &e, Operation *op) { return apply(e, op, function); }};
}

constexpr Function negated{"-", "-", "neg"}, size{"fabs", "fabs", "abs"},
    root{"precise::sqrt", "sqrt", "sqrt"}, down{"floor", "floor", "floor"},
    up{"ceil", "ceil", "ceil"}, even{"rint", "rint", "rint"};

LogicalResult fma(Emission &e, LLVM::FMAOp op) {
  if (op.getResult().getType().isF64())
    return e.none(op);
  return e.set(
      op, call("fma", {e.operand(op, 0), e.operand(op, 1), e.operand(op, 2)}));
}

//===-- Comparisons -------------------------------------------------------===//

std::string unordered(const std::string &x, const std::string &y) {
  return "(isnan(" + x + ") || isnan(" + y + "))";
}

std::string comparison(LLVM::FCmpPredicate predicate, const std::string &x,
                       const std::string &y) {
  using Is = LLVM::FCmpPredicate;
  auto with = [&](const char *symbol) { return x + " " + symbol + " " + y; };
  auto isNot = [](const std::string &one) { return "!(" + one + ")"; };
  std::string isOther = x + " < " + y + " || " + x + " > " + y;
  switch (predicate) {
  case Is::_false:
    return "false";
  case Is::_true:
    return "true";
  case Is::oeq:
    return with("==");
  case Is::ogt:
    return with(">");
  case Is::oge:
    return with(">=");
  case Is::olt:
    return with("<");
  case Is::ole:
    return with("<=");
  case Is::one:
    return isOther;
  case Is::ord:
    return isNot(unordered(x, y));
  case Is::ueq:
    return isNot(isOther);
  case Is::ugt:
    return isNot(with("<="));
  case Is::uge:
    return isNot(with("<"));
  case Is::ult:
    return isNot(with(">="));
  case Is::ule:
    return isNot(with(">"));
  case Is::une:
    return isNot(with("=="));
  case Is::uno:
    return unordered(x, y);
  }
}

/// How two numbers compare, as a sum of these.
enum Relation { Less = 1, Equal = 2, Greater = 4, Unordered = 8 };

int relations(LLVM::FCmpPredicate predicate) {
  using Is = LLVM::FCmpPredicate;
  switch (predicate) {
  case Is::_false:
    return 0;
  case Is::_true:
    return Less | Equal | Greater | Unordered;
  case Is::oeq:
    return Equal;
  case Is::ogt:
    return Greater;
  case Is::oge:
    return Greater | Equal;
  case Is::olt:
    return Less;
  case Is::ole:
    return Less | Equal;
  case Is::one:
    return Less | Greater;
  case Is::ord:
    return Less | Equal | Greater;
  case Is::ueq:
    return Equal | Unordered;
  case Is::ugt:
    return Greater | Unordered;
  case Is::uge:
    return Greater | Equal | Unordered;
  case Is::ult:
    return Less | Unordered;
  case Is::ule:
    return Less | Equal | Unordered;
  case Is::une:
    return Less | Greater | Unordered;
  case Is::uno:
    return Unordered;
  }
}

LogicalResult compare(Emission &e, LLVM::FCmpOp op) {
  const std::string &x = e.operand(op, 0), &y = e.operand(op, 1);
  if (!op.getLhs().getType().isF64())
    return e.set(op, comparison(op.getPredicate(), x, y));
  std::string relation = ofDoubles(e, "compare", {x, y});
  return e.set(op, "(" + relation + " & " +
                       std::to_string(relations(op.getPredicate())) +
                       "u) != 0u");
}

} // namespace

llvm::ArrayRef<EmittedOperation> emittedFloats() {
  static const EmittedOperation all[] = {
      floats<LLVM::FAddOp, sum>(),     floats<LLVM::FSubOp, difference>(),
      floats<LLVM::FMulOp, product>(), floats<LLVM::FDivOp, quotient>(),
      unary<LLVM::FNegOp, negated>(),  unary<LLVM::FAbsOp, size>(),
      unary<LLVM::SqrtOp, root>(),     unary<LLVM::FFloorOp, down>(),
      unary<LLVM::FCeilOp, up>(),      unary<LLVM::RoundEvenOp, even>(),
      emitted<LLVM::FMAOp, fma>(),     emitted<LLVM::FCmpOp, compare>(),
  };
  return all;
}

} // namespace costate::conversion
