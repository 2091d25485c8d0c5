#include "autodiff/replay/Steps.h"

#include "autodiff/replay/Accesses.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace costate::autodiff {

/// Numbers of i32 up to here are added without wrapping around.
static constexpr int64_t smallLimit = int64_t(1) << 29;

static std::optional<bool> truthOf(const Affine &condition) {
  if (!condition.isConstant())
    return std::nullopt;
  return condition.constant != 0;
}

std::optional<bool> Step::answer() const { return truthOf(value); }

int64_t estimate(const Affine &form) {
  int64_t sum = form.constant;
  for (auto [symbol, coefficient] : form.terms)
    sum += std::clamp<int64_t>(coefficient, -1024, 1024) << 20;
  return sum;
}

Affine Steps::likely(const Affine &extent) const {
  if (extent.isConstant())
    return extent;
  int64_t most = 0;
  for (const Step &step : all)
    if (step.from.isConstant())
      most = std::max(most, step.from.constant);
  return isExtent(most) ? Affine(most + 1) : extent;
}

size_t Steps::longest(const Affine &extent) const {
  size_t found = 0;
  const Affine most = likely(extent);
  auto length = [&](size_t step) {
    return estimate(end(step, most) - all[step].from);
  };
  for (size_t step = 1; step < all.size(); ++step)
    if (length(step) > length(found))
      found = step;
  return found;
}

namespace {

/// Where a value is one affine form; without an end up to the extent.
struct Interval {
  Affine from;
  std::optional<Affine> to;
};

/// A value from `from` on.
struct Part {
  Affine from, value;
};

} // namespace

/// Makes the steps of one value. What returns false has not succeeded.
class StepAnalysis::Builder {
public:
  explicit Builder(StepAnalysis &analysis) : analysis(analysis) {}

  Steps result;

  bool make(Value value) {
    if (IntegerAttr constant; matchPattern(value, m_Constant(&constant)))
      return makeConstant(constant.getValue());
    if (auto argument = dyn_cast<BlockArgument>(value);
        argument && argument.getOwner() == analysis.range.getBody()) {
      result.index = value;
      return put(whole(), symbol());
    }
    Operation *op = value.getDefiningOp();
    if (op && isa<IntegerType>(value.getType()) && isPlain(op) &&
        makeFrom(op, value))
      return !isNarrow(value) || fits();
    if (!isUniform(value, analysis.range) || !value.getType().isInteger())
      return false;
    result = Steps();
    return put(whole(), Affine::ofSymbol(value)) &&
           (!isNarrow(value) || isSmall());
  }

private:
  static bool isNarrow(Value value) { return value.getType().isInteger(32); }
  static Interval whole() { return {0, std::nullopt}; }
  Affine symbol() const { return Affine::ofSymbol(result.index); }

  /// What all work items have in common may be a symbol as well, about which
  /// nothing has to be assumed.
  bool isPlain(Operation *op) const {
    return !isUniform(op->getResult(0), analysis.range) ||
           isa<arith::AddIOp, arith::SubIOp, arith::MulIOp, arith::ExtSIOp,
               arith::TruncIOp, arith::CmpIOp>(op);
  }

  bool makeConstant(const APInt &constant) {
    bool truth = constant.getBitWidth() == 1;
    return put(whole(), Affine(truth ? int64_t(constant.getZExtValue())
                                     : constant.getSExtValue()));
  }

  bool makeFrom(Operation *op, Value value) {
    using P = arith::CmpIPredicate;
    return llvm::TypeSwitch<Operation *, bool>(op)
        .Case<arith::AddIOp, arith::SubIOp>([&](auto sum) {
          int64_t sign = isa<arith::AddIOp>(op) ? 1 : -1;
          return !value.getType().isInteger(1) &&
                 each(op, [&](auto &a, auto &b) { return a + b * sign; });
        })
        .Case([&](arith::MulIOp) { return makeProduct(op); })
        .Case<arith::ExtSIOp>([&](auto) { return copy(op->getOperand(0)); })
        .Case([&](arith::TruncIOp trunc) {
          return isNarrow(value) && copy(trunc.getIn()) &&
                 (bitEnumContainsAny(trunc.getOverflowFlags(),
                                     arith::IntegerOverflowFlags::nsw) ||
                  isSmall());
        })
        .Case([&](arith::MinSIOp) { return makeExtremum(op, P::slt); })
        .Case([&](arith::MaxSIOp) { return makeExtremum(op, P::sgt); })
        .Case([&](arith::CmpIOp cmp) {
          return makeComparison(op, cmp.getPredicate());
        })
        .Case<arith::AndIOp>([&](auto) {
          return makeLogic(op, [](bool a, bool b) { return a && b; });
        })
        .Case<arith::OrIOp>([&](auto) {
          return makeLogic(op, [](bool a, bool b) { return a || b; });
        })
        .Case<arith::XOrIOp>([&](auto) {
          return makeLogic(op, [](bool a, bool b) { return a != b; });
        })
        .Case([&](arith::SelectOp select) {
          return makeChoice(select.getCondition(), select.getTrueValue(),
                            select.getFalseValue());
        })
        .Case([&](scf::IfOp branch) {
          unsigned k = cast<OpResult>(value).getResultNumber();
          return makeChoice(branch.getCondition(),
                            branch.thenYield().getOperand(k),
                            branch.elseYield().getOperand(k));
        })
        .Case([&](ir::RemOp rem) {
          return !rem.getIsUnsigned() && makeRemainder(op);
        })
        .Case([&](math::AbsIOp) { return makeMagnitude(op); })
        .Default([](Operation *) { return false; });
  }

