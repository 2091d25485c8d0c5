#pragma once
/// Which memory the loads of a gradient read: as the launch left it, as it was
/// before a part of the kernel, or a copy of that on which the forward sweep
/// repeats its writes.

#include "autodiff/Differentiate.h"
#include "autodiff/replay/Replay.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"

namespace costate::autodiff {

/// Finds the versions that a gradient needs, in rounds: mark a fresh copy of
/// the primal, differentiate it, resolve; until all are resolved.
class Versions {
public:
  explicit Versions(Unkept unkept) : unkept(unkept) {}

  /// Numbers the loads of `kernel` and marks the accesses that its forward
  /// sweep has to make on scratch arrays, as far as is known.
  void mark(ir::KernelOp kernel) const;

  /// Chooses what each needed load of `primal`, a copy of the marked kernel,
  /// reads. False if that asks for another round. Fails if it had to be a
  /// version of each iteration of a loop around ranges, and memory may not
  /// stand in for them.
  mlir::FailureOr<bool> resolve(ir::KernelOp primal,
                                llvm::ArrayRef<ir::LoadOp> needed,
                                Refusal &refusal);

  /// Gives `gradient` the arrays that its loads need, and lets them read those.
  void redirect(ir::KernelOp gradient);

  /// Whether `load`, of the marked kernel, is of a scratch array.
  bool isRepeated(ir::LoadOp load) const;

  llvm::ArrayRef<Version> all() const { return versions; }
  /// By version: the elements of it that are read. Known after redirect().
  std::vector<ArraySection> sections() const { return complete(reads); }
  /// The loads that read memory as the launch left it.
  llvm::ArrayRef<ir::LoadOp> final() const { return finalLoads; }
  const std::optional<Overwrite> &firstOverwrite() const { return overwrite; }

private:
  using Place = std::pair<unsigned, unsigned>; ///< argument and part

  unsigned add(Place place);
  mlir::Value arrayOf(ir::KernelOp gradient, unsigned version);
  mlir::Value scratchOf(ir::KernelOp gradient, unsigned argument);
  void fillScratch(ir::KernelOp gradient);

  const Unkept unkept;
  llvm::DenseSet<Place> scratch;
  llvm::DenseSet<Place> written;                ///< by the primal
  llvm::DenseMap<unsigned, unsigned> versionOf; ///< by the number of a load
  llvm::SmallVector<Version> versions;
  std::vector<std::optional<ArraySection>> reads; ///< by version
  llvm::SmallVector<ir::LoadOp> finalLoads;
  std::optional<Overwrite> overwrite;
  llvm::DenseMap<unsigned, mlir::Value> versionArrays, scratchArrays;
};

/// The loads of `marked` whose values `gradient`, made from a copy of it, still
/// reads; in the order of the primal.
llvm::SmallVector<ir::LoadOp> neededLoads(ir::KernelOp marked,
                                          ir::KernelOp gradient);

} // namespace costate::autodiff
