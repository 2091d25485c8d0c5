#pragma once
/// Does memory, as it is now, hold what a gradient needs of a launch?

#include "ir/Kernel.h"

namespace costate::autodiff {

/// A load whose value a gradient needs.
struct NeededLoad {
  ir::LoadOp load;
  /// The gradient makes the writes of its part again, on a scratch array, and
  /// loads from that.
  bool isRepeated;
};

/// Appends `<name>.check` to the module of `marked`, a copy of the primal that
/// a gradient was made from: it runs what the values of the loads `needed`
/// follow from once more, on scratch arrays that begin as memory is, and ends
/// with `CannotReplay` unless all of this holds:
///
/// - Each of these loads gets the bits that memory holds there, or what its
///   part has stored before. With `toleratesRounding`, as where sums come in
///   any order, floats may differ a little.
/// - With `overwrites`, which says that the kernel may overwrite what it has
///   read: no element is read before the launch first writes it, but for those
///   that it does not write.
/// - Which elements are used follows from none that are read so.
///
/// Fails without a diagnostic where that cannot be told.
mlir::FailureOr<ir::KernelOp>
checkIntact(ir::KernelOp marked, unsigned arguments, llvm::StringRef name,
            llvm::ArrayRef<NeededLoad> needed, bool overwrites,
            bool toleratesRounding);

} // namespace costate::autodiff
