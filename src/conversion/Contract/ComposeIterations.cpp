#include "conversion/Contract/Passes.h"

#include "mlir/IR/Matchers.h"

#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;

namespace costate::conversion {
#define GEN_PASS_DEF_COMPOSEITERATIONS
#include "conversion/Contract/Passes.h.inc"

namespace {

/// `factor * v + term`, where `v` is a value that a loop carries.
struct Step {
  double factor = 0, term = 0;

  bool isConstant() const { return factor == 0; }
  Step twice() const { return {factor * factor, factor * term + term}; }
};

using Form = std::optional<Step>;

Form sum(Form a, Form b) {
  if (!a || !b)
    return std::nullopt;
  return Step{a->factor + b->factor, a->term + b->term};
}

Form product(Form a, Form b) {
  if (!a || !b || (!a->isConstant() && !b->isConstant()))
    return std::nullopt;
  auto [scale, other] = a->isConstant() ? std::pair(*a, *b) : std::pair(*b, *a);
  if (scale.term == 0) // inf or NaN times 0 is not 0
    return std::nullopt;
  return Step{scale.term * other.factor, scale.term * other.term};
}

Form negative(Form a) { return product(a, Step{0, -1}); }

/// What one carried value becomes in an iteration, if that depends on no other.
class Iteration {
public:
  explicit Iteration(Value carried) : carried(carried) {}

  Form of(Value value) {
    APFloat constant(0.0);
    if (value == carried)
      return Step{1, 0};
    if (matchPattern(value, m_ConstantFloat(&constant)))
      return Step{0, constant.convertToDouble()};
    Operation *op = value.getDefiningOp();
    if (!op || op->getBlock() != carried.getParentBlock())
      return std::nullopt;
    return llvm::TypeSwitch<Operation *, Form>(op)
        .Case(
            [&](arith::AddFOp) { return sum(operand(op, 0), operand(op, 1)); })
        .Case([&](arith::SubFOp) {
          return sum(operand(op, 0), negative(operand(op, 1)));
        })
        .Case([&](arith::NegFOp) { return negative(operand(op, 0)); })
        .Case([&](arith::MulFOp) {
          return product(operand(op, 0), operand(op, 1));
        })
        .Case([&](math::FmaOp) {
          return sum(product(operand(op, 0), operand(op, 1)), operand(op, 2));
        })
        .Default(Form());
  }

private:
  Form operand(Operation *op, unsigned k) { return of(op->getOperand(k)); }

  Value carried;
};

/// A loop that only takes `v = a * v + b` for constants, of each value that it
/// carries.
class AffineLoop {
public:
  explicit AffineLoop(scf::ForOp loop) : loop(loop) {}

  bool find() {
    if (!isCounted() || loop.getNumRegionIterArgs() == 0)
      return false;
    for (auto [carried, next] :
         llvm::zip_equal(loop.getRegionIterArgs(), loop.getYieldedValues())) {
      Form form = isFloat(carried) && size() <= mostOperations
                      ? Iteration(carried).of(next)
                      : std::nullopt;
      if (!form)
        return false;
      steps.push_back(*form);
    }
    doublings = mostDoublings;
    while (doublings >= leastDoublings && !areTame())
      --doublings;
    return doublings >= leastDoublings &&
           llvm::all_of(loop.getBody()->without_terminator(),
                        [](Operation &op) { return isPure(&op); });
  }

  void compose() {
    ImplicitLocOpBuilder b(loop.getLoc(), loop);
    Type type = loop.getUpperBound().getType();
    auto number = [&](int64_t value) -> Value {
      return arith::ConstantOp::create(b, b.getIntegerAttr(type, value));
    };
    Value count = arith::MaxSIOp::create(b, loop.getUpperBound(), number(0));
    SmallVector<Value> values(loop.getInitArgs());
    SmallVector<Step> forms(steps);
    for (int64_t bit = 1; bit < 1 << doublings; bit *= 2) {
      Value rest = arith::AndIOp::create(b, count, number(bit));
      Value odd =
          arith::CmpIOp::create(b, arith::CmpIPredicate::ne, rest, number(0));
      for (auto [value, form] : llvm::zip_equal(values, forms)) {
        value = arith::SelectOp::create(b, odd, apply(b, form, value), value);
        form = form.twice();
      }
    }
    Value rounds = arith::ShRUIOp::create(b, count, number(doublings));
    run(b, rounds, values, forms);
  }

private:
  /// Each adds an operation to those that are left over.
  static constexpr int mostDoublings = 5, leastDoublings = 3;
  static constexpr int64_t mostOperations = 16;
  /// What grows by more may overflow where single iterations do not.
  static constexpr double mostGrowth = 256;

  bool isCounted() {
    return matchPattern(loop.getLowerBound(), m_Zero()) &&
           matchPattern(loop.getStep(), m_One());
  }
  static bool isFloat(Value value) {
    return value.getType().isF32() || value.getType().isF64();
  }
  int64_t size() { return llvm::range_size(*loop.getBody()); }

  bool areTame() const {
    return llvm::all_of(
        steps, [&](const Step &step) { return isTame(step, doublings); });
  }
  /// Whether what is made of it is an ordinary number of f32, or 0.
  static bool isTame(Step form, int doublings) {
    for (int k = 0; k < doublings; ++k)
      form = form.twice();
    auto isOrdinary = [](double value) {
      constexpr double least = 1e-30, most = 1e30;
      return value == 0 ||
             (std::abs(value) >= least && std::abs(value) <= most);
    };
    return std::abs(form.factor) <= mostGrowth && isOrdinary(form.factor) &&
           isOrdinary(form.term);
  }

  static Value apply(ImplicitLocOpBuilder &b, Step form, Value value) {
    auto constant = [&](double number) -> Value {
      return arith::ConstantOp::create(b,
                                       b.getFloatAttr(value.getType(), number));
    };
    return math::FmaOp::create(b, value, constant(form.factor),
                               constant(form.term));
  }

  void run(ImplicitLocOpBuilder &b, Value rounds, ValueRange values,
           ArrayRef<Step> forms) {
    auto composed = scf::ForOp::create(b, loop.getLowerBound(), rounds,
                                       loop.getStep(), values);
    b.setInsertionPointToStart(composed.getBody());
    SmallVector<Value> next;
    for (auto [carried, form] :
         llvm::zip_equal(composed.getRegionIterArgs(), forms))
      next.push_back(apply(b, form, carried));
    scf::YieldOp::create(b, next);
    loop->replaceAllUsesWith(composed);
    loop->erase();
  }

  scf::ForOp loop;
  SmallVector<Step> steps;
  int doublings = 0;
};

struct ComposeIterations : impl::ComposeIterationsBase<ComposeIterations> {
  void runOnOperation() override {
    SmallVector<scf::ForOp> loops;
    getOperation()->walk([&](scf::ForOp loop) { loops.push_back(loop); });
    for (scf::ForOp loop : loops)
      if (AffineLoop affine(loop); affine.find())
        affine.compose();
  }
};

} // namespace
} // namespace costate::conversion
