/// Private arrays themselves: memory on the stack of a thread, from the start
/// of its function on, so that loops do not allocate.

#include "conversion/KernelToLLVM/Patterns.h"

#include "mlir/Conversion/LLVMCommon/Pattern.h"

using namespace mlir;

namespace costate::conversion {
namespace {

void clear(ImplicitLocOpBuilder &b, Value memory, ir::LocalType type) {
  Value zero = LLVM::ConstantOp::create(b, b.getI8Type(), 0);
  Value bytes = LLVM::ConstantOp::create(b, b.getI64Type(), type.bytes());
  LLVM::MemsetOp::create(b, memory, zero, bytes, /*isVolatile=*/false);
}

struct LocalPattern : ConvertOpToLLVMPattern<ir::LocalOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(ir::LocalOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    auto function = op->getParentOfType<LLVM::LLVMFuncOp>();
    OpBuilder::InsertPoint here = b.saveInsertionPoint();
    b.setInsertionPointToStart(&function.getFunctionBody().front());
    Value count =
        LLVM::ConstantOp::create(b, b.getI64Type(), op.getType().getSize());
    Value memory = LLVM::AllocaOp::create(
        b, LLVM::LLVMPointerType::get(b.getContext()),
        memoryType(op.getType().getElementType()), count, /*alignment=*/8);
    b.restoreInsertionPoint(here);
    clear(b, memory, op.getType());
    rewriter.replaceOp(op, memory);
    return success();
  }
};

struct ClearPattern : ConvertOpToLLVMPattern<ir::LocalClearOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(ir::LocalClearOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    clear(b, adaptor.getLocal(), op.getLocal().getType());
    rewriter.eraseOp(op);
    return success();
  }
};

/// What stands for one that lives in the frame of a device.
struct CastPattern : ConvertOpToLLVMPattern<UnrealizedConversionCastOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(UnrealizedConversionCastOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (op.getNumResults() != 1 || !isa<ir::LocalType>(op.getType(0)))
      return failure();
    rewriter.replaceOp(op, adaptor.getInputs());
    return success();
  }
};

} // namespace

void populateLocalPatterns(const LLVMTypeConverter &converter,
                           RewritePatternSet &patterns) {
  patterns.add<LocalPattern, ClearPattern, CastPattern>(converter);
}

} // namespace costate::conversion
