#include "lowering/Lowering.h"

#include "ir/Blocks.h"
#include "lowering/Operations.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;

namespace costate::lowering {

using syntax::none;

/// An `scf.if` whose results are the `assigned` variables.
void Lowering::branch(Location loc, Value condition,
                      llvm::ArrayRef<VarId> assigned, Body then,
                      Body otherwise) {
  SmallVector<Value> before;
  for (VarId variable : assigned)
    before.push_back(current[variable]);
  auto emit = [&](Body body) {
    return [&, body](OpBuilder &, Location) {
      setCurrent(assigned, before);
      if (body)
        body();
      scf::YieldOp::create(b, loc, currentOf(assigned, loc));
    };
  };
  auto thenPart = emit(then);
  auto elsePart = emit(otherwise);
  function_ref<void(OpBuilder &, Location)> elseBuilder = nullptr;
  if (otherwise || !assigned.empty())
    elseBuilder = elsePart;
  auto op = scf::IfOp::create(b, loc, condition, thenPart, elseBuilder);
  setCurrent(assigned, op.getResults());
}

void Lowering::lowerIf(const Statement &statement) {
  bool hasElse = statement.blocks.size() > 1 && !statement.blocks[1].empty();
  auto then = [&] { lower(statement.blocks[0]); };
  auto otherwise = [&] { lower(statement.blocks[1]); };
  branch(at(statement), values[statement.operands[0]],
         analysis.of(statement).assigned, then,
         hasElse ? Body(otherwise) : Body());
}

//===-- Loops -------------------------------------------------------------===//

void Lowering::lowerFor(const Statement &statement) {
  const Facts &facts = analysis.of(statement);
  SmallVector<Value> bounds = valuesOf(statement.operands);
  Value count = ir::TripCountOp::create(b, at(statement), bounds[0], bounds[1],
                                        bounds[2]);
  if (facts.breakFlag != none || facts.jumps.returns)
    lowerLeavableFor(statement, count);
  else
    lowerCountedFor(statement, count);
}

/// The flags inside a loop; its own BREAK has not happened.
Lowering::Flags Lowering::enterLoop(const Statement &statement) {
  const Facts &facts = analysis.of(statement);
  clear(facts.breakFlag, at(statement));
  return {facts.breakFlag, facts.continueFlag, flags.returnFlag};
}

std::vector<VarId> Lowering::carriedBy(const Statement &statement) {
  const Facts &facts = analysis.of(statement);
  std::vector<VarId> carried = facts.assigned;
  if (facts.breakFlag != none)
    carried.push_back(facts.breakFlag);
  return carried;
}

void Lowering::mark(Operation *loop, const Statement &statement) {
  if (statement.bits)
    loop->setAttr(ir::checkpointsAttr,
                  b.getI64IntegerAttr(static_cast<int64_t>(statement.bits)));
}

/// One iteration of a FOR: its index is lo + k * step.
void Lowering::iteration(const Statement &statement, Value k) {
  Location loc = at(statement);
  Value lo = values[statement.operands[0]],
        step = values[statement.operands[2]];
  Value offset = b.createOrFold<arith::MulIOp>(loc, k, step);
  values[statement.value] = b.createOrFold<arith::AddIOp>(loc, offset, lo);
  enterIteration(statement);
  lower(statement.blocks[0]);
}

void Lowering::lowerCountedFor(const Statement &statement, Value count) {
  Location loc = at(statement);
  llvm::SaveAndRestore scope(flags, enterLoop(statement));
  std::vector<VarId> carried = carriedBy(statement);
  Value zero = i64(loc, 0), one = i64(loc, 1);
  auto body = [&](OpBuilder &, Location, Value k, ValueRange state) {
    setCurrent(carried, state);
    iteration(statement, k);
    scf::YieldOp::create(b, loc, currentOf(carried, loc));
  };
  auto op = scf::ForOp::create(b, loc, zero, count, one,
                               currentOf(carried, loc), body);
  mark(op, statement);
  setCurrent(carried, op.getResults());
}

/// The jumps that may leave the loop.
Jumps Lowering::leaving(const Statement &statement) {
  Jumps jumps;
  jumps.breaks = flags.breakFlag != none;
  jumps.returns = analysis.of(statement).jumps.returns;
  return jumps;
}

/// An iteration begins only if no jump has left the loop.
void Lowering::enterIteration(const Statement &statement) {
  Jumps jumps = leaving(statement);
  Location loc = at(statement);
  if (jumps.breaks)
    clear(flags.breakFlag, loc);
  if (jumps.returns)
    clear(flags.returnFlag, loc);
  clear(flags.continueFlag, loc);
}

/// A loop that a jump may leave counts its iterations itself.
void Lowering::lowerLeavableFor(const Statement &statement, Value count) {
  Location loc = at(statement);
  llvm::SaveAndRestore scope(flags, enterLoop(statement));
  std::vector<VarId> carried = carriedBy(statement);
  SmallVector<Value> start = {i64(loc, 0)};
  start.append(currentOf(carried, loc));
  auto before = [&](OpBuilder &, Location, ValueRange state) {
    setCurrent(carried, state.drop_front());
    Value more = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                                       state[0], count);
    Value going = goesOn(loc, leaving(statement));
    Value both = arith::AndIOp::create(b, loc, going, more);
    scf::ConditionOp::create(b, loc, both, state);
  };
  auto after = [&](OpBuilder &, Location, ValueRange state) {
    setCurrent(carried, state.drop_front());
    iteration(statement, state[0]);
    Value one = i64(loc, 1);
    SmallVector<Value> next = {arith::AddIOp::create(b, loc, state[0], one)};
    next.append(currentOf(carried, loc));
    scf::YieldOp::create(b, loc, next);
  };
  auto op = scf::WhileOp::create(b, loc, ValueRange(start).getTypes(), start,
                                 before, after);
  mark(op, statement);
  setCurrent(carried, op.getResults().drop_front());
}

