#include "conversion/Reductions/Passes.h"

#include "mlir/IR/PatternMatch.h"

using namespace mlir;

namespace costate::conversion {
#define GEN_PASS_DEF_SUMINLOOPS
#include "conversion/Reductions/Passes.h.inc"

namespace {

bool isAdjoint(Value array) {
  auto argument = dyn_cast<BlockArgument>(array);
  auto kernel =
      dyn_cast_or_null<ir::KernelOp>(array.getParentBlock()->getParentOp());
  return argument && kernel &&
         kernel.getArgAttr(argument.getArgNumber(), ir::adjointOfAttr);
}

/// An addition to one element in each turn of a loop becomes one behind it.
class Summer {
public:
  explicit Summer(scf::ForOp loop) : loop(loop) {}

  void run() {
    SmallVector<ir::AtomicAddOp> adds;
    loop.getBodyRegion().walk([&](ir::AtomicAddOp add) {
      if (adds.size() < mostSums && isFixed(add) && isReached(add))
        adds.push_back(add);
    });
    for (ir::AtomicAddOp add : adds)
      hoist(add);
  }

private:
  bool isOutside(Value value) {
    return !loop->isAncestor(value.getParentBlock()->getParentOp());
  }

  bool isFixed(ir::AtomicAddOp add) {
    return isa<FloatType>(add.getValue().getType()) &&
           isAdjoint(add.getArray()) &&
           llvm::all_of(add.getIndices(),
                        [&](Value index) { return isOutside(index); }) &&
           llvm::all_of(add.getArray().getUsers(), [&](Operation *user) {
             return isa<ir::AtomicAddOp, ir::ExtentOp>(user) ||
                    !loop->isAncestor(user);
           });
  }

  /// Through branches only.
  bool isReached(Operation *op) {
    for (op = op->getParentOp(); op != loop; op = op->getParentOp())
      if (!isa<scf::IfOp>(op))
        return false;
    return true;
  }

  void hoist(ir::AtomicAddOp add) {
    Value term = add.getValue();
    Operation *place = add;
    while (place->getParentOp() != loop) {
      auto branch = cast<scf::IfOp>(place->getParentOp());
      std::tie(place, term) = yield(branch, place->getBlock(), term);
    }
    IRRewriter rewriter(loop.getContext());
    rewriter.setInsertionPoint(loop);
    Location loc = add.getLoc();
    Value zero = arith::ConstantOp::create(
        rewriter, loc, rewriter.getZeroAttr(term.getType()));
    auto sums = [&](OpBuilder &b, Location,
                    ArrayRef<BlockArgument> before) -> SmallVector<Value> {
      return {arith::AddFOp::create(b, loc, before.front(), term)};
    };
    auto wider = cast<scf::ForOp>(*loop.replaceWithAdditionalYields(
        rewriter, zero, /*replaceInitOperandUsesInLoop=*/false, sums));
    loop = wider;
    addBehind(rewriter, add, wider->getResults().back(), zero);
    add.erase();
  }

  /// Perhaps no turn has come to the element, and it is not there.
  void addBehind(OpBuilder &b, ir::AtomicAddOp add, Value sum, Value zero) {
    Location loc = add.getLoc();
    b.setInsertionPointAfter(loop);
    Value isAny =
        arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNE, sum, zero);
    auto branch = scf::IfOp::create(b, loc, isAny, /*withElseRegion=*/false);
    b.setInsertionPointToStart(branch.thenBlock());
    Operation *behind = b.clone(*add);
    behind->setOperand(0, sum);
  }

  /// Makes `term` of one side a result of `branch`; 0 on the other side.
  std::pair<Operation *, Value> yield(scf::IfOp branch, Block *side,
                                      Value term) {
    IRRewriter rewriter(branch);
    Location loc = branch.getLoc();
    SmallVector<Type> types(branch.getResultTypes());
    types.push_back(term.getType());
    bool isThen = side == branch.thenBlock();
    auto wider = scf::IfOp::create(rewriter, loc, types, branch.getCondition(),
                                   /*withElseRegion=*/true);
    for (auto [from, to] :
         llvm::zip(branch->getRegions(), wider->getRegions())) {
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
               : arith::ConstantOp::create(
                     rewriter, loc, rewriter.getZeroAttr(term.getType()));
      end->insertOperands(end->getNumOperands(), value);
    }
    rewriter.replaceAllUsesWith(branch->getResults(),
                                wider->getResults().drop_back());
    rewriter.eraseOp(branch);
    return {wider, wider->getResults().back()};
  }

  static constexpr size_t mostSums = 16; ///< registers are few
  scf::ForOp loop;
};

struct SumInLoops : impl::SumInLoopsBase<SumInLoops> {
  void runOnOperation() override {
    SmallVector<scf::ForOp> loops; // inner ones first
    getOperation().walk([&](scf::ForOp loop) { loops.push_back(loop); });
    for (scf::ForOp loop : loops)
      Summer(loop).run();
  }
};

} // namespace
} // namespace costate::conversion
