/// Branches and loops that some lanes take and others do not.

#include "conversion/KernelToLLVM/Runtime.h"
#include "conversion/Lanes/LaneBody.h"
#include "sizing/Costs.h"

#include "mlir/IR/Matchers.h"

#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;

namespace costate::conversion {

/// So many masks are made of each other. LLVM simplifies each by all before it,
/// which takes minutes in a chain of a thousand branches.
static constexpr unsigned chainedMasks = 8;

/// Loads of neighbours take a mask instead.
bool LaneBody::runsAnyway(Block &block) const {
  size_t count = 0;
  return llvm::all_of(block.without_terminator(), [&](Operation &op) {
    auto load = dyn_cast<ir::LoadOp>(op);
    bool isMasked = load && shapes.areNeighbours(load.getIndices());
    return ++count <= sizing::laneCosts().side && op.getNumRegions() == 0 &&
           (isMasked || isPure(&op)) &&
           !op.hasTrait<ir::OpTrait::IsFunction>() && !isa<arith::RemFOp>(op);
  });
}

Value LaneBody::handOn(Value value, Value like) {
  return isUniform(like) ? scalar(value) : vector(value);
}

Values LaneBody::handOn(ValueRange values, ValueRange like) {
  Values here;
  for (auto [value, form] : llvm::zip_equal(values, like))
    here.push_back(handOn(value, form));
  return here;
}

void LaneBody::take(ValueRange values, ValueRange here) {
  for (auto [value, mapped] : llvm::zip_equal(values, here))
    (isUniform(value) ? scalars : vectors)[value] = mapped;
}

SmallVector<Type> LaneBody::formsOf(ValueRange values) const {
  return llvm::map_to_vector(values, [&](Value value) -> Type {
    return isUniform(value) ? value.getType() : b.vectorOf(value.getType());
  });
}

/// Whether the lanes that a branch leaves out would only add 0, in no more
/// iterations: without masks, a store is forwarded to the load after it.
bool LaneBody::runsForAll(scf::IfOp op) const {
  return op->hasAttr(skipsZerosAttr) &&
         !op.getThenRegion()
              .walk([&](scf::ForOp loop) {
                return shapes.parts(loop) ? WalkResult::interrupt()
                                          : WalkResult::advance();
              })
              .wasInterrupted();
}

void LaneBody::emitIf(scf::IfOp op) {
  if (isUniform(op.getCondition()))
    return emitUniformIf(op);
  Value condition = vector(op.getCondition());
  Values then, other;
  auto emitThen = [&] {
    Value taking = b.both(active, condition);
    llvm::SaveAndRestore<Value> saved(adding);
    bool all = runsForAll(op);
    if (all)
      adding = b.both(adding, condition);
    then = emitSide(op.getThenRegion(), taking, all ? active : taking);
  };
  bool isSwapped = order.startsWithElse(op);
  if (!isSwapped)
    emitThen();
  Value leaving = b.butNot(active, condition);
  other = emitSide(op.getElseRegion(), leaving, leaving);
  if (isSwapped)
    emitThen();
  for (auto [k, result] : llvm::enumerate(op.getResults()))
    vectors[result] = arith::SelectOp::create(b, condition, then[k], other[k]);
}

/// One side of a branch, if any lane of `taking` is there, for those of `mask`.
Values LaneBody::emitSide(Region &region, Value taking, Value mask) {
  if (region.empty())
    return {};
  Block &block = region.front();
  ValueRange yielded = block.getTerminator()->getOperands();
  Values values;
  if (runsAnyway(block)) {
    emit(block, mask);
    for (Value value : yielded)
      values.push_back(vector(value));
    return values;
  }
  SmallVector<Type> types;
  for (Value value : yielded)
    types.push_back(b.vectorOf(value.getType()));
  auto branch = scf::IfOp::create(b, types, b.any(taking), !types.empty());
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  llvm::SaveAndRestore<unsigned> nested(nestedSides, nestedSides + 1);
  emit(block, mask && nestedSides % chainedMasks == 0 ? b.opaque(mask) : mask);
  if (types.empty())
    return {};
  for (Value value : yielded)
    values.push_back(vector(value));
  scf::YieldOp::create(b, values);
  b.setInsertionPointToStart(branch.elseBlock());
  values.clear();
  for (Type type : types)
    values.push_back(b.zero(type));
  scf::YieldOp::create(b, values);
  return Values(branch.getResults());
}

void LaneBody::emitUniformIf(scf::IfOp op) {
  SmallVector<Type> types = formsOf(op.getResults());
  bool hasElse = op.elseBlock() != nullptr;
  auto branch = scf::IfOp::create(b, types, scalar(op.getCondition()), hasElse);
  for (auto [from, to] : {std::pair(op.thenBlock(), branch.thenBlock()),
                          std::pair(op.elseBlock(), branch.elseBlock())}) {
    if (!from)
      continue;
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(to);
    emit(*from, active);
    if (!types.empty())
      scf::YieldOp::create(
          b, handOn(from->getTerminator()->getOperands(), op.getResults()));
  }
  take(op.getResults(), branch.getResults());
}

void LaneBody::emitFor(scf::ForOp op) {
  shapes.parts(op) ? emitPartingFor(op) : emitUniformFor(op);
}

void LaneBody::emitUniformFor(scf::ForOp op) {
  Values inits = handOn(op.getInitArgs(), op.getRegionIterArgs());
  take(op.getResults(), emitTogether(op, scalar(op.getUpperBound()), inits));
}

/// The iterations before `end`, in which all active lanes are.
Values LaneBody::emitTogether(scf::ForOp op, Value end, ValueRange inits) {
  auto loop = scf::ForOp::create(b, scalar(op.getLowerBound()), end,
                                 scalar(op.getStep()), inits);
  loop->setAttrs(op->getAttrs());
  take(op.getInductionVar(), loop.getInductionVar());
  take(op.getRegionIterArgs(), loop.getRegionIterArgs());
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  emit(*op.getBody(), active);
  if (!inits.empty())
    scf::YieldOp::create(b,
                         handOn(op.getYieldedValues(), op.getRegionIterArgs()));
  return Values(loop.getResults());
}

namespace {
/// How many bits the numbers of iterations, and the masks made of them, have.
struct Widths {
  bool narrowNumbers; ///< 32, without a sign
  bool narrowMasks;   ///< those of what a loop carries
};

/// The iterations of a loop that lanes leave, or enter, at different times.
class Iterations {
public:
  Value longest; ///< of all lanes, in 64 bits
  Value wait;    ///< iterations that a lane lets pass first; null: none