  //===-- Assumptions and order -------------------------------------------===//

  bool assume(const Affine &form) {
    if (form.isConstant())
      return form.constant >= 0;
    if (auto end = extent()) // there is a work item
      if (auto above = constantDifference(form, *end); above && *above >= -1)
        return true;
    if (llvm::none_of(result.assumed,
                      [&](const Affine &known) { return isSame(known, form); }))
      result.assumed.push_back(form);
    return true;
  }

  /// Whether a <= b; what is not known is assumed: a symbol is large.
  std::optional<bool> isAtMost(const Affine &a, const Affine &b) {
    Affine difference = b - a;
    if (difference.isConstant())
      return difference.constant >= 0;
    auto all = [&](int sign) {
      return llvm::all_of(difference.terms, [&](auto &term) {
        return sign * term.second > 0 && term.first != result.index;
      });
    };
    if (all(1) && assume(difference))
      return true;
    if (all(-1) && assume(-difference))
      return false;
    return std::nullopt;
  }

  /// Each symbol is far from where i32 wraps around.
  bool isSmall() {
    for (const Step &step : result.all)
      for (auto [value, coefficient] : step.value.terms) {
        bool isIndex = value == result.index;
        Affine bound =
            isIndex ? analysis.extentOf(value) : Affine::ofSymbol(value);
        if (!assume(-bound + smallLimit) ||
            (!isIndex && !assume(bound + smallLimit)))
          return false;
      }
    return fits();
  }

  bool fits() const {
    return llvm::all_of(result.all, [](const Step &step) {
      int64_t room = (int64_t(1) << 31) - 1;
      if (!llvm::isInt<30>(step.value.constant))
        return false;
      room -= std::abs(step.value.constant);
      for (auto [symbol, coefficient] : step.value.terms) {
        if (!llvm::isInt<4>(coefficient))
          return false;
        room -= std::abs(coefficient) * smallLimit;
      }
      return room >= 0;
    });
  }

  //===-- Putting steps together ------------------------------------------===//

  std::optional<Affine> extent() const {
    if (!result.index)
      return std::nullopt;
    return analysis.extentOf(result.index);
  }

  /// `value` from `from` on, in the place of what begins there.
  void append(const Affine &from, const Affine &value) {
    if (auto end = extent())
      if (auto beyond = constantDifference(from, *end); beyond && *beyond >= 0)
        return;
    Affine start = from;
    if (from.isConstant() && from.constant <= 0) {
      start = 0;
      result.all.clear();
    }
    if (!result.all.empty() && isSame(result.all.back().from, start))
      result.all.pop_back();
    if (!result.all.empty() && isSame(result.all.back().value, value))
      return;
    result.all.push_back({start, value});
  }

  bool put(const Interval &interval, const Affine &value) {
    append(interval.from, value);
    return true;
  }

  /// The parts of `interval`; each lasts until the next one.
  bool put(const Interval &interval, ArrayRef<Part> parts) {
    for (const Part &part : parts) {
      std::optional<bool> isEarly = isAtMost(part.from, interval.from);
      if (!isEarly)
        return false;
      const Affine &from = *isEarly ? interval.from : part.from;
      if (interval.to) {
        std::optional<bool> isLate = isAtMost(*interval.to, from);
        if (!isLate)
          return false;
        if (*isLate)
          break;
      }
      append(from, part.value);
    }
    return true;
  }

  bool join(const Steps &steps) {
    if (result.index && steps.index && result.index != steps.index)
      return false;
    if (!result.index)
      result.index = steps.index;
    return llvm::all_of(steps.assumed,
                        [&](const Affine &form) { return assume(form); });
  }

  const Steps *operand(Value value) {
    const Steps *steps = analysis.of(value);
    return steps && join(*steps) ? steps : nullptr;
  }

