#pragma once
/// Forward and reverse mode on kernel IR.

#include "autodiff/forward/Forward.h"
#include "base/ArraySection.h"
#include "costate/error.h"
#include "ir/Kernel.h"

#include "mlir/Support/LLVM.h"

namespace costate::autodiff {

/// What a derivative kernel expects of its caller.
struct Derivative {
  ir::KernelOp kernel;
  /// By argument of the primal: the gradient needs a value of this array that
  /// the kernel reads / that the kernel itself has stored.
  llvm::SmallVector<bool> needed, reloaded;
  /// By argument of the primal: the elements that the gradient needs.
  std::vector<ArraySection> neededSections;
};

/// By argument: the elements that `primal` may store or update.
std::vector<ArraySection> writtenSections(ir::KernelOp primal);

/// By argument: whether `primal` writes to it a value that varies with an
/// active array.
llvm::SmallVector<bool> activeWrites(ir::KernelOp primal,
                                     llvm::ArrayRef<bool> active);

/// Why there is no derivative; the diagnostics have been emitted.
struct Refusal {
  ErrorCode code = ErrorCode::NotDifferentiable;
};

/// Appends to the module of `primal` a kernel `<name>.grad` that takes the
/// arguments of `primal` and then, for each i with `active[i]`, the adjoint
/// array of argument i (attribute `costate.adjoint_of`). It adds to the
/// adjoints of what `primal` reads and consumes those of what it writes;
/// primal memory is not written. Final-state replay.
mlir::FailureOr<Derivative> differentiateReverse(ir::KernelOp primal,
                                                 llvm::ArrayRef<bool> active,
                                                 Refusal &refusal);

/// Appends `<name>.jvp`: the primal and its tangents in one, which takes the
/// arguments of `primal` and then, for each i with `active[i]`, the tangent
/// arrays of argument i, up to the order of `curves` (attribute
/// `costate.tangent_of`: the number of the argument whose tangents they are).
/// `primal` may itself be a derivative.
mlir::FailureOr<Derivative> differentiateForward(ir::KernelOp primal,
                                                 llvm::ArrayRef<bool> active,
                                                 Curves curves,
                                                 Refusal &refusal);

/// For deterministic kernels, whose ranges make additions at their end: refuses
/// a range that reads or stores elements of an array that it also adds to,
/// unless each iteration certainly has its own elements.
mlir::LogicalResult checkLateAdditions(ir::KernelOp kernel);

} // namespace costate::autodiff
