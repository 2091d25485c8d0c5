#include "conversion/LLVMToSPIRV/Lift.h"

#include "mlir/Conversion/ControlFlowToSCF/ControlFlowToSCF.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/IR/Dominance.h"

using namespace mlir;

namespace costate::conversion {
namespace {

class Lifting final : public ControlFlowToSCFTransformation {
public:
  FailureOr<Operation *> createUnreachableTerminator(Location loc,
                                                     OpBuilder &builder,
                                                     Region &region) override {
    auto function = cast<LLVM::LLVMFuncOp>(region.getParentOp());
    SmallVector<Value> results;
    if (Type type = function.getResultTypes().front();
        !isa<LLVM::LLVMVoidType>(type))
      results.push_back(getUndefValue(loc, builder, type));
    return LLVM::ReturnOp::create(builder, loc, results).getOperation();
  }
};

void renameBranches(LLVM::LLVMFuncOp function) {
  function.walk([](Operation *op) {
    OpBuilder builder(op);
    if (auto branch = dyn_cast<LLVM::BrOp>(op)) {
      cf::BranchOp::create(builder, op->getLoc(), branch.getDest(),
                           branch.getDestOperands());
      op->erase();
    } else if (auto branch = dyn_cast<LLVM::CondBrOp>(op)) {
      cf::CondBranchOp::create(
          builder, op->getLoc(), branch.getCondition(), branch.getTrueDest(),
          branch.getTrueDestOperands(), branch.getFalseDest(),
          branch.getFalseDestOperands());
      op->erase();
    }
  });
}

} // namespace

LogicalResult liftControlFlow(LLVM::LLVMFuncOp function) {
  renameBranches(function);
  Lifting lifting;
  DominanceInfo dominance(function);
  return LogicalResult(
      transformCFGToSCF(function.getBody(), lifting, dominance));
}

} // namespace costate::conversion
