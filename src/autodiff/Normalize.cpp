#include "autodiff/Normalize.h"

#include "autodiff/rules/Rules.h"
#include "ir/Functions.h"
#include "ir/Operations.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace costate::autodiff {

static Value asI64(Builder &b, Value value, bool isUnsigned) {
  Type i64 = b.getI64Type();
  if (value.getType().isIndex())
    return arith::IndexCastOp::create(b, i64, value);
  if (value.getType() == i64)
    return value;
  if (isUnsigned)
    return arith::ExtUIOp::create(b, i64, value);
  return arith::ExtSIOp::create(b, i64, value);
}

static Value fromI64(Builder &b, Value value, Type type) {
  if (type.isIndex())
    return arith::IndexCastOp::create(b, type, value);
  if (type.isInteger(64))
    return value;
  return arith::TruncIOp::create(b, type, value);
}

static bool isNormal(scf::ForOp loop) {
  return matchPattern(loop.getLowerBound(), m_Zero()) &&
         matchPattern(loop.getStep(), m_One()) &&
         loop.getUpperBound().getType().isInteger(64);
}

/// The index of iteration `counter` takes the place of the old induction
/// variable.
static void reindex(Builder &b, scf::ForOp loop, Value lo, Value step,
                    Type type) {
  Value counter = loop.getInductionVar();
  b.setInsertionPointToStart(loop.getBody());
  auto offset = arith::MulIOp::create(b, counter, step);
  Value index = arith::AddIOp::create(b, lo, offset);
  Value cast = fromI64(b, index, type);
  counter.replaceUsesWithIf(
      cast, [&](OpOperand &use) { return use.getOwner() != offset; });
}

/// A trip count compares with sign. Where that differs from an unsigned
/// comparison, a loop that runs at all would not end.
static Value noneUnlessBelow(Builder &b, Value count, Value lo, Value hi) {
  Value some = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, lo, hi);
  Value zero = indexConstant(b, 0);
  return arith::SelectOp::create(b, some, count, zero);
}

static void normalize(scf::ForOp loop) {
  Builder b(loop.getLoc(), loop);
  Type type = loop.getInductionVar().getType();
  bool isUnsigned = loop.getUnsignedCmp();
  Value lo = asI64(b, loop.getLowerBound(), isUnsigned);
  Value hi = asI64(b, loop.getUpperBound(), isUnsigned);
  Value step = asI64(b, loop.getStep(), isUnsigned);
  Value count = ir::TripCountOp::create(b, lo, hi, step);
  if (isUnsigned)
    count = noneUnlessBelow(b, count, lo, hi);
  loop.setUnsignedCmp(false);
  loop.setLowerBound(indexConstant(b, 0));
  loop.setStep(indexConstant(b, 1));
  loop.setUpperBound(count);
  loop.getInductionVar().setType(b.getI64Type());
  reindex(b, loop, lo, step, type);
}

void normalizeLoops(Operation *root) {
  root->walk([](scf::ForOp loop) {
    if (!isNormal(loop))
      normalize(loop);
  });
}

//===-- Loops that run once -----------------------------------------------===//

namespace {

/// What values are, as far as they follow from constants.
class Known {
public:
  void set(Value value, Attribute number) { numbers[value] = number; }

  Attribute of(Value value) const {
    Attribute number = numbers.lookup(value);
    if (!number)
      matchPattern(value, m_Constant(&number));
    return number;
  }

