/// The reverse of branches, loops and ranges.

#include "autodiff/replay/Accesses.h"
#include "autodiff/reverse/Reverser.h"
#include "autodiff/rules/Rules.h"
#include "ir/Tape.h"

using namespace mlir;

namespace costate::autodiff {
namespace {

using Builder = ImplicitLocOpBuilder;

/// A loop `for j = 0 to count` under construction, that carries adjoints. Its
/// block exists first; what it carries becomes known as it is filled.
class ReverseLoop {
public:
  ReverseLoop(Location loc, Type counter)
      : block(new Block), counter(block->addArgument(counter, loc)),
        b(loc, loc.getContext()) {
    b.setInsertionPointToEnd(block);
  }

  /// Adds a carried adjoint; the value at the start of a turn.
  Value carry(Type type) { return block->addArgument(type, b.getLoc()); }

  /// Ends the block and builds the loop; `next` and `inits` are in the order of
  /// `carry`.
  scf::ForOp close(Builder &outer, Value count, ArrayRef<Value> inits,
                   ArrayRef<Value> next) {
    scf::YieldOp::create(b, next);
    Value zero = constant(outer, 0), one = constant(outer, 1);
    SmallVector<Value> operands{zero, count, one};
    llvm::append_range(operands, inits);
    OperationState state(outer.getLoc(), scf::ForOp::getOperationName());
    state.addOperands(operands);
    for (Value init : inits)
      state.addTypes(init.getType());
    state.addRegion()->push_back(block);
    return cast<scf::ForOp>(outer.create(state));
  }

  /// The number of the turn that is being reversed, of `count`: counters run
  /// down, they are inverted and not saved.
  Value turn(Builder &at, Value count) {
    Value one = constant(at, 1);
    Value last = arith::SubIOp::create(at, count, one);
    return arith::SubIOp::create(at, last, counter);
  }

  Value constant(Builder &at, int64_t value) {
    return arith::ConstantOp::create(
        at, at.getIntegerAttr(counter.getType(), value));
  }

  Block *block;
  Value counter;
  Builder b;
};

/// An `if` of two finished blocks; its results.
SmallVector<Value> createIf(Builder &b, Value condition, TypeRange types,
                            Block *yes, Block *no) {
  OperationState state(b.getLoc(), scf::IfOp::getOperationName());
  state.addOperands(condition);
  state.addTypes(types);
  state.addRegion()->push_back(yes);
  state.addRegion()->push_back(no);
  return SmallVector<Value>(b.create(state)->getResults());
}

} // namespace

//===-- if ----------------------------------------------------------------===//

namespace {

/// One side of a branch and its reverse under construction.
struct Side {
  Side(Block &forward, Scope &parent, Location loc)
      : block(new Block), b(loc, loc.getContext()) {
    b.setInsertionPointToEnd(block);
    scope.emplace(forward, parent, b);
  }

