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
    Type type = op.getType(), one = getElementTypeOrSelf(type);
    StringRef operation = Op::getOperationName();
    std::string name = library.function(operation, one.isF64());
    if (name.empty())
      return failure();
    ImplicitLocOpBuilder builder(op.getLoc(), rewriter);
    auto lanes = dyn_cast<VectorType>(type);
    rewriter.replaceOp(
        op, lanes
                ? callInPieces(builder, operation, lanes, adaptor.getOperands())
                : call(builder, name, type, adaptor.getOperands()));
    return success();
  }

  static Value call(ImplicitLocOpBuilder &b, StringRef name, Type type,
                    ValueRange operands) {
    return LLVM::CallOp::create(b, TypeRange(type), name, operands).getResult();
  }

  /// Vectors as long as the library has, or else lane by lane.
  Value callInPieces(ImplicitLocOpBuilder &b, StringRef operation,
                     VectorType type, ValueRange operands) const {
    Type one = type.getElementType();
    auto [size, name] =
        library.piece(operation, one.isF64(), type.getDimSize(0));
    if (size == type.getDimSize(0))
      return call(b, name, type, operands);
    Value all = LLVM::PoisonOp::create(b, type);
    for (int64_t first = 0; first < type.getDimSize(0); first += size)
      all = size == 1 ? oneLane(b, name, all, operands, first)
                      : onePiece(b, name, all, operands, first, size);
    return all;
  }

  static Value oneLane(ImplicitLocOpBuilder &b, StringRef name, Value all,
                       ValueRange operands, int64_t lane) {
    Value place = LLVM::ConstantOp::create(b, b.getI64IntegerAttr(lane));
    SmallVector<Value> own;
    for (Value operand : operands)
      own.push_back(LLVM::ExtractElementOp::create(b, operand, place));
    Value value = call(b, name, own.front().getType(), own);
    return LLVM::InsertElementOp::create(b, all, value, place);
  }

  static Value onePiece(ImplicitLocOpBuilder &b, StringRef name, Value all,
                        ValueRange operands, int64_t first, int64_t size) {
    auto type = cast<VectorType>(all.getType());
    SmallVector<Value> own;
    for (Value operand : operands) {
      SmallVector<int32_t> lanes;
      for (int64_t lane = first; lane < first + size; ++lane)
        lanes.push_back(static_cast<int32_t>(lane));
      own.push_back(LLVM::ShuffleVectorOp::create(b, operand, operand, lanes));
    }
    Value value = call(b, name, own.front().getType(), own);
    SmallVector<int32_t> spread, merged;
    for (int64_t lane = 0; lane < type.getDimSize(0); ++lane) {
      bool isOwn = lane >= first && lane < first + size;
      spread.push_back(isOwn ? static_cast<int32_t>(lane - first) : 0);
      merged.push_back(
          static_cast<int32_t>(isOwn ? type.getDimSize(0) + lane : lane));
    }
    Value wide = LLVM::ShuffleVectorOp::create(b, value, value, spread);
    return LLVM::ShuffleVectorOp::create(b, all, wide, merged);
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
    Value one = constantOf(builder, type,
                           builder.getFloatAttr(getElementTypeOrSelf(type), 1));
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
