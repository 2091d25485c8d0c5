#include "conversion/KernelToLLVM/Passes.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace costate::conversion {
#define GEN_PASS_DEF_INLINECUSTOM
#include "conversion/KernelToLLVM/Passes.h.inc"

namespace {

void inlinePrimal(ir::CustomOp op) {
  Block &body = op.getPrimal().front();
  for (auto [argument, input] :
       llvm::zip_equal(body.getArguments(), op.getInputs()))
    argument.replaceAllUsesWith(input);
  Operation *end = body.getTerminator();
  op.getResult().replaceAllUsesWith(end->getOperand(0));
  end->erase();
  op->getBlock()->getOperations().splice(op->getIterator(),
                                         body.getOperations());
  op.erase();
}

struct InlineCustom : impl::InlineCustomBase<InlineCustom> {
  void runOnOperation() override {
    getOperation()->walk([](ir::CustomOp op) { inlinePrimal(op); });
  }
};

} // namespace
} // namespace costate::conversion
