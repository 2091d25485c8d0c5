#include "conversion/Reductions/Passes.h"
#include "conversion/Reductions/Terms.h"

#include "mlir/IR/PatternMatch.h"

using namespace mlir;

namespace costate::conversion {
#define GEN_PASS_DEF_SUMINLOOPS
#include "conversion/Reductions/Passes.h.inc"

namespace {

/// An addition to one element in each iteration of a loop becomes one after it.
/// The parts of a loop that has been cut add up one sum.
class Summer {
public:
  /// `loops`: all of them. `rest`: the additions of the part that has run
  /// before this one, if it is one.
  Summer(scf::ForOp loop, MutableArrayRef<Operation *> loops,
         SmallVectorImpl<ir::AtomicAddOp> &rest)
      : loop(loop), loops(loops), rest(rest) {}

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
    SmallVector<scf::ForOp> around = aroundSegment();
    Value before = startOf(around.empty() ? loop : around.front(), add);
    for (scf::ForOp &wider : around) {
      wider = widened(wider, before, [](OpBuilder &, Value s) { return s; });
      before = wider.getRegionIterArgs().back();
    }
    loop = widened(loop, before, [&](OpBuilder &b, Value sum) -> Value {
      return arith::AddFOp::create(b, add.getLoc(), sum, term);
    });
    scf::ForOp whole = loop;
    for (scf::ForOp wider : llvm::reverse(around)) {
      Operation *yield = wider.getBody()->getTerminator();
      yield->setOperand(wider.getNumResults() - 1, whole->getResults().back());
      whole = wider;
    }
    ir::AtomicAddOp after = addAfter(whole, add, whole->getResults().back());
    add.erase();
    if (loop->hasAttr(ir::restAttr))
      rest.push_back(after);
  }

  /// The loops over segments of which this is one, from the outermost one.
  SmallVector<scf::ForOp> aroundSegment() {
    SmallVector<scf::ForOp> loops;
    for (Operation *part = loop; part->hasAttr(ir::segmentAttr);) {
      part = part->getParentOp();
      if (!isa<scf::ForOp>(part) || !part->hasAttr(ir::rerunAttr))
        break;
      loops.push_back(cast<scf::ForOp>(part));
    }
    std::reverse(loops.begin(), loops.end());
    return loops;
  }

  /// What has come together before `whole` runs: that is added with its own.
  Value startOf(scf::ForOp whole, ir::AtomicAddOp add) {
    bool goesOn =
        loop->hasAttr(ir::segmentAttr) || loop->hasAttr(ir::rerunAttr);
    for (auto part = rest.begin(); goesOn && part != rest.end(); ++part) {
      Value sum = part->getValue();
      if (part->getArray() != add.getArray() ||
          part->getIndices() != add.getIndices() ||
          sum.getParentBlock() != whole->getBlock())
        continue;
      (*part)->getParentOp()->erase();
      rest.erase(part);
      return sum;
    }
    OpBuilder b(whole);
    return arith::ConstantOp::create(b, add.getLoc(),
                                     b.getZeroAttr(add.getValue().getType()));
  }

  scf::ForOp widened(scf::ForOp narrow, Value init,
                     function_ref<Value(OpBuilder &, Value)> next) {
    IRRewriter rewriter(narrow.getContext());
    rewriter.setInsertionPoint(narrow);
    auto yields = [&](OpBuilder &b, Location,
                      ArrayRef<BlockArgument> before) -> SmallVector<Value> {
      return {next(b, before.front())};
    };
    Operation *old = narrow;
    auto wider = cast<scf::ForOp>(*narrow.replaceWithAdditionalYields(
        rewriter, init, /*replaceInitOperandUsesInLoop=*/false, yields));
    std::replace(loops.begin(), loops.end(), old, wider.getOperation());
    return wider;
  }

  static constexpr size_t mostSums = 16; ///< registers are few
  scf::ForOp loop;
  MutableArrayRef<Operation *> loops;
  SmallVectorImpl<ir::AtomicAddOp> &rest;
};

struct SumInLoops : impl::SumInLoopsBase<SumInLoops> {
  void runOnOperation() override {
    SmallVector<Operation *> loops; // inner ones first
    getOperation().walk([&](scf::ForOp loop) { loops.push_back(loop); });
    SmallVector<ir::AtomicAddOp> rest;
    for (size_t k = 0; k < loops.size(); ++k)
      Summer(cast<scf::ForOp>(loops[k]), loops, rest).run();
  }
};

} // namespace
} // namespace costate::conversion