  Iterations(LaneBuilder &b, Value active, Value bounds, bool late,
             Widths widths)
      : b(b) {
    Value zero = b.zero(bounds.getType());
    counts = b.select(active, arith::MaxSIOp::create(b, bounds, zero), zero);
    if (widths.narrowNumbers)
      counts = cut(counts);
    longestWord = b.largest(counts);
    longest = wide(longestWord);
    if (late)
      wait = arith::SubIOp::create(b, b.splat(longestWord), counts);
    limits = wait ? wait : counts;
    if (widths.narrowNumbers)
      limits = widths.narrowMasks ? ordered(limits) : wide(limits);
  }

  /// With signs: AVX2 takes three instructions where there is none, and LLVM
  /// would see that there need not be one.
  Value lanesIn(Value number) const {
    using P = arith::CmpIPredicate;
    if (isNarrow(limits))
      number = ordered(cut(number));
    Value all = b.splat(b.hidden(number));
    return wait ? arith::CmpIOp::create(b, P::sge, all, limits)
                : arith::CmpIOp::create(b, P::slt, all, limits);
  }
  /// How many all lanes of `active` have.
  Value shortest(Value active) const {
    Value fewer = arith::SubIOp::create(b, b.splat(longestWord), counts);
    fewer = b.select(active, fewer, b.zero(fewer.getType()));
    return wide(arith::SubIOp::create(b, longestWord, b.largest(fewer)));
  }
  /// The number of the iteration as a lane counts.
  Value numberIn(Value number) const {
    return wait ? arith::SubIOp::create(b, b.splat(number), wide(wait))
                      .getResult()
                : number;
  }

private:
  static bool isNarrow(Value numbers) {
    return getElementTypeOrSelf(numbers.getType()).isInteger(32);
  }
  Type like(Value numbers, Type type) const {
    return isa<VectorType>(numbers.getType()) ? b.vectorOf(type) : type;
  }
  Value cut(Value numbers) const {
    return arith::TruncIOp::create(b, like(numbers, b.getI32Type()), numbers);
  }
  Value wide(Value numbers) const {
    return isNarrow(numbers) ? arith::ExtUIOp::create(
                                   b, like(numbers, b.getI64Type()), numbers)
                                   .getResult()
                             : numbers;
  }
  /// Numbers of 32 bits without a sign, such that their order has one.
  Value ordered(Value numbers) const {
    Value sign = b.number(b.getI32Type(), std::numeric_limits<int32_t>::min());
    return arith::XOrIOp::create(
        b, numbers, isa<VectorType>(numbers.getType()) ? b.splat(sign) : sign);
  }

