#include "conversion/KernelToLLVM/Runtime.h"
#include "conversion/Reductions/Passes.h"
#include "conversion/Reductions/Terms.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace costate::conversion {
#define GEN_PASS_DEF_SUMINRANGES
#include "conversion/Reductions/Passes.h.inc"

namespace {

/// Marked additions of one range become results of it.
class RangeSummer {
public:
  explicit RangeSummer(ir::RangeOp range) : range(range) {}

  void run() {
    if (!llvm::all_of(range.getResultTypes(), llvm::IsaPred<FloatType>))
      return;
    collect();
    if (elements.empty())
      return;
    for (auto &[number, adds] : elements)
      yield(adds);
    widen();
    auto sums = range.getResults().take_back(elements.size());
    // Each is put right after the range: the first one last.
    for (auto [element, sum] : llvm::reverse(llvm::zip_equal(elements, sums)))
      addAfter(range, element.second.front(), sum);
    for (auto &[number, adds] : elements)
      for (ir::AtomicAddOp add : adds)
        add.erase();
  }

private:
  void collect() {
    range.walk([&](ir::AtomicAddOp add) {
      auto number = add->getAttrOfType<IntegerAttr>(reductionAttr);
      Type type = add.getValue().getType();
      if (number && (type.isF32() || type.isF64()) &&
          isInBranchesOf(add, range))
        elements[number.getInt()].push_back(add);
    });
  }

  /// The terminator holds the sum: values of branches that get more results are
  /// replaced.
  void yield(ArrayRef<ir::AtomicAddOp> adds) {
    Operation *end = range.getBody()->getTerminator();
    unsigned number = end->getNumOperands();
    for (ir::AtomicAddOp add : adds) {
      add->removeAttr(reductionAttr);
      Value term = valueIn(add, range);
      if (end->getNumOperands() == number) {
        end->insertOperands(number, term);
        continue;
      }
      OpBuilder b(end);
      Value sum = end->getOperand(number);
      end->setOperand(number,
                      arith::AddFOp::create(b, add.getLoc(), sum, term));
    }
  }

  /// A range with a result for each value that its body yields.
  void widen() {
    IRRewriter rewriter(range);
    auto types = range.getBody()->getTerminator()->getOperandTypes();
    auto wider = ir::RangeOp::create(rewriter, range.getLoc(),
                                     range.getExtents(), types);
    wider->setDiscardableAttrs(range->getDiscardableAttrDictionary());
    wider->setAttr(addsAttr, rewriter.getUnitAttr());
    wider.getBodyRegion().takeBody(range.getBodyRegion());
    rewriter.replaceAllUsesWith(
        range.getResults(),
        wider.getResults().take_front(range.getNumResults()));
    rewriter.eraseOp(range);
    range = wider;
  }

  ir::RangeOp range;
  llvm::MapVector<int64_t, SmallVector<ir::AtomicAddOp>> elements;
};

struct SumInRanges : impl::SumInRangesBase<SumInRanges> {
  void runOnOperation() override {
    SmallVector<ir::RangeOp> ranges;
    getOperation().walk([&](ir::RangeOp range) { ranges.push_back(range); });
    for (ir::RangeOp range : ranges)
      RangeSummer(range).run();
  }
};

} // namespace
} // namespace costate::conversion
