#pragma once
/// A context in which kernels live, with the passes that run over them.

#include "costate/error.h"
#include "ir/Kernel.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Pass/PassManager.h"

namespace costate::fuzz {

class Session {
public:
  Session();

  mlir::MLIRContext &context() { return mlirContext; }

  /// A pass, or a pipeline, of which nothing that a kernel computes may change.
  struct Change {
    std::string name;
    bool rounds = false; ///< but for the last bits
    std::unique_ptr<mlir::PassManager> passes;
  };
  /// Those for the primal, one by one.
  std::vector<Change> &changes() { return all; }
  /// All of them, in their order.
  Change &primal(bool contract) { return contract ? contracted : plain; }
  /// The search for races that a kernel is prepared for.
  Change &watch() { return watched; }
  /// Those for derivatives.
  Change &derivative() { return derivatives; }

  /// Parses a text with one kernel; null if there is something wrong with it.
  mlir::OwningOpRef<mlir::ModuleOp> parse(llvm::StringRef text);

  /// The first error that `act` has reported, and where.
  struct Report {
    std::string text;
    bool hasPlace = false;
  };
  Report reportOf(llvm::function_ref<void()> act);

private:
  Change makeChange(llvm::StringRef name,
                    llvm::function_ref<void(mlir::OpPassManager &)> fill,
                    bool rounds = false);

  mlir::MLIRContext mlirContext;
  std::vector<Change> all;
  Change plain, contracted, watched, derivatives;
};

/// The only kernel of a module.
ir::KernelOp kernelOf(mlir::ModuleOp module);

} // namespace costate::fuzz