  LaneBuilder &b;
  Value longestWord;
  Value counts; ///< of each lane; 0 of those that are not active
  Value limits; ///< those, or what lanes wait for
};
} // namespace

/// Whether `value`, of 64 bits, is one of 32 bits with a sign.
static bool hasFewBits(Value value) {
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return constant.isSignedIntN(32);
  Operation *op = value.getDefiningOp();
  return isa_and_nonnull<arith::ExtSIOp>(op) &&
         op->getOperand(0).getType().getIntOrFloatBitWidth() <= 32;
}

/// Whether `bound` is less than 2^32.
static bool isNarrow(Value bound) {
  // What is composed of iterations.
  if (auto part = bound.getDefiningOp<arith::ShRUIOp>())
    if (auto atLeast = part.getLhs().getDefiningOp<arith::MaxSIOp>())
      if (matchPattern(atLeast.getRhs(), m_Zero()))
        return isNarrow(atLeast.getLhs());
  auto count = bound.getDefiningOp<ir::TripCountOp>();
  return count ? hasFewBits(count.getLo()) && hasFewBits(count.getHi())
               : hasFewBits(bound);
}

static Widths widthsOf(scf::ForOp loop, const Shapes &shapes) {
  bool hasWide = llvm::any_of(loop.getRegionIterArgs(), [&](Value carried) {
    Type type = carried.getType();
    return !shapes.isUniform(carried) && type.isIntOrFloat() &&
           type.getIntOrFloatBitWidth() == 64;
  });
  return {.narrowNumbers = isNarrow(loop.getUpperBound()),
          .narrowMasks = !hasWide};
}

/// Whether an iteration takes longer for some numbers, such as those below the
/// normal ones: lanes that have left should not go on with theirs.
static bool hasSlowNumbers(Region &region) {
  return ir::contains(region, [](Operation *op) {
    return op->hasTrait<ir::OpTrait::IsFunction>() || isa<arith::DivFOp>(op);
  });
}

/// `value`, and 0 in lanes that are not `here`.
Value LaneBody::orZero(Value here, Value value) {
  return isa<FloatType>(getElementTypeOrSelf(value.getType()))
             ? b.select(here, value, b.zero(value.getType()))
             : value;
}

/// Whether a mask takes a good part of an iteration.
static bool isShort(Block &block) {
  size_t count = 0;
  return llvm::all_of(block.without_terminator(), [&](Operation &op) {
    return ++count <= sizing::laneCosts().side && op.getNumRegions() == 0 &&
           (isPure(&op) || isa<ir::LoadOp>(op));
  });
}

/// Runs as often as the lane with most iterations, and short iterations without
/// a mask as long as no lane has left. Each lane keeps the results
/// of its own last iteration: what all lanes share is carried as a scalar, and
/// as a vector of such results, and so are numbers with which lanes that have
/// left could be slow.
void LaneBody::emitPartingFor(scf::ForOp op) {
  Iterations iterations(b, active, vector(op.getUpperBound()),
                        shapes.startsLate(op), widthsOf(op, shapes));
  Values inits = handOn(op.getInitArgs(), op.getRegionIterArgs());
  Value start = scalar(op.getLowerBound());
  bool isSlow = !iterations.wait && hasSlowNumbers(op.getRegion());
  if (!iterations.wait && !isSlow && isShort(*op.getBody())) {
    start = iterations.shortest(active);
    inits = emitTogether(op, start, inits);
  }
  llvm::DenseMap<unsigned, unsigned> results; // of what is carried twice
  for (auto [k, argument] : llvm::enumerate(op.getRegionIterArgs()))
    if (isUniform(argument) || (isSlow && isa<FloatType>(argument.getType()))) {
      results[k] = inits.size();
      Value value = inits[k];
      inits.push_back(isUniform(argument) ? b.splat(value) : value);
    }
  auto loop = scf::ForOp::create(b, start, iterations.longest,
                                 scalar(op.getStep()), inits);
  auto arguments = loop.getRegionIterArgs();
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    take(op.getRegionIterArgs(),
         arguments.take_front(op.getNumRegionIterArgs()));
    Value number = loop.getInductionVar();
    Value here = iterations.lanesIn(number);
    take(op.getInductionVar(), iterations.numberIn(number));
    emit(*op.getBody(), here);
    Values next(inits.size());
    for (auto [k, value] : llvm::enumerate(op.getYieldedValues())) {
      bool isTwice = results.contains(k);
      if (isTwice)
        next[k] = isUniform(op.getRegionIterArgs()[k])
                      ? scalar(value)
                      : orZero(here, vector(value));
      unsigned place = isTwice ? results[k] : k;
      next[place] =
          arith::SelectOp::create(b, here, vector(value), arguments[place]);
    }
    if (!next.empty())
      scf::YieldOp::create(b, next);
  }
  for (auto [k, result] : llvm::enumerate(op.getResults()))
    vectors[result] = loop.getResult(results.contains(k) ? results[k] : k);
}

