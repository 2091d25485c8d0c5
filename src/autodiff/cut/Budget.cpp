#include "autodiff/cut/Budget.h"

#include "autodiff/cut/Counting.h"
#include "autodiff/rules/Rules.h"
#include "ir/Tape.h"
#include "sizing/Record.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace costate::autodiff {
namespace {

using Builder = ImplicitLocOpBuilder;

/// The number of a loop and of all its copies, while a gradient is made.
constexpr StringLiteral loopAttr = "costate.loop";
/// On a value that stands for bytes: what a segment of that loop begins with,
/// or what an iteration saves.
constexpr StringLiteral stateAttr = "costate.state_of";
constexpr StringLiteral recordAttr = "costate.record_of";

std::optional<int64_t> numberOf(Operation *op, StringRef attribute) {
  auto number = op->getAttrOfType<IntegerAttr>(attribute);
  return number ? std::optional(number.getInt()) : std::nullopt;
}

bool isLoop(Operation *op) { return isa<scf::ForOp, scf::WhileOp>(op); }

/// The loops of `block` that are in no other one there.
SmallVector<Operation *> loopsOf(Block &block) {
  SmallVector<Operation *> loops;
  for (Operation &op : block) {
    if (isLoop(&op))
      loops.push_back(&op);
    else if (auto branch = dyn_cast<scf::IfOp>(op))
      for (Region &region : branch->getRegions())
        if (!region.empty())
          llvm::append_range(loops, loopsOf(region.front()));
  }
  return loops;
}

Block &bodyOf(Operation *loop) {
  if (auto counted = dyn_cast<scf::ForOp>(loop))
    return *counted.getBody();
  return *cast<scf::WhileOp>(loop).getAfterBody();
}

/// Whether it saves too little to be cut, whatever it does.
bool isShort(Operation *op) {
  constexpr int64_t few = 32;
  auto loop = dyn_cast<scf::ForOp>(op);
  APInt count;
  return loop && matchPattern(loop.getUpperBound(), m_ConstantInt(&count)) &&
         count.sle(few) && loopsOf(*loop.getBody()).empty();
}

/// Arithmetic on bytes and iterations, as f64: products may be large.
class Bytes {
public:
  explicit Bytes(Builder &b) : b(b) {}

  Value constant(double value) {
    return arith::ConstantOp::create(b, b.getF64FloatAttr(value));
  }
  Value of(Value integer) {
    return arith::SIToFPOp::create(b, b.getF64Type(), integer);
  }
  Value sum(Value x, Value y) { return arith::AddFOp::create(b, x, y); }
  Value difference(Value x, Value y) { return arith::SubFOp::create(b, x, y); }
  Value product(Value x, Value y) { return arith::MulFOp::create(b, x, y); }
  Value quotient(Value x, Value y) { return arith::DivFOp::create(b, x, y); }
  Value least(Value x, Value y) { return arith::MinNumFOp::create(b, x, y); }
  Value most(Value x, Value y) { return arith::MaxNumFOp::create(b, x, y); }
  Value root(Value x) { return math::SqrtOp::create(b, x); }
  Value roundedUp(Value x) { return math::CeilOp::create(b, x); }
  Value isAbove(Value x, Value y) {
    return arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, x, y);
  }
  Value whole(Value x) {
    return ir::ToIntOp::create(b, b.getI64Type(), x, /*isUnsigned=*/false);
  }

private:
  Builder &b;
};

/// What is known of a loop before it runs.
struct Sizes {
  Value iterations, state, record; ///< f64; `record` null: not known
};

class Planner {
public:
  Planner(TripCounts &tripCounts, function_ref<bool(Operation *)> canRunAgain)
      : tripCounts(tripCounts), canRunAgain(canRunAgain) {}

  /// Numbers all loops, then cuts those of one work item or of serial code.
  void run(Block &block, Location loc) {
    block.walk([&](Operation *op) {
      if (isLoop(op) && !op->hasAttr(loopAttr))
        op->setAttr(loopAttr, Builder(loc, op).getI64IntegerAttr(loops++));
    });
    if (worthwhile(block).empty())
      return;
    Builder b(loc, &block, block.begin());
    Value budget = tape::BudgetOp::create(b, b.getI64Type(), IntegerAttr());
    plan(block, Bytes(b).of(budget), b);
  }

private:
  /// The loops of `block` to be cut.
  SmallVector<Operation *> worthwhile(Block &block) {
    SmallVector<Operation *> chosen;
    for (Operation *loop : loopsOf(block))
      if (!isShort(loop) && !loop->hasAttr(ir::rerunAttr) &&
          !loop->hasAttr(ir::restAttr) && !loop->hasAttr(countsAttr) &&
          canRunAgain(loop))
        chosen.push_back(loop);
    return chosen;
  }

