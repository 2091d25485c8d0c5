/// Maths: calls of the library, and what is an instruction.

#include "conversion/KernelToLLVM/MathLibrary.h"
#include "conversion/KernelToLLVM/Patterns.h"

#include "mlir/Conversion/LLVMCommon/Pattern.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;

namespace costate::conversion {
namespace {

constexpr unsigned preferred = 10; // over upstream's patterns

Value scaled(ImplicitLocOpBuilder &builder, Value value, double factor) {
  if (factor == 1)
    return value;
  Type type = value.getType();
  Value constant = LLVM::ConstantOp::create(builder, type,
                                            builder.getFloatAttr(type, factor));
  return LLVM::FMulOp::create(builder, value, constant);
}

/// What the device computes in an instruction, as well as it can.
template <class Op> struct ApproximatePattern : ConvertOpToLLVMPattern<Op> {
  ApproximatePattern(const LLVMTypeConverter &converter,
                     const MathLibrary &library)
      : ConvertOpToLLVMPattern<Op>(converter, preferred + 1), library(library) {
  }

  LogicalResult
  matchAndRewrite(Op op, typename Op::Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    std::optional<Approximation> found =
        library.approximation(Op::getOperationName(), op.getType());
    if (!found)
      return failure();
    ImplicitLocOpBuilder builder(op.getLoc(), rewriter);
    Value operand =
        scaled(builder, adaptor.getOperands().front(), found->before);
    Value result =
        LLVM::CallIntrinsicOp::create(builder, op.getType(),
                                      builder.getStringAttr(found->intrinsic),
                                      ValueRange{operand})
            .getResult(0);
    rewriter.replaceOp(op, scaled(builder, result, found->after));
    return success();
  }

  const MathLibrary &library;
};

/// The instruction that LLVM would take loses quotients by large numbers.
struct FullDivision : ConvertOpToLLVMPattern<arith::DivFOp> {
  explicit FullDivision(const LLVMTypeConverter &converter)
      : ConvertOpToLLVMPattern(converter, preferred) {}

  LogicalResult
  matchAndRewrite(arith::DivFOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (!op.getType().isF32())
      return failure();
    rewriter.replaceOpWithNewOp<LLVM::CallIntrinsicOp>(
        op, op.getType(), rewriter.getStringAttr("llvm.nvvm.div.full"),
        adaptor.getOperands());
    return success();
  }
};

template <class Op> struct LibraryPattern : ConvertOpToLLVMPattern<Op> {
  LibraryPattern(const LLVMTypeConverter &converter, const MathLibrary &library)
      : ConvertOpToLLVMPattern<Op>(converter, preferred), library(library) {}

  LogicalResult
  matchAndRewrite(Op op, typename Op::Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Type type = op.getType();
    std::string name = library.function(Op::getOperationName(), type.isF64());
    if (name.empty())
      return failure();
    rewriter.replaceOpWithNewOp<LLVM::CallOp>(op, TypeRange(type), name,
                                              adaptor.getOperands());
    return success();
  }

  const MathLibrary &library;
};

struct RsqrtPattern : ConvertOpToLLVMPattern<ir::RsqrtOp> {
  explicit RsqrtPattern(const LLVMTypeConverter &converter)
      : ConvertOpToLLVMPattern(converter, preferred) {}

  LogicalResult
  matchAndRewrite(ir::RsqrtOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder builder(op.getLoc(), rewriter);
    Type type = op.getType();
    Value root = LLVM::SqrtOp::create(builder, adaptor.getOperand());
    Value one =
        LLVM::ConstantOp::create(builder, type, builder.getFloatAttr(type, 1));
    rewriter.replaceOpWithNewOp<LLVM::FDivOp>(op, one, root);
    return success();
  }
};

} // namespace

void populateMathPatterns(const LLVMTypeConverter &converter,
                          RewritePatternSet &patterns,
                          const MathLibrary &library) {
  patterns.add<RsqrtPattern>(converter);
  if (library.dividesInFull())
    patterns.add<FullDivision>(converter);
  patterns.add<LibraryPattern<arith::RemFOp>>(converter, library);
#define COSTATE_FUNCTION(Name, ...)                                            \
  patterns                                                                     \
      .add<ApproximatePattern<ir::Name##Op>, LibraryPattern<ir::Name##Op>>(    \
          converter, library);
#include "costate/detail/operations.def"
}

} // namespace costate::conversion
