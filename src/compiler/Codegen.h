#pragma once
/// Kernel IR to code of this machine.

#include "compiler/Compiler.h"
#include "compiler/ObjectCode.h"

#include "mlir/IR/BuiltinOps.h"

namespace mlir {
class PassManager;
}

namespace costate::compiler {

class DiagnosticText;

/// Verifies after every pass in builds with assertions, never in others.
void enableChecks(mlir::PassManager &passes);

/// What translation to LLVM IR needs.
void registerTranslations(mlir::DialectRegistry &registry);

/// Compiles `module`, whose one kernel is `name`, and fills in what depends on
/// its code. The object depends on the kernel and the options only.
Result<> generate(mlir::ModuleOp module, llvm::StringRef name,
                  const Options &options, const std::string &target,
                  DiagnosticText &diagnostics, ObjectCode &object);

/// The optimised LLVM IR of `module`.
Result<std::string> printLLVM(mlir::ModuleOp module, const Options &options,
                              DiagnosticText &diagnostics);

} // namespace costate::compiler
