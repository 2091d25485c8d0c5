#include "compiler/Pipelines.h"

#include "autodiff/Passes.h"
#include "compiler/Compiler.h"
#include "compiler/Target.h"
#include "conversion/Contract/Passes.h"
#include "conversion/FindNan/Passes.h"
#include "conversion/KernelToDevice/Passes.h"
#include "conversion/KernelToLLVM/Passes.h"
#include "conversion/Lanes/Passes.h"
#include "conversion/PlaceTapes/Passes.h"
#include "conversion/Reductions/Passes.h"

#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace costate::compiler {

void addFirstPasses(OpPassManager &passes, bool contract, bool keepRanges) {
  passes.addPass(autodiff::createNormalizeLoops());
  passes.addPass(createCanonicalizerPass());
  if (!keepRanges)
    passes.addPass(autodiff::createDropUnitDimensions());
  passes.addPass(autodiff::createInlineLoopsThatRunOnce());
  passes.addPass(createCSEPass());
  passes.addPass(createLoopInvariantCodeMotionPass());
  if (contract)
    passes.addPass(conversion::createContractMultiplyAdd());
}

void addUpdatePasses(OpPassManager &passes) {
  passes.addNestedPass<ir::KernelOp>(autodiff::createExpandFetches());
  passes.addNestedPass<ir::KernelOp>(autodiff::createMarkExclusive());
}

void addPrimalPasses(OpPassManager &passes, bool contract) {
  addFirstPasses(passes, contract, /*keepRanges=*/false);
  addUpdatePasses(passes);
}

void addNamingPasses(OpPassManager &passes) {
  passes.addNestedPass<ir::KernelOp>(conversion::createNameOperations());
}

void addDerivativePasses(OpPassManager &passes) {
  passes.addPass(createCanonicalizerPass());
  passes.addPass(createCSEPass());
  passes.addPass(createLoopInvariantCodeMotionPass());
}

/// From outlined functions to the LLVM dialect.
static void addOutlinedPasses(OpPassManager &passes, const Options &options,
                              const std::string &maths, bool deterministic) {
  passes.addPass(conversion::createLowerCalls());
  passes.addPass(
      conversion::createExpandChecks({.indexChecks = options.debug}));
  passes.addPass(conversion::createExpandTape());
  passes.addPass(createSCFToControlFlowPass());
  passes.addPass(
      conversion::createConvertKernelToLLVM({.maths = maths,
                                             .deterministic = deterministic,
                                             .fastMath = options.fastMath}));
}

static void addReductionPasses(OpPassManager &passes, unsigned mostSums) {
  passes.addNestedPass<ir::KernelOp>(conversion::createSumInLoops());
  passes.addNestedPass<ir::KernelOp>(
      conversion::createMarkReductions({.most = mostSums}));
}

void addHostPasses(OpPassManager &passes, const Options &options) {
  passes.addPass(conversion::createInlineCustom());
  if (options.debug)
    passes.addNestedPass<ir::KernelOp>(autodiff::createWatchAccesses());
  if (options.findNan)
    passes.addNestedPass<ir::KernelOp>(conversion::createFindNan());
  if (!options.debug && !options.findNan) {
    passes.addNestedPass<ir::KernelOp>(autodiff::createGatherAdditions());
    passes.addNestedPass<ir::KernelOp>(
        autodiff::createChooseRemainders({.splits = true}));
    addReductionPasses(passes, /*mostSums=*/64); // in vectors, or the stack
    passes.addNestedPass<ir::KernelOp>(conversion::createSumInRanges());
    passes.addNestedPass<ir::KernelOp>(conversion::createSkipZeroAdjoints());
    if (options.fastMath)
      passes.addPass(conversion::createComposeIterations());
  }
  passes.addNestedPass<ir::KernelOp>(conversion::createPackRecords());
  passes.addPass(conversion::createOutlineRanges(
      {.debug = options.debug || options.findNan}));
  passes.addPass(
      conversion::createSplitRows({.vectorBits = host().vectorBits}));
  if (!options.debug && !options.findNan)
    passes.addPass(
        conversion::createFormLanes({.lanes = options.lanes,
                                     .bits = host().vectorBits,
                                     .deterministic = options.deterministic}));
  addOutlinedPasses(passes, options, host().maths, options.deterministic);
}

void addDevicePasses(OpPassManager &passes, const Options &options,
                     const DevicePasses &device) {
  passes.addPass(conversion::createInlineCustom());
  // Whoever looks for errors looks at each addition.
  if (!options.debug && !options.findNan)
    passes.addNestedPass<ir::KernelOp>(
        autodiff::createGatherAdditions({.numbered = true}));
  passes.addNestedPass<ir::KernelOp>(conversion::createSplitSerial());
  if (options.findNan)
    passes.addNestedPass<ir::KernelOp>(conversion::createFindNan());
  passes.addNestedPass<ir::KernelOp>(conversion::createPackRecords());
  // Whoever looks for errors waits for them anyway.
  if (!options.debug && !options.findNan) {
    addReductionPasses(passes, /*mostSums=*/16); // in registers
    passes.addNestedPass<ir::KernelOp>(
        conversion::createPlaceTapes({.deterministic = options.deterministic,
                                      .fastMath = options.fastMath,
                                      .inlines = device.inlines}));
    passes.addNestedPass<ir::KernelOp>(conversion::createSkipZeroAdjoints());
  }
  passes.addPass(conversion::createOutlineDevice(
      {.debug = options.debug || options.findNan, .lanes = device.lanes}));
  addOutlinedPasses(passes, options, device.maths, /*deterministic=*/false);
}

void registerPipelines() {
  PassPipelineRegistration<>(
      "primal", "kernel IR of the primal, before anything is derived from it",
      [](OpPassManager &passes) {
        addPrimalPasses(passes, /*contract=*/true);
      });
  PassPipelineRegistration<>("derivative", "kernel IR of a derivative",
                             addDerivativePasses);
  PassPipelineRegistration<>(
      "device", "kernel IR to the LLVM dialect, for a device and its host",
      [](OpPassManager &passes) {
        addDevicePasses(passes, Options(), {.maths = host().maths});
      });
  PassPipelineRegistration<>(
      "host", "kernel IR to the LLVM dialect, for this machine",
      [](OpPassManager &passes) { addHostPasses(passes, Options()); });
}

} // namespace costate::compiler
