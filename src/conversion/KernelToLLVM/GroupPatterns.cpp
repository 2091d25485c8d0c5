/// What work items of a block do together: calls of functions of the device.

#include "conversion/KernelToLLVM/GroupCall.h"
#include "conversion/KernelToLLVM/Patterns.h"

#include "mlir/Conversion/LLVMCommon/Pattern.h"

using namespace mlir;

namespace costate::conversion {
namespace {

Value toBits(ImplicitLocOpBuilder &b, Value value) {
  Type bits = GroupCall::bitsOf(value.getType());
  if (value.getType().isInteger(1))
    return LLVM::ZExtOp::create(b, bits, value);
  return bits == value.getType() ? value
                                 : LLVM::BitcastOp::create(b, bits, value);
}

Value fromBits(ImplicitLocOpBuilder &b, Value bits, Type type) {
  if (type.isInteger(1)) {
    Value zero = LLVM::ConstantOp::create(b, bits.getType(), 0);
    return LLVM::ICmpOp::create(b, LLVM::ICmpPredicate::ne, bits, zero);
  }
  return bits.getType() == type ? bits : LLVM::BitcastOp::create(b, type, bits);
}

struct GroupPattern : ConvertOpToLLVMPattern<ir::GroupOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(ir::GroupOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    auto function = op->getAttrOfType<StringAttr>(groupFunctionAttr);
    SmallVector<Value> arguments;
    for (Value value : adaptor.getValues())
      arguments.push_back(toBits(b, value));
    arguments.push_back(LLVM::ConstantOp::create(b, b.getI64Type(),
                                                 op->getAttr(groupSiteAttr)));
    bool hasResult = op.getNumResults() != 0;
    auto call = LLVM::CallOp::create(
        b, hasResult ? TypeRange(GroupCall(op).result()) : TypeRange(),
        function.getValue(), arguments);
    if (hasResult)
      rewriter.replaceOp(
          op, fromBits(b, call.getResult(), op.getResult(0).getType()));
    else
      rewriter.eraseOp(op);
    return success();
  }
};

LLVM::LLVMFuncOp declare(ModuleOp module, StringRef name, Type result,
                         ArrayRef<Type> operands) {
  if (auto known = module.lookupSymbol<LLVM::LLVMFuncOp>(name))
    return known;
  auto b =
      ImplicitLocOpBuilder::atBlockBegin(module.getLoc(), module.getBody());
  auto function = LLVM::LLVMFuncOp::create(
      b, name, LLVM::LLVMFunctionType::get(result, operands));
  function.setNoUnwind(true);
  function.setConvergent(true);
  return function;
}

} // namespace

void declareGroups(ModuleOp module, Runtime &runtime) {
  Builder b(module.getContext());
  module.walk([&](ir::GroupOp op) {
    GroupCall call(op);
    SmallVector<Type> operands = call.operands();
    operands.push_back(b.getI64Type());
    auto function = declare(module, call.name(), call.result(), operands);
    op->setAttr(groupFunctionAttr, b.getStringAttr(function.getName()));
    op->setAttr(groupSiteAttr, b.getI64IntegerAttr(runtime.site(op.getLoc())));
  });
}

void callBlockBarrier(ImplicitLocOpBuilder &b, ModuleOp module) {
  auto none = LLVM::LLVMVoidType::get(b.getContext());
  auto function = declare(module, "costate_device_block_barrier", none, {});
  LLVM::CallOp::create(b, function, ValueRange());
}

void populateGroupPatterns(const LLVMTypeConverter &converter,
                           RewritePatternSet &patterns) {
  patterns.add<GroupPattern>(converter);
}

} // namespace costate::conversion
