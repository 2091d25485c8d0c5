#pragma once
/// Forward and reverse mode on kernel IR.

#include "autodiff/forward/Forward.h"
#include "base/ArraySection.h"
#include "costate/error.h"
#include "ir/Kernel.h"
#include "sizing/Plan.h"

#include "mlir/Support/LLVM.h"

namespace costate::autodiff {

/// What an argument held before a part of the primal (see partNumber).
struct Version {
  unsigned argument, part;
  bool operator==(const Version &) const = default;
};

/// A value is read and may be overwritten before the kernel ends.
struct Overwrite {
  mlir::Location read, write;
  std::string array; ///< what the user calls it
};

/// What a derivative kernel expects of its caller.
struct Derivative {
  ir::KernelOp kernel;
  /// What the gradient needs beside memory as the launch left it, in the order
  /// of its arguments, and the first reason for that.
  llvm::SmallVector<Version> versions;
  std::optional<Overwrite> overwrite;
  /// By version: the elements of it that the gradient reads.
  std::vector<ArraySection> versionSections;
  /// By argument of the primal: the gradient reads this array as the launch
  /// left it / elements of it that the kernel itself has stored.
  llvm::SmallVector<bool> needed, reloaded;
  /// By argument of the primal: the elements that it reads.
  std::vector<ArraySection> neededSections;
  /// See checkIntact; null if nobody has asked for it, or there is none.
  ir::KernelOp check;
};

/// By argument: the elements that `primal` may store or update.
std::vector<ArraySection> writtenSections(ir::KernelOp primal);

/// By argument: whether `primal` writes to it a value that varies with an
/// active array.
llvm::SmallVector<bool> activeWrites(ir::KernelOp primal,
                                     llvm::ArrayRef<bool> active);

/// By argument that is not active: where `primal` loads a value from it that
/// what it writes to active arrays varies with, if anywhere.
llvm::SmallVector<std::optional<mlir::Location>>
passedOnLoads(ir::KernelOp primal, llvm::ArrayRef<bool> active);

/// Why there is no derivative; the diagnostics have been emitted.
struct Refusal {
  ErrorCode code = ErrorCode::NotDifferentiable;
};

/// Which loops run again from checkpoints.
struct Cuts {
  /// Whether the forward sweep tells how much the reverse sweep takes
  /// (`tape.claim`), since a tape is measured before it is there.
  bool measured = false;
  /// Not those of a work item that stand in no other loop: its tape is in
  /// tiles, which run them again.
  bool tiles = false;
  /// Also others, where they would take more of the tape than `tape.budget`.
  bool byBudget = false;
};

/// Functions that `primal` calls become a part of it, but for those with a
/// gradient of their own (FunctionGradient.h) in reverse mode.
///
/// Appends to the module of `primal` a kernel `<name>.grad` that takes the
/// arguments of `primal` and then, for each i with `active[i]`, the adjoint
/// array of argument i (attribute `costate.adjoint_of`). It adds to the
/// adjoints of what `primal` reads and consumes those of what it writes;
/// primal memory is not written. Needed values come from memory as the launch
/// left it; where that has been overwritten, from further arrays that hold
/// versions (`costate.version_of`), or scratch arrays (`costate.scratch_of`).
/// Where it takes a run to tell whose elements work items use, it finds that
/// out first, unless somebody else looks for races.
enum class Owners { Asked, Watched };
/// Whether there is to be a kernel, too, that finds out whether memory is as
/// the gradient needs it; and whether what it finds has to have the same bits,
/// or may be rounded otherwise.
enum class Checks { None, OfBits, UpToRounding };
/// What iterations of a serial loop around ranges overwrite, of which no
/// version is kept: refused, or read from memory as it is, as only a check
/// justifies.
enum class Unkept { Refused, FromMemory };
/// Loops that are marked `costate.checkpoints` run again from checkpoints.
mlir::FailureOr<Derivative>
differentiateReverse(ir::KernelOp primal, llvm::ArrayRef<bool> active,
                     Refusal &refusal, Owners owners = Owners::Asked,
                     Cuts cuts = {}, const sizing::Policy &policy = {},
                     Checks checks = Checks::None,
                     Unkept unkept = Unkept::Refused);

/// Appends `<name>.record`, which is `primal` and stores `versions` into
/// further arguments.
ir::KernelOp recordVersions(ir::KernelOp primal,
                            llvm::ArrayRef<Version> versions);

/// Emits the error that memory does not hold a needed value any more.
void refuse(const Overwrite &overwrite);
/// The same without a way out, which the caller adds.
mlir::InFlightDiagnostic emitOverwritten(const Overwrite &overwrite);

/// Appends `<name>.jvp`: the primal and its tangents in one, which takes the
/// arguments of `primal` and then, for each i with `active[i]`, the tangent
/// arrays of argument i, up to the order of `curves` (attribute
/// `costate.tangent_of`: the number of the argument whose tangents they are).
/// `primal` may itself be a derivative.
mlir::FailureOr<Derivative> differentiateForward(ir::KernelOp primal,
                                                 llvm::ArrayRef<bool> active,
                                                 Curves curves,
                                                 Refusal &refusal);

/// For kernels with `fast_math`: refuses minima and maxima that elements of
/// `active` arrays take, since their gradient compares bits.
mlir::LogicalResult checkExactExtrema(ir::KernelOp primal,
                                      llvm::ArrayRef<bool> active);

/// For deterministic kernels, whose ranges make additions at their end: refuses
/// a range that reads or stores elements of an array that it also adds to,
/// unless each work item certainly has its own elements.
mlir::LogicalResult checkLateAdditions(ir::KernelOp kernel);

/// For deterministic kernels: refuses atomics in ranges whose result, or what
/// they leave, is left to chance.
mlir::LogicalResult checkFixedFetches(ir::KernelOp kernel);

} // namespace costate::autodiff
