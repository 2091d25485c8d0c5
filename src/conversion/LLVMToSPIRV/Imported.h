#pragma once
/// LLVM IR of kernels as MLIR's LLVM dialect, and what its memory holds: where
/// code for other languages starts.

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Interfaces/DataLayoutInterfaces.h"
#include "llvm/ADT/StringMap.h"

#include <memory>
#include <string>

namespace costate::conversion {

/// In a context of its own, with its own handlers.
class Imported {
public:
  explicit Imported(std::unique_ptr<llvm::Module> module);

  mlir::MLIRContext context;
  std::string errors;                       ///< the first one since then
  mlir::OwningOpRef<mlir::ModuleOp> module; ///< null: see `errors`
};

/// Where global variables in shared memory start.
using SharedLayout = llvm::StringMap<uint64_t>;

/// What a launch adds comes last. `bytes`: of all others.
SharedLayout layOut(mlir::ModuleOp module, uint64_t &bytes);

/// The bytes of the table of constants that `op` is the address of. Emits an
/// error if these are no numbers.
mlir::FailureOr<std::string> tableBytes(const mlir::DataLayout &layout,
                                        mlir::LLVM::AddressOfOp op);

/// Whether a launch starts it.
bool isKernel(mlir::LLVM::LLVMFuncOp function);

} // namespace costate::conversion
