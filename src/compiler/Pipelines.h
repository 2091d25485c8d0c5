#pragma once
/// Every pipeline of the compiler, on one page.

#include <string>

namespace mlir {
class OpPassManager;
}

namespace costate::compiler {

struct Options;

/// Kernel IR of the primal and of functions that it calls. Multiply-add pairs
/// are contracted here and nowhere else: what a function computes has the same
/// bits in its place. `keepRanges`: work items are named by their indices.
void addFirstPasses(mlir::OpPassManager &passes, bool contract,
                    bool keepRanges);

/// What the primal says of its updates. Functions do not use what it updates.
void addUpdatePasses(mlir::OpPassManager &passes);

/// Both: kernel IR before anything is derived from it.
void addPrimalPasses(mlir::OpPassManager &passes, bool contract);

/// What the search for inf and NaN asks of the primal besides.
void addNamingPasses(mlir::OpPassManager &passes);

/// Kernel IR of a derivative.
void addDerivativePasses(mlir::OpPassManager &passes);

/// Kernel IR to the LLVM dialect, for this machine.
void addHostPasses(mlir::OpPassManager &passes, const Options &options);

/// What passes take into account of a GPU.
struct DevicePasses {
  std::string maths;    ///< see convert-kernel-to-llvm
  bool inlines = false; ///< see place-tapes
  unsigned lanes = 32;  ///< of a warp
};

/// Kernel IR to the LLVM dialect: functions of a device, and host code that
/// drives them.
void addDevicePasses(mlir::OpPassManager &passes, const Options &options,
                     const DevicePasses &device);

/// Registers the above as `primal`, `derivative`, `host` and `device`.
void registerPipelines();

} // namespace costate::compiler
