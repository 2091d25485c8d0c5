#pragma once
/// Which function computes what: one implementation per operation and type,
/// with the same bits in scalar code and in vectors of any width.
///
/// Most come from SLEEF, whose deterministic functions keep their bits over
/// widths. Operations for which its results are wrong somewhere (sinh, cosh,
/// asinh, acosh and log1p overflow early) or whose scalar form is several times
/// slower than libm's (pow, hypot, erf, erfc) use libm, and are never
/// vectorised.
///
/// GPUs have libclc, whose functions have the names of OpenCL's.

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace costate::conversion {

/// Families of functions, by what the device offers; vectors from SSE2 on.
enum class Maths { Libm, Libclc, SSE2, AVX2, AVX512 };
std::optional<Maths> parseMaths(llvm::StringRef name);
llvm::StringRef nameOf(Maths maths);

class MathLibrary {
public:
  explicit MathLibrary(Maths maths) : maths(maths) {}

  /// The function for an operation such as `costate.sin`, on f32 or f64; empty if
  /// there is none, as for operations that are instructions.
  std::string function(llvm::StringRef operation, bool isF64) const;

  /// Declares what the operations of `module` call, vector forms included.
  void declare(mlir::ModuleOp module) const;

private:
  struct Entry;
  static const Entry *find(llvm::StringRef operation);
  bool usesSleef(const Entry &entry) const;
  std::string vectorName(const Entry &entry, bool isF64, unsigned lanes) const;
  void declare(mlir::ModuleOp module, const Entry &entry, bool isF64) const;
  std::string declareVariants(mlir::ImplicitLocOpBuilder &builder,
                              const Entry &entry, bool isF64) const;
  llvm::SmallVector<unsigned> laneCounts(bool isF64) const;

  Maths maths;
};

} // namespace costate::conversion