void LaneBody::emitWhile(scf::WhileOp op) {
  shapes.parts(op) ? emitPartingWhile(op) : emitUniformWhile(op);
}

void LaneBody::emitUniformWhile(scf::WhileOp op) {
  Values inits = handOn(op.getInits(), op.getBeforeArguments());
  SmallVector<Type> types = formsOf(op.getAfterArguments());
  Value outer = active;
  auto loop = scf::WhileOp::create(
      b, types, inits,
      [&](OpBuilder &inner, Location, ValueRange arguments) {
        OpBuilder::InsertionGuard guard(b);
        b.restoreInsertionPoint(inner.saveInsertionPoint());
        take(op.getBeforeArguments(), arguments);
        emit(*op.getBeforeBody(), outer);
        scf::ConditionOp end = op.getConditionOp();
        scf::ConditionOp::create(b, scalar(end.getCondition()),
                                 handOn(end.getArgs(), op.getAfterArguments()));
      },
      [&](OpBuilder &inner, Location, ValueRange arguments) {
        OpBuilder::InsertionGuard guard(b);
        b.restoreInsertionPoint(inner.saveInsertionPoint());
        take(op.getAfterArguments(), arguments);
        emit(*op.getAfterBody(), outer);
        scf::YieldOp::create(
            b, handOn(op.getYieldOp().getResults(), op.getBeforeArguments()));
      });
  for (auto [result, argument, value] : llvm::zip_equal(
           op.getResults(), op.getAfterArguments(), loop.getResults()))
    (isUniform(argument) ? scalars : vectors)[result] = value;
}

/// Carries the mask of the lanes that are still there, and what those that are
/// not have left with.
void LaneBody::emitPartingWhile(scf::WhileOp op) {
  Values inits = {b.orAll(active)};
  llvm::append_range(inits, handOn(op.getInits(), op.getBeforeArguments()));
  size_t carried = inits.size();
  for (Type type : op.getResultTypes())
    inits.push_back(b.zero(b.vectorOf(type)));
  size_t count = op.getNumResults();
  bool isSlow = hasSlowNumbers(op.getBefore()) || hasSlowNumbers(op.getAfter());
  // To the second region: the mask, its arguments, the results.
  SmallVector<Type> types = {inits.front().getType()};
  llvm::append_range(types, formsOf(op.getAfterArguments()));
  for (Type type : op.getResultTypes())
    types.push_back(b.vectorOf(type));
  auto loop = scf::WhileOp::create(
      b, types, inits,
      [&](OpBuilder &inner, Location, ValueRange arguments) {
        OpBuilder::InsertionGuard guard(b);
        b.restoreInsertionPoint(inner.saveInsertionPoint());
        take(op.getBeforeArguments(),
             arguments.slice(1, op.getBeforeArguments().size()));
        Value here = arguments[0];
        emit(*op.getBeforeBody(), here);
        scf::ConditionOp end = op.getConditionOp();
        Value stay = b.both(here, vector(end.getCondition()));
        Values passed = {stay};
        llvm::append_range(passed,
                           handOn(end.getArgs(), op.getAfterArguments()));
        for (auto [k, value] : llvm::enumerate(end.getArgs()))
          passed.push_back(arith::SelectOp::create(b, here, vector(value),
                                                   arguments[carried + k]));
        scf::ConditionOp::create(b, b.any(stay), passed);
      },
      [&](OpBuilder &inner, Location, ValueRange arguments) {
        OpBuilder::InsertionGuard guard(b);
        b.restoreInsertionPoint(inner.saveInsertionPoint());
        take(op.getAfterArguments(), arguments.slice(1, count));
        emit(*op.getAfterBody(), arguments[0]);
        Values next = {arguments[0]};
        for (Value value :
             handOn(op.getYieldOp().getResults(), op.getBeforeArguments()))
          next.push_back(isSlow && isa<VectorType>(value.getType())
                             ? orZero(arguments[0], value)
                             : value);
        llvm::append_range(next, arguments.drop_front(1 + count));
        scf::YieldOp::create(b, next);
      });
  for (auto [k, result] : llvm::enumerate(op.getResults()))
    vectors[result] = loop.getResult(1 + count + k);
}

} // namespace costate::conversion
