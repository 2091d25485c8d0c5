#include "conversion/Reductions/Terms.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;

namespace costate::conversion {

bool isInBranchesOf(Operation *op, Operation *around) {
  for (op = op->getParentOp(); op != around; op = op->getParentOp())
    if (!isa<scf::IfOp>(op))
      return false;
  return true;
}

/// Makes `term` of one side a result of `branch`; 0 on the other side.
static std::pair<Operation *, Value> yield(scf::IfOp branch, Block *side,
                                           Value term) {
  IRRewriter rewriter(branch);
  Location loc = branch.getLoc();
  SmallVector<Type> types(branch.getResultTypes());
  types.push_back(term.getType());
  bool isThen = side == branch.thenBlock();
  auto wider = scf::IfOp::create(rewriter, loc, types, branch.getCondition(),
                                 /*withElseRegion=*/true);
  for (auto [from, to] : llvm::zip(branch->getRegions(), wider->getRegions())) {
    if (!from.empty())
      to.takeBody(from);
    else if (to.empty())
      to.emplaceBlock();
  }
  for (Block *block : {wider.thenBlock(), wider.elseBlock()}) {
    bool mine = (block == wider.thenBlock()) == isThen;
    rewriter.setInsertionPointToEnd(block);
    if (!block->mightHaveTerminator())
      scf::YieldOp::create(rewriter, loc);
    Operation *end = block->getTerminator();
    rewriter.setInsertionPoint(end);
    Value value =
        mine ? term
             : arith::ConstantOp::create(rewriter, loc,
                                         rewriter.getZeroAttr(term.getType()));
    end->insertOperands(end->getNumOperands(), value);
  }
  rewriter.replaceAllUsesWith(branch->getResults(),
                              wider->getResults().drop_back());
  rewriter.eraseOp(branch);
  return {wider, wider->getResults().back()};
}

Value valueIn(ir::AtomicAddOp add, Operation *around) {
  Value term = add.getValue();
  Operation *place = add;
  while (place->getParentOp() != around) {
    auto branch = cast<scf::IfOp>(place->getParentOp());
    std::tie(place, term) = yield(branch, place->getBlock(), term);
  }
  return term;
}

ir::AtomicAddOp addAfter(Operation *op, ir::AtomicAddOp add, Value sum) {
  OpBuilder b(op->getContext());
  b.setInsertionPointAfter(op);
  Location loc = add.getLoc();
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(sum.getType()));
  Value isAny =
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNE, sum, zero);
  auto branch = scf::IfOp::create(b, loc, isAny, /*withElseRegion=*/false);
  b.setInsertionPointToStart(branch.thenBlock());
  auto after = cast<ir::AtomicAddOp>(b.clone(*add));
  after->setOperand(0, sum);
  return after;
}

} // namespace costate::conversion
