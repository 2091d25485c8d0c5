#pragma once
/// What outlined functions know of the runtime: its functions, the worker, the
/// table of source places, and arrays as base address and extents.

#include "conversion/KernelToLLVM/Passes.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace costate::conversion {

inline constexpr llvm::StringLiteral sitesAttr = "costate.sites";
inline constexpr llvm::StringLiteral argumentAttr = "costate.argument";

/// The words of a worker (see runtime/KernelCode.h): top of its tape, end of the
/// memory that it has, base.
inline constexpr int64_t tapeEndSlot = 1, tapeBaseSlot = 2;

/// The worker of the function around `op`.
mlir::Value workerOf(mlir::Operation *op);

/// Base address and extents behind `array`.
struct ArrayView {
  explicit ArrayView(mlir::Value array);
  mlir::Value base;
  mlir::ValueRange extents;
  int64_t argument; ///< number of the primal argument
};

/// Makes `base` and `extents` an array again.
mlir::Value castToArray(mlir::ImplicitLocOpBuilder &builder,
                        mlir::ValueRange parts, mlir::Type type,
                        int64_t argument);

/// Calls of the functions of runtime/KernelCode.h; declares them as needed.
class Runtime {
public:
  explicit Runtime(mlir::ModuleOp module);
  /// Writes the table of sites back.
  ~Runtime();

  /// The number of the source place of `loc`; -1 for none.
  int64_t site(mlir::Location loc);

  void callRange(mlir::ImplicitLocOpBuilder &builder, mlir::ValueRange args);
  /// Whether the reverse sweep is to be skipped, as an i1.
  mlir::Value callDryRun(mlir::ImplicitLocOpBuilder &builder,
                         mlir::Value worker);
  void callTapeGrow(mlir::ImplicitLocOpBuilder &builder, mlir::Value worker,
                    int64_t bytes);
  void callStepZero(mlir::ImplicitLocOpBuilder &builder, mlir::Value worker);
  void callIndexError(mlir::ImplicitLocOpBuilder &builder, mlir::Value worker,
                      int64_t argument, int64_t dim, mlir::Value index,
                      mlir::Value extent);
  /// Declares `costate_add_later_f32` and `_f64`.
  void declareAddLater();

private:
  struct Traits {
    bool cold = false, noReturn = false, readsOnly = false;
  };
  mlir::LLVM::LLVMFuncOp declare(llvm::StringRef name, mlir::Type result,
                                 mlir::TypeRange params, Traits traits);

  mlir::ModuleOp module;
  llvm::SmallVector<mlir::Attribute> sites;
  mlir::Type i32, i64, pointer, none;
};

mlir::Value constant(mlir::ImplicitLocOpBuilder &builder, int64_t value);

} // namespace costate::conversion
