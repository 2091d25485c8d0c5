#include "conversion/LLVMToSPIRV/Lift.h"

#include "mlir/Conversion/ControlFlowToSCF/ControlFlowToSCF.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

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
    if (Type type = function.getFunctionType().getReturnType();
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

/// A bit of one of two constants.
struct TruncatedChoice final : OpRewritePattern<arith::TruncIOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::TruncIOp op,
                                PatternRewriter &rewriter) const override {
    auto choice = op.getIn().getDefiningOp<arith::SelectOp>();
    APInt yes, no;
    if (!choice || !matchPattern(choice.getTrueValue(), m_ConstantInt(&yes)) ||
        !matchPattern(choice.getFalseValue(), m_ConstantInt(&no)))
      return failure();
    Type type = op.getType();
    unsigned bits = type.getIntOrFloatBitWidth();
    auto constant = [&](const APInt &number) {
      return arith::ConstantOp::create(
          rewriter, op.getLoc(),
          rewriter.getIntegerAttr(type, number.trunc(bits)));
    };
    rewriter.replaceOpWithNewOp<arith::SelectOp>(op, choice.getCondition(),
                                                 constant(yes), constant(no));
    return success();
  }
};

template <class From, class To> struct InLLVM final : OpRewritePattern<From> {
  using OpRewritePattern<From>::OpRewritePattern;

  LogicalResult matchAndRewrite(From op,
                                PatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<To>(op, op.getType(), op->getOperands());
    return success();
  }
};

LogicalResult rewrite(LLVM::LLVMFuncOp function, RewritePatternSet patterns) {
  GreedyRewriteConfig config;
  config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
  return applyPatternsGreedily(function, std::move(patterns), config);
}

/// Lifting leaves numbers of branches, and branches that choose values.
LogicalResult simplify(LLVM::LLVMFuncOp function) {
  MLIRContext *context = function.getContext();
  RewritePatternSet patterns(context);
  scf::IfOp::getCanonicalizationPatterns(patterns, context);
  scf::IndexSwitchOp::getCanonicalizationPatterns(patterns, context);
  arith::SelectOp::getCanonicalizationPatterns(patterns, context);
  patterns.add<TruncatedChoice>(context);
  if (failed(rewrite(function, std::move(patterns))))
    return failure();
  RewritePatternSet back(context);
  back.add<InLLVM<arith::AndIOp, LLVM::AndOp>, InLLVM<arith::OrIOp, LLVM::OrOp>,
           InLLVM<arith::XOrIOp, LLVM::XOrOp>,
           InLLVM<arith::ExtUIOp, LLVM::ZExtOp>,
           InLLVM<arith::ExtSIOp, LLVM::SExtOp>>(context);
  return rewrite(function, std::move(back));
}

} // namespace

LogicalResult liftControlFlow(LLVM::LLVMFuncOp function) {
  renameBranches(function);
  Lifting lifting;
  DominanceInfo dominance(function);
  if (failed(transformCFGToSCF(function.getBody(), lifting, dominance)))
    return failure();
  return simplify(function);
}

} // namespace costate::conversion