  Block *block;
  Builder b;
  std::optional<Scope> scope;
  Adjoints adjoints;
};

/// Appends `slots` results to `branch`, which its sides yield as `kept`, one
/// list a side; returns the new results.
SmallVector<Value> widen(scf::IfOp branch, ArrayRef<Type> slots,
                         ArrayRef<SmallVector<Value>> kept, Scope &outer) {
  for (unsigned side : {0, 1}) {
    Operation *yield = branch->getRegion(side).front().getTerminator();
    Builder b(branch.getLoc(), yield);
    SmallVector<Value> yielded(yield->getOperands());
    for (auto [slot, value] : llvm::zip(slots, kept[side]))
      yielded.push_back(value ? value
                              : arith::ConstantOp::create(
                                    b, cast<TypedAttr>(b.getZeroAttr(slot))));
    yield->setOperands(yielded);
  }
  SmallVector<Type> types(branch.getResultTypes());
  llvm::append_range(types, slots);
  Block *yes = branch.thenBlock(), *no = branch.elseBlock();
  branch.getThenRegion().getBlocks().remove(yes);
  branch.getElseRegion().getBlocks().remove(no);
  Builder b(branch.getLoc(), branch);
  SmallVector<Value> results =
      createIf(b, branch.getCondition(), types, yes, no);
  unsigned old = branch.getNumResults();
  for (auto [result, wider] : llvm::zip_first(branch.getResults(), results))
    outer.rename(result, wider);
  branch.replaceAllUsesWith(ValueRange(results).take_front(old));
  branch.erase();
  return SmallVector<Value>(llvm::drop_begin(results, old));
}

/// Gives each saved value a slot of its type; sides share slots, since only one
/// of them runs. Returns the slot of each saved value of `side`.
SmallVector<unsigned> assignSlots(ArrayRef<Value> saved,
                                  SmallVectorImpl<Type> &slots,
                                  SmallVectorImpl<Value> &kept) {
  SmallVector<unsigned> places;
  kept.resize(slots.size());
  for (Value value : saved) {
    unsigned place = 0;
    while (place < slots.size() &&
           (slots[place] != value.getType() || kept[place]))
      ++place;
    if (place == slots.size()) {
      slots.push_back(value.getType());
      kept.emplace_back();
    }
    kept[place] = value;
    places.push_back(place);
  }
  return places;
}

/// Makes what the reverses of both sides need results of the forward branch.
void keepAsResults(scf::IfOp branch, ArrayRef<Side *> sides, Scope &outer) {
  SmallVector<Type> slots;
  SmallVector<Value> kept[2];
  SmallVector<unsigned> places[2];
  for (unsigned side : {0, 1})
    places[side] = assignSlots(sides[side]->scope->plan(), slots, kept[side]);
  kept[0].resize(slots.size());
  SmallVector<Value> results;
  if (!slots.empty())
    results = widen(branch, slots, kept, outer);
  for (unsigned side : {0, 1}) {
    SmallVector<Value> known;
    for (unsigned place : places[side])
      known.push_back(outer.use(results[place]));
    sides[side]->scope->finishWith(known);
  }
}

/// An else region where there is none.
void completeBranch(scf::IfOp branch) {
  if (!branch.getElseRegion().empty())
    return;
  OpBuilder b(branch.getContext());
  b.createBlock(&branch.getElseRegion());
  scf::YieldOp::create(b, branch.getLoc());
}

} // namespace

LogicalResult Reverser::reverseIf(scf::IfOp branch, Results g, Sweep &sweep) {
  completeBranch(branch);
  Location loc = branch.getLoc();
  Value condition = sweep.scope.use(branch.getCondition());
  Side yes(*branch.thenBlock(), sweep.scope, loc);
  Side no(*branch.elseBlock(), sweep.scope, loc);
  Side *sides[] = {&yes, &no};
  SmallVector<Value> names;
  for (Side *side : sides) {
    Block &forward = side == &yes ? *branch.thenBlock() : *branch.elseBlock();
    Sweep inner{side->b, *side->scope, side->adjoints};
    for (auto [value, adjoint] :
         llvm::zip(forward.getTerminator()->getOperands(), g))
      add(inner, value, adjoint);
    if (failed(reverseOps(operationsOf(forward), inner)))
      return failure();
    for (Value value : side->adjoints.remaining())
      if (!llvm::is_contained(names, value))
        names.push_back(value);
  }
  if (sweep.scope.isDirect()) {
    keepAsResults(branch, sides, sweep.scope);
  } else {
    yes.scope->finishWithRecord();
    no.scope->finishWithRecord();
  }
  for (Side *side : sides) {
    SmallVector<Value> yielded;
    for (Value name : names)
      yielded.push_back(
          zeroIfNull(side->b, side->adjoints.take(name), name.getType()));
    scf::YieldOp::create(side->b, yielded);
  }
  SmallVector<Value> reversed = createIf(
      sweep.b, condition, TypeRange(ValueRange(names)), yes.block, no.block);
  for (auto [name, adjoint] : llvm::zip(names, reversed))
    add(sweep, name, adjoint);
  return success();
}

//===-- for ---------------------------------------------------------------===//

LogicalResult Reverser::reverseFor(scf::ForOp loop, Results g, Sweep &sweep) {
  Value count = sweep.scope.use(loop.getUpperBound());
  ReverseLoop reversed(loop.getLoc(), count.getType());
  Builder &b = reversed.b;
  SmallVector<unsigned> carried = variedAmong(loop.getRegionIterArgs());
  SmallVector<Value> inits, next;
  Value turn = reversed.turn(b, count);
  Scope scope(*loop.getBody(), sweep.scope, b);
  scope.provide(loop.getInductionVar(), turn);
  Adjoints adjoints;
  Sweep inner{b, scope, adjoints};
  for (unsigned i : carried) {
    Type type = loop.getRegionIterArg(i).getType();
    inits.push_back(zeroIfNull(sweep.b, g[i], type));
    add(inner, loop.getBody()->getTerminator()->getOperand(i),
        reversed.carry(type));
  }
  if (failed(reverseOps(operationsOf(*loop.getBody()), inner)))
    return failure();
  SmallVector<Value> receivers;
  for (unsigned i : carried) {
    Value argument = loop.getRegionIterArg(i);
    next.push_back(zeroIfNull(b, adjoints.take(argument), argument.getType()));
    receivers.push_back(loop.getInitArgs()[i]);
  }
  for (Value captured : adjoints.remaining()) {
    Value sum = reversed.carry(captured.getType());
    next.push_back(arith::AddFOp::create(b, sum, adjoints.take(captured)));
    inits.push_back(floatConstant(sweep.b, captured.getType(), 0));
    receivers.push_back(captured);
  }
  scope.finishWithRecord();
  scf::ForOp result = reversed.close(sweep.b, count, inits, next);
  for (auto [value, adjoint] : llvm::zip(receivers, result.getResults()))
    add(sweep, value, adjoint);
  return success();
}

//===-- while -------------------------------------------------------------===//

/// Reverses the before-region: `forwarded` holds the adjoints of what it passes
/// on (varied results only), and comes back as those of its own arguments.
LogicalResult Reverser::reverseBefore(scf::WhileOp loop, Value turn,
                                      SmallVectorImpl<Value> &forwarded,
                                      Sweep &sweep) {
  Block &before = *loop.getBeforeBody();
  auto condition = cast<scf::ConditionOp>(before.getTerminator());
  Scope scope(before, sweep.scope, sweep.b);
  scope.provide(before.getArguments().back(), turn);
  Sweep inner{sweep.b, scope, sweep.adjoints};
  for (auto [at, i] : llvm::enumerate(variedAmong(loop.getResults())))
    add(inner, condition.getArgs()[i], forwarded[at]);
  if (failed(reverseOps(operationsOf(before), inner)))
    return failure();
  forwarded.clear();
  for (unsigned i : variedAmong(loop.getBeforeArguments())) {
    Value argument = loop.getBeforeArguments()[i];
    forwarded.push_back(
        zeroIfNull(sweep.b, sweep.adjoints.take(argument), argument.getType()));
  }
  scope.finishWithRecord();
  return success();
}

/// Reverses the body in turn `turn`: `carried` holds the adjoints of the varied
/// before-arguments of the next turn, and comes back as those of the varied
/// after-arguments.
LogicalResult Reverser::reverseBody(scf::WhileOp loop, Value turn,
                                    SmallVectorImpl<Value> &carried,
                                    Sweep &sweep) {
  Block &body = *loop.getAfterBody();
  Scope scope(body, sweep.scope, sweep.b);
  scope.provide(body.getArguments().back(), turn);
  Sweep inner{sweep.b, scope, sweep.adjoints};
  for (auto [at, i] : llvm::enumerate(variedAmong(loop.getBeforeArguments())))
    add(inner, body.getTerminator()->getOperand(i), carried[at]);
  if (failed(reverseOps(operationsOf(body), inner)))
    return failure();
  carried.clear();
  for (unsigned i : variedAmong(loop.getAfterArguments())) {
    Value argument = loop.getAfterArguments()[i];
    carried.push_back(
        zeroIfNull(sweep.b, sweep.adjoints.take(argument), argument.getType()));
  }
  scope.finishWithRecord();
  return success();
}

/// The body, in every turn but the first; in the first turn, `results` take the
/// place of what it would compute.
LogicalResult Reverser::reverseLaterBody(scf::WhileOp loop, Value turn,
                                         Value isLater,
                                         SmallVectorImpl<Value> &carried,
                                         ValueRange results, Sweep &sweep) {
  Block *some = new Block, *none = new Block;
  Builder inSome(loop.getLoc(), loop.getContext());
  inSome.setInsertionPointToEnd(some);
  Builder inNone(loop.getLoc(), loop.getContext());
  inNone.setInsertionPointToEnd(none);
  Adjoints adjoints;
  Sweep inner{inSome, sweep.scope, adjoints};
  if (failed(reverseBody(loop, turn, carried, inner)))
    return failure();
  SmallVector<Value> skipped(results), captured = adjoints.remaining();
  for (Value value : captured) {
    carried.push_back(adjoints.take(value));
    skipped.push_back(floatConstant(inNone, value.getType(), 0));
  }
  scf::YieldOp::create(inSome, carried);
  scf::YieldOp::create(inNone, skipped);
  SmallVector<Value> adjointsOfTurn =
      createIf(sweep.b, isLater, TypeRange(ValueRange(carried)), some, none);
  carried.assign(adjointsOfTurn.begin(),
                 adjointsOfTurn.begin() + results.size());
  for (auto [at, value] : llvm::enumerate(captured))
    add(sweep, value, adjointsOfTurn[results.size() + at]);
  return success();
}

/// Whether the before-region only evaluates the condition, and passes varied
/// arguments on as they are: then it has no reverse.
bool Reverser::passesThrough(scf::WhileOp loop) const {
  scf::ConditionOp condition = loop.getConditionOp();
  for (Operation &op : *loop.getBeforeBody())
    if (effectful.contains(&op))
      return false;
  return llvm::all_of(variedAmong(loop.getResults()), [&](unsigned i) {
    auto argument = dyn_cast<BlockArgument>(condition.getArgs()[i]);
    return argument && argument.getOwner() == loop.getBeforeBody();
  });
}

/// Adjoints of the varied before-arguments, from those of the varied values
/// that a before-region passes through.
SmallVector<Value> Reverser::throughBefore(scf::WhileOp loop, ValueRange g,
                                           Builder &b) {
  Adjoints adjoints;
  for (auto [at, i] : llvm::enumerate(variedAmong(loop.getResults())))
    adjoints.add(b, loop.getConditionOp().getArgs()[i], g[at]);
  SmallVector<Value> carried;
  for (unsigned i : variedAmong(loop.getBeforeArguments())) {
    Value argument = loop.getBeforeArguments()[i];
    carried.push_back(
        zeroIfNull(b, adjoints.take(argument), argument.getType()));
  }
  return carried;
}

/// A while evaluates its before-region n+1 times and its body n times. Unless
/// the before-region has no reverse, the reverse makes n+1 turns: the body (not
/// in the first turn), then the before-region.
LogicalResult Reverser::reverseWhile(scf::WhileOp loop, Results g,
                                     Sweep &sweep) {
  Builder &outer = sweep.b;
  bool simple = passesThrough(loop);
  Value count = sweep.scope.use(turns.lookup(loop));
  SmallVector<Value> results, inits, receivers, carried;
  for (unsigned i : variedAmong(loop.getResults()))
    results.push_back(zeroIfNull(outer, g[i], loop.getResult(i).getType()));
  if (simple)
    inits = throughBefore(loop, results, outer);

  ReverseLoop reversed(loop.getLoc(), count.getType());
  Builder &b = reversed.b;
  for (unsigned i : variedAmong(loop.getBeforeArguments())) {
    Type type = loop.getBeforeArguments()[i].getType();
    carried.push_back(reversed.carry(type));
    receivers.push_back(loop.getInits()[i]);
    if (!simple)
      inits.push_back(floatConstant(outer, type, 0));
  }
  Adjoints adjoints;
  Sweep inner{b, sweep.scope, adjoints};
  if (simple) {
    Value turn = reversed.turn(b, count);
    if (failed(reverseBody(loop, turn, carried, inner)))
      return failure();
    carried = throughBefore(loop, carried, b);
  } else {
    Value isLater = arith::CmpIOp::create(
        b, arith::CmpIPredicate::ne, reversed.counter, reversed.constant(b, 0));
    Value one = reversed.constant(outer, 1);
    count = arith::AddIOp::create(outer, count, one);
    Value turn = reversed.turn(b, count);
    if (failed(
            reverseLaterBody(loop, turn, isLater, carried, results, inner)) ||
        failed(reverseBefore(loop, turn, carried, inner)))
      return failure();
  }
  for (Value captured : adjoints.remaining()) {
    Value sum = reversed.carry(captured.getType());
    carried.push_back(arith::AddFOp::create(b, sum, adjoints.take(captured)));
    inits.push_back(floatConstant(outer, captured.getType(), 0));
    receivers.push_back(captured);
  }
  scf::ForOp result = reversed.close(outer, count, inits, carried);
  for (auto [value, adjoint] : llvm::zip(receivers, result.getResults()))
    add(sweep, value, adjoint);
  return success();
}

//===-- range -------------------------------------------------------------===//

/// Gives `range` the results `types`; its yield has them already.
static ir::RangeOp withSums(ir::RangeOp range, TypeRange types) {
  OpBuilder builder(range);
  auto widened =
      ir::RangeOp::create(builder, range.getLoc(), range.getExtents(), types);
  widened.getBodyRegion().takeBody(range.getBodyRegion());
  range.erase();
  return widened;
}

/// A copy of a range whose sums the serial code uses: the copy runs in the
/// forward sweep, the original becomes its reverse.
static void keepSums(ir::RangeOp range) {
  if (range.use_empty())
    return;
  OpBuilder builder(range);
  Operation *copy = builder.clone(*range);
  copy->walk([](Operation *op) {
    if (isa<ir::StoreOp, ir::AtomicAddOp>(op))
      op->erase();
  });
  range.replaceAllUsesWith(copy->getResults());
}

LogicalResult Reverser::reverseRange(ir::RangeOp range, Results g,
                                     Sweep &sweep) {
  keepSums(range);
  range->moveBefore(sweep.b.getBlock(), sweep.b.getInsertionPoint());
  exclusive = exclusiveArrays(range);
  Block &body = *range.getBody();
  Builder b(range.getLoc(), body.getTerminator());
  SmallVector<Operation *> ops = operationsOf(body);
  tape::TurnOp::create(b);
  Scope scope(body);
  Adjoints adjoints;
  Sweep inner{b, scope, adjoints};
  for (auto [value, adjoint] :
       llvm::zip(body.getTerminator()->getOperands(), g))
    add(inner, value, adjoint);
  if (failed(reverseOps(ops, inner)))
    return failure();
  exclusive.clear();
  SmallVector<Value> captured = adjoints.remaining(), sums;
  SmallVector<Type> types;
  for (Value value : captured) {
    sums.push_back(adjoints.take(value));
    types.push_back(value.getType());
  }
  body.getTerminator()->setOperands(sums);
  ir::RangeOp widened = withSums(range, types);
  for (auto [value, sum] : llvm::zip(captured, widened.getSums()))
    add(sweep, value, sum);
  return success();
}

} // namespace costate::autodiff