  static Interval interval(const Steps &steps, size_t k) {
    if (k + 1 == steps.all.size())
      return {steps.all[k].from, std::nullopt};
    return {steps.all[k].from, steps.all[k + 1].from};
  }

  bool copy(Value value) {
    const Steps *steps = operand(value);
    if (steps)
      result.all = steps->all;
    return steps;
  }

  using Both = llvm::function_ref<bool(const Interval &, const Affine &,
                                       const Affine &)>;

  /// Visits the intervals in which both operands of `op` are affine forms.
  bool visit(Operation *op, Both both) {
    const Steps *a = operand(op->getOperand(0)),
                *b = operand(op->getOperand(1));
    if (!a || !b)
      return false;
    Affine from;
    for (size_t i = 0, k = 0;;) {
      std::optional<Affine> ends[] = {interval(*a, i).to, interval(*b, k).to};
      std::optional<Affine> to = ends[0] ? ends[0] : ends[1];
      if (ends[0] && ends[1]) {
        std::optional<bool> isFirst = isAtMost(*ends[0], *ends[1]);
        if (!isFirst)
          return false;
        to = ends[*isFirst ? 0 : 1];
      }
      if (!both({from, to}, a->all[i].value, b->all[k].value))
        return false;
      if (!to)
        return true;
      from = *to;
      i += ends[0] && isSame(*ends[0], *to);
      k += ends[1] && isSame(*ends[1], *to);
    }
  }

  bool each(Operation *op,
            llvm::function_ref<Affine(const Affine &, const Affine &)> f) {
    return visit(op, [&](const Interval &where, auto &a, auto &b) {
      return put(where, f(a, b));
    });
  }

  //===-- Operations ------------------------------------------------------===//

  bool makeProduct(Operation *op) {
    return visit(op, [&](const Interval &where, auto &a, auto &b) {
      const Affine &factor = a.isConstant() ? a : b;
      const Affine &other = a.isConstant() ? b : a;
      return factor.isConstant() && llvm::isInt<20>(factor.constant) &&
             put(where, other * factor.constant);
    });
  }

  bool makeLogic(Operation *op, bool (*f)(bool, bool)) {
    if (!op->getResult(0).getType().isInteger(1))
      return false;
    return visit(op, [&](const Interval &where, auto &a, auto &b) {
      std::optional<Affine> both = combined(a, b, f);
      return both && put(where, *both);
    });
  }

  /// Of two conditions of which one may be known to a run only.
  static std::optional<Affine> combined(const Affine &a, const Affine &b,
                                        bool (*f)(bool, bool)) {
    std::optional<bool> x = truthOf(a), y = truthOf(b);
    if (x && y)
      return Affine(f(*x, *y));
    if (!x && !y)
      return std::nullopt;
    bool known = x ? *x : *y, ifFalse = f(known, false),
         ifTrue = f(known, true);
    if (ifFalse == ifTrue)
      return Affine(ifTrue);
    return ifTrue ? std::optional(x ? b : a) : std::nullopt;
  }

  /// `below` up to where `difference` stops being negative, `above` from there
  /// on, if it rises; the other way round if it falls.
  bool putBySign(const Interval &where, const Affine &difference,
                 const Affine &below, const Affine &above) {
    int64_t slope = result.index ? difference.coefficient(result.index) : 0;
    if (slope == 0) {
      std::optional<bool> isAbove = isAtMost(0, difference);
      return isAbove && put(where, *isAbove ? above : below);
    }
    if (std::abs(slope) != 1)
      return false;
    Affine rest = difference - symbol() * slope;
    if (slope == 1)
      return put(where, {{where.from, below}, {-rest, above}});
    return put(where, {{where.from, above}, {rest + 1, below}});
  }

  bool makeExtremum(Operation *op, arith::CmpIPredicate wins) {
    return visit(op, [&](const Interval &where, auto &a, auto &b) {
      Affine difference = a - b;
      return wins == arith::CmpIPredicate::slt
                 ? putBySign(where, difference, a, b)
                 : putBySign(where, difference, b, a);
    });
  }

  bool makeMagnitude(Operation *op) {
    const Steps *steps = operand(op->getOperand(0));
    if (!steps)
      return false;
    for (size_t k = 0; k < steps->all.size(); ++k) {
      const Affine &value = steps->all[k].value;
      if (!putBySign(interval(*steps, k), value, -value, value))
        return false;
    }
    return true;
  }

  bool makeComparison(Operation *op, arith::CmpIPredicate predicate) {
    return visit(op, [&](const Interval &where, auto &a, auto &b) {
      return compare(where, a - b, predicate);
    });
  }

