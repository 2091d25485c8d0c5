#include "conversion/Reductions/Passes.h"
#include "conversion/Reductions/Terms.h"

#include "mlir/IR/PatternMatch.h"

using namespace mlir;

namespace costate::conversion {
#define GEN_PASS_DEF_SUMINLOOPS
#include "conversion/Reductions/Passes.h.inc"

namespace {

/// An addition to one element in each iteration of a loop becomes one after it.
class Summer {
public:
  explicit Summer(scf::ForOp loop) : loop(loop) {}

  void run() {
    SmallVector<ir::AtomicAddOp> adds;
    loop.getBodyRegion().walk([&](ir::AtomicAddOp add) {
      if (adds.size() < mostSums && isFixed(add) && isInBranchesOf(add, loop))
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
           ir::isAdjoint(add.getArray()) &&
           llvm::all_of(add.getIndices(),
                        [&](Value index) { return isOutside(index); }) &&
           llvm::all_of(add.getArray().getUsers(), [&](Operation *user) {
             return isa<ir::AtomicAddOp, ir::ExtentOp>(user) ||
                    !loop->isAncestor(user);
           });
  }

  void hoist(ir::AtomicAddOp add) {
    Value term = valueIn(add, loop);
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
    addAfter(loop, add, wider->getResults().back());
    add.erase();
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
