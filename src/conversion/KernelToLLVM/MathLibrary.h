#pragma once
/// Which function computes what: one implementation per operation and type,
/// with the same bits in scalar code and in vectors of any width.
///
/// CPUs with fused multiply-add have functions of our own for most of f32 and
/// some of f64 (src/compiler/HostMaths.c). Most others come from SLEEF, whose
/// deterministic functions keep their bits over widths. Operations for which
/// its results are wrong somewhere (sinh, cosh, asinh, acosh and log1p overflow
/// early) or whose scalar form is several times slower than libm's (pow, hypot,
/// erf, erfc) use libm, and are never vectorised.
///
/// GPUs have libclc, whose functions have the names of OpenCL's. NVIDIA's have
/// instructions besides that approximate some functions of f32.

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace costate::conversion {

/// Families of functions, by what the device offers; vectors from SSE2 on,
/// fused multiply-add from NEON on.
enum class Maths { Libm, Libclc, SSE2, NEON, AVX2, AVX512 };
std::optional<Maths> parseMaths(llvm::StringRef name);
llvm::StringRef nameOf(Maths maths);

/// Our own begin with it.
inline constexpr llvm::StringLiteral hostFunctionPrefix = "costate_host_";

/// `after * intrinsic(before * x)`
struct Approximation {
  llvm::StringRef intrinsic;
  double before = 1, after = 1;
};

class MathLibrary {
public:
  /// `approximates`: with instructions of the device, where it has some.
  explicit MathLibrary(Maths maths, bool approximates = false)
      : maths(maths), approximates(approximates) {}

  /// What stands for an operation on `type`; none if that is a function.
  std::optional<Approximation> approximation(llvm::StringRef operation,
                                             mlir::Type type) const;
  bool isForGpus() const { return maths == Maths::Libclc; }
  bool dividesInFull() const { return approximates && isForGpus(); }

  /// The function for an operation such as `costate.sin`, on f32 or f64; empty
  /// if there is none, as for operations that are instructions.
  std::string function(llvm::StringRef operation, bool isF64) const;

  /// The longest vectors, of at most `lanes`, that a function takes, 1 for
  /// scalars, and its name for them.
  std::pair<unsigned, std::string> piece(llvm::StringRef operation, bool isF64,
                                         unsigned lanes) const;

  /// Declares what the operations of `module` call, vector forms included.
  void declare(mlir::ModuleOp module) const;

private:
  struct Entry;
  static const Entry *find(llvm::StringRef operation);
  bool isOwn(const Entry &entry, bool isF64) const;
  bool usesSleef(const Entry &entry) const;
  bool hasVectors(const Entry &entry, bool isF64) const {
    return isOwn(entry, isF64) || usesSleef(entry);
  }
  std::string vectorName(const Entry &entry, bool isF64, unsigned lanes) const;
  void declare(mlir::ModuleOp module, const Entry &entry, bool isF64) const;
  std::string declareVariants(mlir::ImplicitLocOpBuilder &builder,
                              const Entry &entry, bool isF64) const;
  llvm::SmallVector<unsigned> laneCounts(const Entry &entry, bool isF64) const;

  Maths maths;
  bool approximates;
};

} // namespace costate::conversion
