#include "autodiff/cut/Counting.h"

#include "autodiff/cut/Segments.h"
#include "autodiff/rules/Rules.h"
#include "ir/Operations.h"
#include "ir/Tape.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace costate::autodiff {
bool onlyComputes(scf::WhileOp loop) {
  auto hasEffect = [](Operation *op) {
    return !op->getNumRegions() && !isMemoryEffectFree(op) &&
           !isa<ir::LoadOp, ir::LocalLoadOp>(op);
  };
  if (ir::contains(loop.getBefore(), hasEffect))
    return false;
  return llvm::all_of(loop.getConditionOp().getArgs(), [&](Value value) {
    auto argument = dyn_cast<BlockArgument>(value);
    return !isa<FloatType>(value.getType()) ||
           (argument && argument.getOwner() == loop.getBeforeBody()) ||
           !loop->isAncestor(value.getParentBlock()->getParentOp());
  });
}

namespace {

/// A private array that holds the same as `local`.
Value copyOf(Value local, Builder &b) {
  auto type = cast<ir::LocalType>(local.getType());
  Value copy = ir::LocalOp::create(b, type);
  scf::ForOp loop = forElements(local, b, [&](Builder &inside, Value index) {
    Value element =
        ir::LocalLoadOp::create(inside, type.getValueType(), local, index);
    ir::LocalStoreOp::create(inside, element, copy, index);
  });
  loop->setAttr(countsAttr, b.getUnitAttr());
  return copy;
}

bool isEffect(Operation *op) {
  return isa<ir::PrintOp, ir::AssertOp, tape::ScheduleOp>(op) ||
         ir::writesElement(op);
}

/// The result that counts, of a copy of `loop` which changes nothing.
Value countOf(scf::WhileOp loop, TripCounts &tripCounts) {
  Builder b(loop.getLoc(), loop);
  IRMapping copies;
  llvm::SetVector<Value> written;
  loop.walk([&](Operation *op) {
    if (ir::writesLocal(op) &&
        !loop->isAncestor(ir::localOf(op).getDefiningOp()))
      written.insert(ir::localOf(op));
  });
  for (Value local : written)
    copies.map(local, copyOf(local, b));
  Operation *copy = b.clone(*loop, copies);
  copy->setAttr(countsAttr, b.getUnitAttr());
  for (Operation *effect : ir::all<Operation *>(copy, isEffect))
    effect->erase();
  return copies.lookup(tripCounts.lookup(loop));
}

} // namespace

SmallVector<Value> evaluateBefore(scf::WhileOp loop, ValueRange arguments,
                                  Builder &b) {
  IRMapping copies;
  copies.map(loop.getBeforeArguments(), arguments);
  for (Operation &op : loop.getBeforeBody()->without_terminator())
    b.clone(op, copies);
  return llvm::map_to_vector(loop.getConditionOp().getArgs(), [&](Value value) {
    return copies.lookupOrDefault(value);
  });
}

/// Only arithmetic: others know of loads and loops.
static void eraseDeadScalars(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (op.getNumRegions() == 0 && isPure(&op) && isOpTriviallyDead(&op))
      op.erase();
}

scf::ForOp takeBody(scf::WhileOp loop, Value count, Value first,
                    ValueRange inits, Builder &b) {
  Value zero = indexConstant(b, 0), one = indexConstant(b, 1);
  auto counted = scf::ForOp::create(b, zero, count, one, inits);
  Block &body = *counted.getBody();
  if (!body.empty())
    body.getTerminator()->erase();
  Builder inside = Builder::atBlockEnd(loop.getLoc(), &body);
  Value number = counted.getInductionVar();
  if (first)
    number = arith::AddIOp::create(inside, first, number);
  // The last argument is the number of the iteration.
  SmallVector<Value> arguments(counted.getRegionIterArgs());
  arguments.push_back(number);
  SmallVector<Value> passed = evaluateBefore(loop, arguments, inside);
  for (auto [argument, value] :
       llvm::zip_equal(loop.getAfterArguments(), passed))
    argument.replaceAllUsesWith(value);
  body.getOperations().splice(body.end(), loop.getAfterBody()->getOperations());
  body.getTerminator()->eraseOperand(inits.size());
  eraseDeadScalars(body);
  return counted;
}

scf::ForOp countFirst(scf::WhileOp loop, TripCounts &tripCounts) {
  if (!onlyComputes(loop))
    return {};
  Builder b(loop.getLoc(), loop);
  Value count = countOf(loop, tripCounts);
  scf::ForOp counted =
      takeBody(loop, count, {}, loop.getInits().drop_back(), b);
  SmallVector<Value> last(counted.getResults());
  last.push_back(count);
  loop.replaceAllUsesWith(evaluateBefore(loop, last, b));
  tripCounts.erase(loop);
  loop.erase();
  return counted;
}

} // namespace costate::autodiff