/// The condition of a WHILE, evaluated only if no jump has left the loop.
Value Lowering::condition(const Statement &statement) {
  Location loc = at(statement);
  llvm::SaveAndRestore silent(debug, false); // a condition only computes
  auto evaluate = [&] {
    lower(statement.blocks[0]);
    return values[statement.condition];
  };
  Jumps jumps = leaving(statement);
  if (!jumps.any())
    return evaluate();
  auto then = [&](OpBuilder &, Location) {
    scf::YieldOp::create(b, loc, evaluate());
  };
  auto otherwise = [&](OpBuilder &, Location) {
    scf::YieldOp::create(b, loc, boolean(loc, false));
  };
  Value going = goesOn(loc, jumps);
  return scf::IfOp::create(b, loc, going, then, otherwise).getResult(0);
}

void Lowering::lowerWhile(const Statement &statement) {
  Location loc = at(statement);
  llvm::SaveAndRestore scope(flags, enterLoop(statement));
  std::vector<VarId> carried = carriedBy(statement);
  SmallVector<Value> start = currentOf(carried, loc);
  auto before = [&](OpBuilder &, Location, ValueRange state) {
    setCurrent(carried, state);
    scf::ConditionOp::create(b, loc, condition(statement), state);
  };
  auto after = [&](OpBuilder &, Location, ValueRange state) {
    setCurrent(carried, state);
    enterIteration(statement);
    lower(statement.blocks[1]);
    scf::YieldOp::create(b, loc, currentOf(carried, loc));
  };
  auto op = scf::WhileOp::create(b, loc, ValueRange(start).getTypes(), start,
                                 before, after);
  mark(op, statement);
  setCurrent(carried, op.getResults());
}

//===-- Ranges ------------------------------------------------------------===//

/// The types of what all work items of a range give.
SmallVector<Type> Lowering::foldedBy(const Statement &range) {
  SmallVector<Type> types;
  for (size_t k = 0; k < range.defines(); ++k)
    types.push_back(typeOf(b.getContext(), kernel.values[range.value + k]));
  return types;
}

/// Does nothing where `skipped` holds.
void Lowering::lowerRange(const Statement &statement, Value skipped) {
  Location loc = at(statement);
  SmallVector<Value> extents = valuesOf(statement.operands);
  if (skipped) {
    Value zero = i64(loc, 0);
    for (Value &extent : extents)
      extent = arith::SelectOp::create(b, loc, skipped, zero, extent);
  }
  auto range = ir::RangeOp::create(b, loc, extents, foldedBy(statement));
  if (statement.op == syntax::Op::Min)
    range.setMinima(true);
  if (statement.bits)
    range->setAttr(ir::blockDimAttr,
                   b.getI64IntegerAttr(int64_t(statement.bits)));
  for (auto [k, result] : llvm::enumerate(range.getResults()))
    values[statement.value + k] = result;
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(range.getBody());
  for (auto [id, index] :
       llvm::zip_equal(statement.indices, range.getIndices()))
    values[id] = index;
  VarId returnFlag = analysis.of(statement).returnFlag;
  llvm::SaveAndRestore scope(flags, Flags{none, none, returnFlag});
  clear(returnFlag, loc);
  lower(statement.blocks[0]);
  if (statement.value != none)
    ir::YieldOp::create(b, loc, valuesOf(statement.results));
}

} // namespace costate::lowering