  bool compare(const Interval &where, const Affine &difference,
               arith::CmpIPredicate predicate) {
    using P = arith::CmpIPredicate;
    auto by = [&](int64_t offset, int64_t below) {
      return putBySign(where, difference + offset, below, 1 - below);
    };
    switch (predicate) {
    case P::slt:
      return by(0, 1);
    case P::sle:
      return by(-1, 1);
    case P::sge:
      return by(0, 0);
    case P::sgt:
      return by(-1, 0);
    case P::eq:
      return putAtZero(where, difference, 1);
    case P::ne:
      return putAtZero(where, difference, 0);
    default:
      return false;
    }
  }

  bool putAtZero(const Interval &where, const Affine &difference,
                 int64_t there) {
    if (difference.isConstant())
      return put(where, Affine(difference.constant ? 1 - there : there));
    int64_t slope = result.index ? difference.coefficient(result.index) : 0;
    if (std::abs(slope) != 1)
      return false;
    Affine rest = difference - symbol() * slope;
    Affine zero = rest * -slope;
    return put(where,
               {{where.from, 1 - there}, {zero, there}, {zero + 1, 1 - there}});
  }

  bool makeChoice(Value condition, Value yes, Value no) {
    const Steps *c = operand(condition), *a = operand(yes), *b = operand(no);
    if (!a || !b || !c)
      return false;
    for (size_t k = 0; k < c->all.size(); ++k) {
      std::optional<bool> answer = c->all[k].answer();
      if (!answer)
        return false;
      std::vector<Part> parts;
      for (const Step &step : (*answer ? a : b)->all)
        parts.push_back({step.from, step.value});
      if (!put(interval(*c, k), parts))
        return false;
    }
    return true;
  }

  //===-- Remainders ------------------------------------------------------===//

  /// Of numbers that differ from the index by a constant and a multiple of the
  /// divisor, which is not less than the extent nor than the constant.
  bool makeRemainder(Operation *op) {
    return visit(op, [&](const Interval &where, auto &a, auto &divisor) {
      if (!result.index || a.coefficient(result.index) != 1 ||
          divisor.coefficient(result.index) != 0)
        return false;
      Affine rest = a - symbol();
      auto shift = reduced(rest, divisor);
      return shift && assume(divisor - analysis.extentOf(result.index)) &&
             assume(divisor - least(shift->first, shift->second)) &&
             (shift->second == 0 || assumeNoWrap(divisor)) &&
             putRemainder(where, shift->first, shift->second, divisor);
    });
  }

  /// The least divisor for which numbers are in two rounds at most, and in the
  /// first one if they may be negative.
  static int64_t least(int64_t shift, int64_t times) {
    return times == 0 && shift < 0 ? 1 - shift : std::abs(shift);
  }

  /// Few times `divisor` and an index do not wrap around: memory has not so
  /// many elements, nor does a range end that has so many work items.
  bool assumeNoWrap(const Affine &divisor) {
    constexpr int64_t most = int64_t(1) << 60;
    bool isCount = constantDifference(divisor, *extent()) ||
                   llvm::all_of(divisor.terms, [](auto &term) {
                     return term.second == 1 &&
                            term.first.template getDefiningOp<ir::ExtentOp>();
                   });
    return isCount || assume(-divisor + most);
  }

  /// `rest` as a constant and how many times the divisor.
  static std::optional<std::pair<int64_t, int64_t>>
  reduced(const Affine &rest, const Affine &divisor) {
    for (int64_t times : {0, 1, -1, 2}) {
      Affine less = rest - divisor * times;
      bool isClose = !divisor.isConstant() ||
                     2 * std::abs(less.constant) <= divisor.constant;
      if (less.isConstant() && isClose)
        return std::pair(less.constant, times);
    }
    return std::nullopt;
  }

  bool putRemainder(const Interval &where, int64_t shift, int64_t times,
                    const Affine &divisor) {
    Affine near = symbol() + shift;
    if (shift >= 0 && times >= 0)
      return put(where,
                 {{where.from, near}, {divisor - shift, near - divisor}});
    if (times > 0)
      return put(where, {{where.from, near + divisor}, {-shift, near}});
    return times == 0 && put(where, near); // negative in front of -shift
  }

  StepAnalysis &analysis;
};

StepAnalysis::StepAnalysis(ir::RangeOp range) : range(range) {}
StepAnalysis::~StepAnalysis() = default;

const Steps *StepAnalysis::of(Value value) {
  if (auto found = known.find(value); found != known.end())
    return found->second.get();
  Builder builder(*this);
  std::unique_ptr<Steps> steps;
  if (builder.make(value) && !builder.result.all.empty()) // else no work item
    steps = std::make_unique<Steps>(std::move(builder.result));
  return (known[value] = std::move(steps)).get();
}

Affine StepAnalysis::extentOf(Value index) {
  unsigned number = cast<BlockArgument>(index).getArgNumber();
  return Affine::of(range->getOperand(number));
}

} // namespace costate::autodiff
