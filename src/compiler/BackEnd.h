#pragma once
/// What the back ends of LLVM for GPUs make, and what they cannot.

#include "base/Result.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/CodeGen.h"

#include <memory>
#include <string>

namespace llvm {
class DiagnosticHandler;
class LLVMContext;
class Module;
class TargetMachine;
} // namespace llvm

namespace costate::compiler {

/// Internal if `module` needs what is left without code: functions of others,
/// intrinsics that do not start with `own`, and those for which back ends end
/// the process, give up, or approximate. `gpus`: `NVIDIA GPUs`.
Result<> checkHasCode(const llvm::Module &module, llvm::StringRef own,
                      const std::string &gpus);

/// Errors of a back end, which else would end the process, while it lives.
class BackEndErrors {
public:
  explicit BackEndErrors(llvm::LLVMContext &context);
  ~BackEndErrors();
  BackEndErrors(const BackEndErrors &) = delete;

  /// Internal if there have been any.
  Result<> check(const std::string &gpus) const;

private:
  llvm::LLVMContext &context;
  std::unique_ptr<llvm::DiagnosticHandler> before;
  std::string errors;
};

/// Consumes `module`.
Result<std::string> runBackEnd(llvm::Module &module,
                               llvm::TargetMachine &machine,
                               llvm::CodeGenFileType type);

} // namespace costate::compiler