  void evaluate(Block &block) {
    for (Operation &op : block.without_terminator())
      if (op.getNumResults() == 1 && op.getNumRegions() == 0)
        evaluate(&op);
  }

private:
  void evaluate(Operation *op) {
    auto isFalse = [](Attribute number) {
      auto truth = dyn_cast_or_null<IntegerAttr>(number);
      return truth && truth.getValue().isZero();
    };
    SmallVector<Attribute> operands;
    for (Value operand : op->getOperands())
      operands.push_back(of(operand));
    if (isa<arith::AndIOp>(op) && llvm::any_of(operands, isFalse))
      return set(op->getResult(0), *llvm::find_if(operands, isFalse));
    SmallVector<OpFoldResult> found;
    Operation *copy = op->clone(); // which folding may change
    bool isFolded = succeeded(copy->fold(operands, found));
    copy->destroy();
    if (isFolded && found.size() == 1)
      set(op->getResult(0), isa<Attribute>(found[0])
                                ? cast<Attribute>(found[0])
                                : of(cast<Value>(found[0])));
  }

  llvm::DenseMap<Value, Attribute> numbers;
};

} // namespace

/// Whether the condition holds for these values of what the loop carries, if
/// that is known.
static std::optional<bool> goesOn(scf::WhileOp loop,
                                  ArrayRef<Attribute> carried, Known &known) {
  for (auto [argument, number] : llvm::zip(loop.getBeforeArguments(), carried))
    known.set(argument, number);
  known.evaluate(*loop.getBeforeBody());
  auto truth = dyn_cast_or_null<BoolAttr>(
      known.of(loop.getConditionOp().getCondition()));
  return truth ? std::optional(truth.getValue()) : std::nullopt;
}

static bool runsOnce(scf::WhileOp loop) {
  auto numbersOf = [](ValueRange values, const Known &known) {
    return llvm::map_to_vector(values,
                               [&](Value value) { return known.of(value); });
  };
  Known first, second;
  if (goesOn(loop, numbersOf(loop.getInits(), first), first) != true)
    return false;
  for (auto [argument, value] :
       llvm::zip(loop.getAfterArguments(), loop.getConditionOp().getArgs()))
    first.set(argument, first.of(value));
  first.evaluate(*loop.getAfterBody());
  return goesOn(loop, numbersOf(loop.getYieldOp().getOperands(), first),
                second) == false;
}

/// A copy of a block's operations in front of `loop`.
static IRMapping copied(Builder &b, Block &block, ValueRange arguments) {
  IRMapping values;
  values.map(block.getArguments(), arguments);
  for (Operation &op : block.without_terminator())
    b.clone(op, values);
  return values;
}

static SmallVector<Value> mapped(const IRMapping &values, ValueRange of) {
  return llvm::map_to_vector(
      of, [&](Value value) { return values.lookupOrDefault(value); });
}

/// As a function with early returns is, or a block that `break` leaves.
static void inlineBody(scf::WhileOp loop) {
  Builder b(loop.getLoc(), loop);
  scf::ConditionOp condition = loop.getConditionOp();
  IRMapping before = copied(b, *loop.getBeforeBody(), loop.getInits());
  IRMapping body =
      copied(b, *loop.getAfterBody(), mapped(before, condition.getArgs()));
  IRMapping last = copied(b, *loop.getBeforeBody(),
                          mapped(body, loop.getYieldOp().getOperands()));
  loop.replaceAllUsesWith(mapped(last, condition.getArgs()));
  loop.erase();
}

bool inlineLoopsThatRunOnce(Operation *root) {
  bool changed = false;
  root->walk([&](scf::WhileOp loop) {
    bool isPlain = loop->getDiscardableAttrs().empty() &&
                   llvm::all_of(loop.getBeforeBody()->without_terminator(),
                                [](Operation &op) { return isPure(&op); });
    if (!isPlain || !runsOnce(loop))
      return;
    inlineBody(loop);
    changed = true;
  });
  return changed;
}

