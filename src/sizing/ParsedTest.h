#pragma once
/// Tests of kernel IR that is given as text.

#include "ir/Registration.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

namespace costate::sizing {

class Parsed : public testing::Test {
protected:
  explicit Parsed(llvm::StringRef text) {
    mlir::DialectRegistry registry;
    ir::registerDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  }

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

} // namespace costate::sizing
