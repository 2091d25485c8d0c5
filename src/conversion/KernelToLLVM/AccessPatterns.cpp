/// Loads, stores and atomic additions.

#include "conversion/KernelToLLVM/Patterns.h"
#include "conversion/KernelToLLVM/Runtime.h"

#include "mlir/Conversion/LLVMCommon/Pattern.h"

using namespace mlir;

namespace costate::conversion {
namespace {

/// The type of an element in memory: a bool fills a byte.
Type memoryType(Type value) {
  return value.isInteger(1) ? IntegerType::get(value.getContext(), 8) : value;
}

Value elementAddress(ImplicitLocOpBuilder &builder, ArrayView array,
                     Type element, ValueRange indices) {
  auto noWrap = LLVM::IntegerOverflowFlags::nsw;
  if (indices.empty())
    return array.base;
  Value linear = indices.front();
  for (auto [index, extent] : llvm::zip(indices.drop_front(),
                                        array.extents.drop_front())) {
    linear = LLVM::MulOp::create(builder, linear, extent, noWrap);
    linear = LLVM::AddOp::create(builder, linear, index, noWrap);
  }
  return LLVM::GEPOp::create(builder, array.base.getType(), element, array.base,
                             ValueRange(linear),
                             LLVM::GEPNoWrapFlags::inbounds);
}

template <class Op> struct AccessPattern : ConvertOpToLLVMPattern<Op> {
  using ConvertOpToLLVMPattern<Op>::ConvertOpToLLVMPattern;

  static Type element(Op op) { return memoryType(op.getValue().getType()); }
  static Value address(ImplicitLocOpBuilder &builder, Op op,
                       ValueRange indices) {
    return elementAddress(builder, ArrayView(op.getArray()), element(op),
                          indices);
  }
};

struct LoadPattern : AccessPattern<ir::LoadOp> {
  using AccessPattern::AccessPattern;

  LogicalResult
  matchAndRewrite(ir::LoadOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder builder(op.getLoc(), rewriter);
    Value place = address(builder, op, adaptor.getIndices());
    Value value = LLVM::LoadOp::create(builder, element(op), place);
    if (op.getType().isInteger(1)) {
      Value zero = LLVM::ConstantOp::create(builder, element(op), 0);
      value =
          LLVM::ICmpOp::create(builder, LLVM::ICmpPredicate::ne, value, zero);
    }
    rewriter.replaceOp(op, value);
    return success();
  }
};

struct StorePattern : AccessPattern<ir::StoreOp> {
  using AccessPattern::AccessPattern;

  LogicalResult
  matchAndRewrite(ir::StoreOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder builder(op.getLoc(), rewriter);
    Value place = address(builder, op, adaptor.getIndices());
    Value value = adaptor.getValue();
    if (value.getType().isInteger(1))
      value = LLVM::ZExtOp::create(builder, element(op), value);
    LLVM::StoreOp::create(builder, value, place);
    rewriter.eraseOp(op);
    return success();
  }
};

struct AtomicAddPattern : AccessPattern<ir::AtomicAddOp> {
  AtomicAddPattern(const LLVMTypeConverter &converter, bool deterministic)
      : AccessPattern(converter), deterministic(deterministic) {}

  LogicalResult
  matchAndRewrite(ir::AtomicAddOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder builder(op.getLoc(), rewriter);
    Value place = address(builder, op, adaptor.getIndices());
    Value value = adaptor.getValue();
    if (op.getExclusive())
      addAlone(builder, place, value);
    else if (deterministic && isa<FloatType>(value.getType()))
      addLater(builder, workerOf(op), place, value);
    else
      addAtomically(builder, place, value);
    rewriter.eraseOp(op);
    return success();
  }

  static void addAlone(ImplicitLocOpBuilder &builder, Value place,
                       Value value) {
    Type type = value.getType();
    Value old = LLVM::LoadOp::create(builder, type, place);
    Value sum = isa<FloatType>(type)
                    ? LLVM::FAddOp::create(builder, old, value).getResult()
                    : LLVM::AddOp::create(builder, old, value).getResult();
    LLVM::StoreOp::create(builder, sum, place);
  }

  static void addLater(ImplicitLocOpBuilder &builder, Value worker, Value place,
                       Value value) {
    StringRef function = value.getType().isF32() ? "costate_add_later_f32"
                                                 : "costate_add_later_f64";
    LLVM::CallOp::create(builder, TypeRange(), function,
                         ValueRange{worker, place, value});
  }

  static void addAtomically(ImplicitLocOpBuilder &builder, Value place,
                            Value value) {
    auto kind = isa<FloatType>(value.getType()) ? LLVM::AtomicBinOp::fadd
                                                : LLVM::AtomicBinOp::add;
    LLVM::AtomicRMWOp::create(builder, kind, place, value,
                              LLVM::AtomicOrdering::monotonic);
  }

  bool deterministic;
};

struct ExtentPattern : ConvertOpToLLVMPattern<ir::ExtentOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(ir::ExtentOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOp(op, ArrayView(op.getArray()).extents[op.getDim()]);
    return success();
  }
};

} // namespace

void populateAccessPatterns(const LLVMTypeConverter &converter,
                            RewritePatternSet &patterns, bool deterministic) {
  patterns.add<LoadPattern, StorePattern, ExtentPattern>(converter);
  patterns.add<AtomicAddPattern>(converter, deterministic);
}

} // namespace costate::conversion