static scf::WhileOp withCounter(scf::WhileOp loop) {
  Builder b(loop.getLoc(), loop);
  Type i64 = b.getI64Type();
  SmallVector<Value> inits(loop.getInits());
  inits.push_back(indexConstant(b, 0));
  SmallVector<Type> types(loop.getResultTypes());
  types.push_back(i64);
  auto counted = cast<scf::WhileOp>(ir::remade(loop, inits, types));
  Value before = counted.getBeforeBody()->addArgument(i64, loop.getLoc());
  counted.getConditionOp().getArgsMutable().append(before);
  Value after = counted.getAfterBody()->addArgument(i64, loop.getLoc());
  scf::YieldOp yield = counted.getYieldOp();
  b.setInsertionPoint(yield);
  Value one = indexConstant(b, 1);
  Value next = arith::AddIOp::create(b, after, one);
  yield.getResultsMutable().append(next);
  loop.replaceAllUsesWith(counted.getResults().drop_back());
  loop.erase();
  return counted;
}

static bool prints(Operation *root) {
  return ir::contains(root, [](Operation *op) {
    auto call = dyn_cast<func::CallOp>(op);
    func::FuncOp callee = call ? ir::calleeOf(call) : nullptr;
    return isa<ir::PrintOp>(op) || (callee && prints(callee));
  });
}

bool dropUnitDimensions(Operation *root) {
  bool isAny = false;
  root->walk([&](ir::RangeOp range) {
    if (prints(range))
      return;
    Builder b(range.getLoc(), range.getBody(), range.getBody()->begin());
    for (unsigned dim = range.getExtents().size(); dim-- > 0;) {
      if (range.getExtents().size() == 1 ||
          !matchPattern(range.getExtents()[dim], m_One()))
        continue;
      range.getIndices()[dim].replaceAllUsesWith(
          arith::ConstantOp::create(b, b.getI64IntegerAttr(0)));
      range.getBody()->eraseArgument(dim);
      range->eraseOperand(dim);
      isAny = true;
    }
  });
  return isAny;
}

llvm::DenseMap<Operation *, Value> countIterations(ir::KernelOp kernel) {
  llvm::DenseMap<Operation *, Value> tripCounts;
  for (auto loop : ir::all<scf::WhileOp>(kernel)) {
    scf::WhileOp counted = withCounter(loop);
    tripCounts[counted] = counted.getResults().back();
  }
  return tripCounts;
}

//===-- Inductions --------------------------------------------------------===//

/// A value that is `init` in iteration 0 and grows by `step` from one iteration
/// to the next.
struct Induction {
  Value init, step;
  bool wraps = true; ///< perhaps

  Value at(Builder &b, Value iteration) const {
    Type type = init.getType();
    if (!wraps && !type.isInteger(64))
      return exactAt(b, iteration, type);
    Value count = fromI64(b, iteration, type);
    Value change = arith::MulIOp::create(b, count, step);
    return arith::AddIOp::create(b, init, change);
  }

  Value exactAt(Builder &b, Value iteration, Type type) const {
    Value wideStep = asI64(b, step, false), wideInit = asI64(b, init, false);
    Value change = arith::MulIOp::create(b, iteration, wideStep);
    Value sum = arith::AddIOp::create(b, wideInit, change);
    return arith::TruncIOp::create(b, type, sum,
                                   arith::IntegerOverflowFlags::nsw);
  }
};

/// Whether `condition` holds only where `value` is below something.
static bool impliesBelow(Value condition, Value value) {
  Operation *op = condition.getDefiningOp();
  if (matchPattern(condition, m_Zero()))
    return true;
  if (isa_and_nonnull<arith::AndIOp>(op))
    return impliesBelow(op->getOperand(0), value) ||
           impliesBelow(op->getOperand(1), value);
  if (auto branch = dyn_cast_or_null<scf::IfOp>(op)) {
    unsigned index = cast<OpResult>(condition).getResultNumber();
    return impliesBelow(branch.thenYield().getOperand(index), value) &&
           impliesBelow(branch.elseYield().getOperand(index), value);
  }
  auto compare = dyn_cast_or_null<arith::CmpIOp>(op);
  if (!compare)
    return false;
  bool less = compare.getPredicate() == arith::CmpIPredicate::slt;
  bool more = compare.getPredicate() == arith::CmpIPredicate::sgt;
  return (less && compare.getLhs() == value) ||
         (more && compare.getRhs() == value);
}

