#pragma once
/// The fixture of the tests of lowering.

#include "lowering/Lower.h"

#include "ir/Registration.h"
#include "syntax/Trace.h"

#include "costate/math.h"
#include "costate/syntax.h"
#include "costate/trace.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

#include <gtest/gtest.h>

namespace costate::lowering {

/// Kernel IR of small kernels: as it comes out of lowering, and canonical where
/// that text is long.
class Lower : public testing::Test {
protected:
  Lower() {
    mlir::DialectRegistry registry;
    ir::registerDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    module = mlir::ModuleOp::create(mlir::UnknownLoc::get(&context));
  }

  template <class F> std::string lower(F body) {
    auto traced = detail::trace("k", body, Loc::current());
    if (traced->failure)
      return traced->failure->text;
    Result<ir::KernelOp> op = lowering::lower(traced->outlined(), *module);
    return op.ok() ? text(*op) : op.error().text;
  }

  template <class F> std::string canonical(F body) {
    std::string plain = lower(body);
    mlir::PassManager passes(&context);
    passes.addPass(mlir::createCanonicalizerPass());
    passes.addPass(mlir::createCSEPass());
    if (mlir::failed(passes.run(*module)))
      return "no canonical form:\n" + plain;
    return text(*module->getOps<ir::KernelOp>().begin());
  }

  static std::string text(mlir::Operation *op) {
    std::string out;
    llvm::raw_string_ostream stream(out);
    op->print(stream);
    return "\n" + out + "\n";
  }

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

} // namespace costate::lowering
