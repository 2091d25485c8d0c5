#include "compiler/Registration.h"

#include "autodiff/Passes.h"
#include "compiler/Pipelines.h"
#include "conversion/Contract/Passes.h"
#include "conversion/FindNan/Passes.h"
#include "conversion/KernelToDevice/Passes.h"
#include "conversion/KernelToLLVM/Passes.h"
#include "conversion/Lanes/Passes.h"
#include "conversion/PlaceTapes/Passes.h"
#include "conversion/Reductions/Passes.h"
#include "ir/Registration.h"

#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Transforms/Passes.h"

namespace mlir {
#define GEN_PASS_REGISTRATION_SCFTOCONTROLFLOWPASS
#include "mlir/Conversion/Passes.h.inc"
} // namespace mlir

namespace costate::compiler {

void registerAllDialects(mlir::DialectRegistry &registry) {
  ir::registerDialects(registry);
  registry.insert<mlir::cf::ControlFlowDialect, mlir::LLVM::LLVMDialect>();
}

void registerAllPasses() {
  mlir::registerTransformsPasses();
  mlir::registerSCFToControlFlowPass();
  autodiff::registerAutodiffPasses();
  conversion::registerCostateContractPasses();
  conversion::registerCostateLanesPasses();
  conversion::registerCostateFindNanPasses();
  conversion::registerCostateKernelToDevicePasses();
  conversion::registerCostatePlaceTapesPasses();
  conversion::registerCostateReductionsPasses();
  conversion::registerCostateKernelToLLVMPasses();
  registerPipelines();
}

} // namespace costate::compiler
