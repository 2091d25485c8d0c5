/// The reverse of ranges.

#include "autodiff/replay/Accesses.h"
#include "autodiff/reverse/Reverser.h"
#include "ir/Tape.h"

#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;

namespace costate::autodiff {

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
static void keepSums(ir::RangeOp range, Scope &scope) {
  if (range.getNumResults() == 0)
    return;
  OpBuilder builder(range);
  Operation *copy = builder.clone(*range);
  copy->walk([](Operation *op) {
    if (ir::writesElement(op) && !op->hasAttr(ir::replayedAttr))
      op->erase();
  });
  for (auto [sum, kept] : llvm::zip(range.getSums(), copy->getResults()))
    scope.rename(sum, kept);
  range.replaceAllUsesWith(copy->getResults());
}

LogicalResult Reverser::reverseRange(ir::RangeOp range, Results g,
                                     Sweep &sweep) {
  keepSums(range, sweep.scope);
  range->moveBefore(sweep.b.getBlock(), sweep.b.getInsertionPoint());
  exclusive = exclusiveOf.lookup(range);
  Block &body = *range.getBody();
  Builder b(range.getLoc(), body.getTerminator());
  SmallVector<Operation *> ops = operationsOf(body);
  Operation *own = tape::PivotOp::create(b);
  llvm::SaveAndRestore ofRange(pivot, own);
  declareAdjoints(body, b);
  Scopes scopes(records);
  Scope &scope = scopes.open(body);
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
  scopes.finish();
  // In the reverse of a loop or branch it uses what that has.
  range->walk([&](Operation *op) { useForward(op, sweep.scope); });
  ir::RangeOp widened = withSums(range, types);
  for (auto [value, sum] : llvm::zip(captured, widened.getSums()))
    add(sweep, value, sum);
  return success();
}

} // namespace costate::autodiff