/// The amount by which `next` exceeds `current`, if `loop` does not change it.
static Value stepOf(Operation *loop, Value current, Value next) {
  auto sum = next.getDefiningOp<arith::AddIOp>();
  if (!sum || !current.getType().isInteger())
    return {};
  Value step = sum.getLhs() == current   ? sum.getRhs()
               : sum.getRhs() == current ? sum.getLhs()
                                         : Value();
  if (!step || loop->isAncestor(step.getParentBlock()->getParentOp()))
    return {};
  return step;
}

/// Puts the formula of `induction` in the place of `value`, an argument of
/// `block`, but for the terminator, so that the carried value becomes dead.
static void expressArgument(Value value, Block &block, Value iteration,
                            const Induction &induction) {
  Builder b(value.getLoc(), &block, block.begin());
  Value formula = induction.at(b, iteration);
  Operation *terminator = block.getTerminator();
  value.replaceUsesWithIf(
      formula, [&](OpOperand &use) { return use.getOwner() != terminator; });
}

static void expressResult(Operation *loop, unsigned index, Value tripCount,
                          const Induction &induction) {
  Builder b(loop->getLoc(), loop->getContext());
  b.setInsertionPointAfter(loop);
  loop->getResult(index).replaceAllUsesWith(induction.at(b, tripCount));
}

/// A loop that runs no iteration at all has a negative bound, perhaps.
static Value tripCountOf(scf::ForOp loop) {
  Builder b(loop.getLoc(), loop);
  Value zero = loop.getLowerBound();
  return arith::MaxSIOp::create(b, loop.getUpperBound(), zero);
}

static void expressInductions(scf::ForOp loop) {
  Operation *yield = loop.getBody()->getTerminator();
  for (auto [i, argument] : llvm::enumerate(loop.getRegionIterArgs())) {
    Value step = stepOf(loop, argument, yield->getOperand(i));
    if (!step)
      continue;
    Induction induction{loop.getInitArgs()[i], step};
    expressArgument(argument, *loop.getBody(), loop.getInductionVar(),
                    induction);
    if (!loop.getResult(i).use_empty())
      expressResult(loop, i, tripCountOf(loop), induction);
  }
}

static void expressInductions(scf::WhileOp loop, Value tripCount) {
  Block &before = *loop.getBeforeBody(), &after = *loop.getAfterBody();
  unsigned counter = loop.getInits().size() - 1;
  for (unsigned j = 0; j + 1 < loop.getNumResults(); ++j) {
    auto source = dyn_cast<BlockArgument>(loop.getConditionOp().getArgs()[j]);
    if (!source || source.getOwner() != &before ||
        source.getArgNumber() == counter)
      continue;
    unsigned i = source.getArgNumber();
    Value argument = after.getArgument(j);
    Value step = stepOf(loop, argument, loop.getYieldOp().getOperand(i));
    if (!step)
      continue;
    APInt constant;
    bool rises = matchPattern(step, m_ConstantInt(&constant)) &&
                 constant.isOne() &&
                 source.getType().getIntOrFloatBitWidth() > 1;
    Value condition = loop.getConditionOp().getCondition();
    Induction induction{loop.getInits()[i], step,
                        !rises || !impliesBelow(condition, source)};
    expressArgument(source, before, before.getArguments().back(), induction);
    expressArgument(argument, after, after.getArguments().back(), induction);
    expressResult(loop, j, tripCount, induction);
  }
}

void expressInductions(ir::KernelOp kernel,
                       const llvm::DenseMap<Operation *, Value> &tripCounts) {
  kernel.walk([&](Operation *op) {
    if (auto loop = dyn_cast<scf::ForOp>(op))
      expressInductions(loop);
    else if (auto loop = dyn_cast<scf::WhileOp>(op))
      expressInductions(loop, tripCounts.lookup(loop));
  });
}

} // namespace costate::autodiff
