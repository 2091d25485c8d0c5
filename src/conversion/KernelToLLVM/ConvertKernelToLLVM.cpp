#include "conversion/KernelToLLVM/GroupCall.h"
#include "conversion/KernelToLLVM/Guards.h"
#include "conversion/KernelToLLVM/MathLibrary.h"
#include "conversion/KernelToLLVM/Patterns.h"
#include "conversion/KernelToLLVM/Runtime.h"
#include "ir/Device.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Transforms/DialectConversion.h"

using namespace mlir;

namespace costate::conversion {
#define GEN_PASS_DEF_CONVERTKERNELTOLLVM
#include "conversion/KernelToLLVM/Passes.h.inc"

namespace {

/// All liberties but the ones about inf and NaN: guards against them are part
/// of the derivative rules. LLVM multiplies constant factors of a product even
/// where that overflows, so products keep their order.
void relax(ModuleOp module) {
  using Flags = arith::FastMathFlags;
  Flags product = Flags::nsz | Flags::arcp | Flags::contract | Flags::afn;
  module.walk([&](arith::ArithFastMathInterface op) {
    Flags flags = isa<arith::MulFOp, arith::DivFOp>(op)
                      ? product
                      : product | Flags::reassoc;
    auto attr = arith::FastMathFlagsAttr::get(module.getContext(), flags);
    op->setAttr(op.getFastMathAttrName(), attr);
  });
}

void eraseArrays(ModuleOp module) {
  module.walk([](UnrealizedConversionCastOp cast) {
    if (cast->hasAttr(parameterAttr) && cast->use_empty())
      cast.erase();
  });
}

struct ConvertKernelToLLVM
    : impl::ConvertKernelToLLVMBase<ConvertKernelToLLVM> {
  using ConvertKernelToLLVMBase::ConvertKernelToLLVMBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    std::optional<Maths> family = parseMaths(maths);
    if (!family) {
      module.emitError("unknown family of functions: ") << maths;
      return signalPassFailure();
    }
    MathLibrary library(*family, fastMath);
    library.declare(module);
    if (deterministic)
      Runtime(module).declareAddLater();
    if (module->hasAttr(deviceAttr)) {
      Runtime runtime(module);
      runtime.declareAddCommon();
      declareGroups(module, runtime);
    }
    if (!library.isForGpus())
      shareGuards(module);
    if (fastMath)
      relax(module);
    if (failed(convert(module, library)))
      return signalPassFailure();
    eraseArrays(module);
  }

  LogicalResult convert(ModuleOp module, const MathLibrary &library) {
    MLIRContext *context = &getContext();
    LLVMTypeConverter converter(context);
    // Arrays stay; their patterns look through to base and extents.
    converter.addConversion([](ir::ArrayType type) { return type; });
    converter.addConversion([](ir::LocalType type) {
      return LLVM::LLVMPointerType::get(type.getContext());
    });
    RewritePatternSet patterns(context);
    populateAccessPatterns(converter, patterns, deterministic);
    populateLocalPatterns(converter, patterns);
    populateGroupPatterns(converter, patterns);
    populateScalarPatterns(converter, patterns, library.isForGpus());
    populateMathPatterns(converter, patterns, library);
    arith::populateArithToLLVMConversionPatterns(converter, patterns);
    cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
    populateMathToLLVMConversionPatterns(converter, patterns);
    LLVMConversionTarget target(*context);
    target.addLegalOp<ModuleOp, ir::DeviceFunctionOp>();
    target.addDynamicallyLegalOp<UnrealizedConversionCastOp>(
        [](UnrealizedConversionCastOp cast) {
          return cast->hasAttr(parameterAttr);
        });
    // LLVM folds as well, and MLIR's folders of vectors are not all sound.
    ConversionConfig config;
    config.foldingMode = DialectConversionFoldingMode::Never;
    return applyFullConversion(module, target, std::move(patterns), config);
  }
};

} // namespace
} // namespace costate::conversion
