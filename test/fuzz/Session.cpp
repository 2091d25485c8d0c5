#include "fuzz/Session.h"

#include "autodiff/Passes.h"
#include "compiler/Pipelines.h"
#include "compiler/Registration.h"
#include "conversion/Contract/Passes.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace costate::fuzz {

Session::Session() : mlirContext(MLIRContext::Threading::DISABLED) {
  DialectRegistry registry;
  compiler::registerAllDialects(registry);
  mlirContext.appendDialectRegistry(registry);
  mlirContext.loadAllAvailableDialects();
  mlirContext.printOpOnDiagnostic(false);
  using Create = std::function<std::unique_ptr<Pass>()>;
  auto add = [&](StringRef name, Create create, bool rounds = false) {
    all.push_back(makeChange(
        name,
        [&](OpPassManager &passes) {
          // The others rely on it.
          passes.addNestedPass<ir::KernelOp>(autodiff::createNormalizeLoops());
          if (create)
            passes.addPass(create());
        },
        rounds));
  };
  auto addOnKernels = [&](StringRef name, Create create) {
    all.push_back(makeChange(name, [&](OpPassManager &passes) {
      passes.addNestedPass<ir::KernelOp>(create());
    }));
  };
  add("normalize-loops", nullptr);
  add("canonicalize", [] { return createCanonicalizerPass(); });
  add("cse", [] { return createCSEPass(); });
  add("loop-invariant-code-motion",
      [] { return createLoopInvariantCodeMotionPass(); });
  add(
      "contract-multiply-add",
      [] { return conversion::createContractMultiplyAdd(); }, /*rounds=*/true);
  addOnKernels("mark-exclusive",
               [] { return autodiff::createMarkExclusive(); });
  addOnKernels("prune", [] { return autodiff::createPrune(); });
  addOnKernels("forward-stores",
               [] { return autodiff::createForwardStores(); });
  plain = makeChange("the passes of a primal", [](OpPassManager &passes) {
    compiler::addPrimalPasses(passes, /*contract=*/false);
  });
  contracted = makeChange(
      "the passes of a primal, with contraction",
      [](OpPassManager &passes) {
        compiler::addPrimalPasses(passes, /*contract=*/true);
      },
      /*rounds=*/true);
  watched = makeChange("watch-accesses", [](OpPassManager &passes) {
    passes.addNestedPass<ir::KernelOp>(autodiff::createWatchAccesses());
  });
  derivatives =
      makeChange("the passes of a derivative", compiler::addDerivativePasses);
}

Session::Change
Session::makeChange(StringRef name,
                    llvm::function_ref<void(OpPassManager &)> fill,
                    bool rounds) {
  Change change{name.str(), rounds,
                std::make_unique<PassManager>(&mlirContext)};
  change.passes->enableVerifier(true);
  fill(*change.passes);
  return change;
}

OwningOpRef<ModuleOp> Session::parse(StringRef text) {
  return parseSourceString<ModuleOp>(text, &mlirContext);
}

Session::Report Session::reportOf(llvm::function_ref<void()> act) {
  Report report;
  ScopedDiagnosticHandler handler(&mlirContext, [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error &&
        report.text.empty()) {
      report.text = diagnostic.str();
      report.hasPlace = isa<FileLineColLoc>(diagnostic.getLocation());
    }
    return success();
  });
  act();
  return report;
}

ir::KernelOp kernelOf(ModuleOp module) {
  return *module.getOps<ir::KernelOp>().begin();
}

} // namespace costate::fuzz