  /// `budget`: bytes for all loops of `block`, equal shares.
  void plan(Block &block, Value budget, Builder &b) {
    SmallVector<Operation *> chosen = worthwhile(block);
    if (chosen.size() > 1) {
      Bytes bytes(b);
      budget = bytes.quotient(budget, bytes.constant(double(chosen.size())));
    }
    for (Operation *loop : chosen)
      cut(loop, budget);
  }

  void cut(Operation *op, Value budget) {
    auto loop = dyn_cast<scf::ForOp>(op);
    if (!loop && !(loop = countFirst(cast<scf::WhileOp>(op), tripCounts)))
      return;
    if (loop != op)
      loop->setAttr(loopAttr, op->getAttr(loopAttr));
    Builder b(loop.getLoc(), loop);
    Bytes bytes(b);
    Value iterations =
        arith::MaxSIOp::create(b, loop.getUpperBound(), indexConstant(b, 0));
    int64_t number = *numberOf(loop, loopAttr);
    Sizes sizes{bytes.of(iterations), bytes.of(size(b, stateAttr, number)),
                recordOf(loop, loop, b)};
    Plan plan =
        sizes.record ? byRecords(sizes, budget, b) : byStates(sizes, budget, b);
    Block &body = *loop.getBody();
    if (!worthwhile(body).empty())
      this->plan(body, shareOf(plan, sizes, number, budget, b), b);
    Segments segments{bytes.whole(plan.count), bytes.whole(plan.length), {}};
    Value cut = arith::MulIOp::create(b, segments.count, segments.length);
    segments.rest = arith::SubIOp::create(b, iterations, cut);
    Attribute name = loop->getAttr(loopAttr);
    Parts parts = cutInto(segments, loop, tripCounts);
    parts.segments.walk([&](scf::ForOp part) {
      if (part == parts.segments || part->hasAttr(ir::segmentAttr))
        if (!part->hasAttr(loopAttr))
          part->setAttr(loopAttr, name);
    });
    parts.rest->setAttr(loopAttr, name);
  }

  struct Plan {
    Value count, length, rest; ///< f64: see Segments
  };

  /// Of n iterations the last ones, as many as fit behind the states of k
  /// segments, are kept; a segment has as much room as they have when it runs
  /// again. The least k with (k + 1) (budget - k state) >= n record.
  Plan byRecords(const Sizes &sizes, Value budget, Builder &b) {
    Bytes m(b);
    Value one = m.constant(1), state = m.most(sizes.state, one);
    Value record = m.most(sizes.record, one);
    Value excess = m.difference(m.product(sizes.iterations, record), budget);
    Value room = m.most(m.difference(budget, state), one);
    Value square = m.difference(m.product(room, room),
                                m.product(m.product(m.constant(4), state),
                                          m.most(excess, m.constant(0))));
    Value root = m.root(m.most(square, m.constant(0)));
    Value least =
        m.quotient(m.product(m.constant(2), excess), m.sum(room, root));
    Value most = m.quotient(room, m.product(m.constant(2), state));
    Value count = m.most(m.roundedUp(m.least(least, most)), one);
    Value kept =
        m.quotient(m.difference(budget, m.product(count, state)), record);
    kept = m.most(m.of(m.whole(kept)), one);
    Value others = m.most(m.difference(sizes.iterations, kept), m.constant(0));
    Value length = m.most(m.roundedUp(m.quotient(others, count)), one);
    count = m.least(m.roundedUp(m.quotient(others, length)),
                    m.of(m.whole(m.quotient(sizes.iterations, length))));
    Value isMore = m.isAbove(excess, m.constant(0));
    count = arith::SelectOp::create(b, isMore, count, m.constant(0));
    return withRest(count, length, sizes, b);
  }

  /// Half of the budget for states, the other half for what is unknown.
  Plan byStates(const Sizes &sizes, Value budget, Builder &b) {
    Bytes m(b);
    Value half = m.most(m.product(budget, m.constant(0.5)), m.constant(1));
    Value all = m.product(sizes.iterations, sizes.state);
    Value length = m.roundedUp(m.quotient(all, half));
    length = m.most(length, m.constant(1));
    Value count = m.of(m.whole(m.quotient(sizes.iterations, length)));
    count = m.most(m.difference(count, m.constant(1)), m.constant(0));
    return withRest(count, length, sizes, b);
  }

  static Plan withRest(Value count, Value length, const Sizes &sizes,
                       Builder &b) {
    Bytes m(b);
    Value cut = m.product(count, length);
    return {count, length, m.difference(sizes.iterations, cut)};
  }

  /// The bytes that the loops of an iteration may take.
  Value shareOf(const Plan &plan, const Sizes &sizes, int64_t number,
                Value budget, Builder &b) {
    Bytes m(b);
    Value states = m.product(plan.count, sizes.state);
    Value iterations = m.most(m.most(plan.length, plan.rest), m.constant(1));
    Value all = m.quotient(m.difference(budget, states), iterations);
    Value own = m.of(size(b, recordAttr, number));
    return m.most(m.difference(all, own), m.constant(0));
  }

  /// What an iteration saves with the loops in it; null if those may have any
  /// number of iterations, for all that is known before `outer`.
  Value recordOf(Operation *loop, Operation *outer, Builder &b) {
    Bytes m(b);
    Value all = m.of(size(b, recordAttr, *numberOf(loop, loopAttr)));
    for (Operation *inner : loopsOf(bodyOf(loop))) {
      auto counted = dyn_cast<scf::ForOp>(inner);
      if (!counted || !inner->hasAttr(loopAttr) ||
          outer->isAncestor(
              counted.getUpperBound().getParentBlock()->getParentOp()))
        return {};
      Value record = recordOf(inner, outer, b);
      if (!record)
        return {};
      Value count = m.most(m.of(counted.getUpperBound()), m.constant(0));
      all = m.sum(all, m.product(count, record));
    }
    return all;
  }

  Value size(Builder &b, StringRef of, int64_t number) {
    auto cast =
        UnrealizedConversionCastOp::create(b, b.getI64Type(), ValueRange());
    cast->setAttr(of, b.getI64IntegerAttr(number));
    return cast.getResult(0);
  }

  TripCounts &tripCounts;
  function_ref<bool(Operation *)> canRunAgain;
  int64_t loops = 0;
};

/// The bytes that loops of one number push, with those of loops in them that
/// have no number.
class Pushed {
public:
  explicit Pushed(ir::KernelOp gradient) {
    gradient.walk([&](tape::PushOp push) { add(push); });
    for (auto [loop, bytes] : byLoop) {
      int64_t number = *numberOf(loop, loopAttr);
      auto &most = loop->hasAttr(ir::rerunAttr) ? states : records;
      most[number] = std::max(most[number], bytes);
    }
  }

  int64_t stateOf(int64_t number) const { return states.lookup(number); }
  int64_t recordOf(int64_t number) const { return records.lookup(number); }

private:
  void add(tape::PushOp push) {
    int64_t bytes = sizing::recordBytes(push.getValues());
    Operation *loop = push->getParentOp();
    for (; loop && !isa<ir::KernelOp>(loop) && !loop->hasAttr(loopAttr);
         loop = loop->getParentOp())
      if (auto counted = dyn_cast<scf::ForOp>(loop)) {
        APInt count;
        if (matchPattern(counted.getUpperBound(), m_ConstantInt(&count)))
          bytes *= count.getSExtValue();
      }
    if (loop && loop->hasAttr(loopAttr))
      byLoop[loop] += bytes;
  }

  llvm::MapVector<Operation *, int64_t> byLoop;
  llvm::DenseMap<int64_t, int64_t> states, records;
};

} // namespace

void cutByBudget(ir::KernelOp kernel, TripCounts &tripCounts,
                 function_ref<bool(Operation *)> canRunAgain) {
  SmallVector<Block *> blocks{kernel.getBody()};
  kernel.walk([&](ir::RangeOp range) { blocks.push_back(range.getBody()); });
  Planner planner(tripCounts, canRunAgain);
  for (Block *block : blocks)
    planner.run(*block, block->getParentOp()->getLoc());
}

void resolveSizes(ir::KernelOp gradient) {
  Pushed pushed(gradient);
  gradient.walk([&](UnrealizedConversionCastOp size) {
    std::optional<int64_t> state = numberOf(size, stateAttr);
    std::optional<int64_t> record = numberOf(size, recordAttr);
    if (!state && !record)
      return;
    Builder b(size.getLoc(), size);
    int64_t bytes = state ? pushed.stateOf(*state) : pushed.recordOf(*record);
    size.getResult(0).replaceAllUsesWith(indexConstant(b, bytes));
    size.erase();
  });
  gradient.walk([](Operation *op) { op->removeAttr(loopAttr); });
}

} // namespace costate::autodiff
