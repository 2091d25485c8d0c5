#pragma once
/// Kernels and their derivatives on the reference interpreter.

#include "autodiff/Differentiate.h"
#include "fuzz/Memory.h"

namespace costate::fuzz {

/// A kernel, or a derivative of one, that can be run.
class Launchable {
public:
  static Result<Launchable> make(ir::KernelOp kernel);

  /// `memory` has an entry for each argument of the kernel.
  Result<interpreter::InterpreterReport>
  run(Memory &memory, const interpreter::InterpreterOptions &options) const;

private:
  Launchable(interpreter::Interpreter interpreter, ir::KernelOp kernel);

  interpreter::Interpreter interpreter;
  std::vector<bool> isArray; ///< by argument
};

/// Arrays by the argument of a kernel that they belong to.
using Arrays = std::vector<interpreter::HostArray>;

/// What an argument held before a part of a kernel.
struct Recorded {
  autodiff::Version version;
  interpreter::HostArray array;
};

/// What `derived` is launched on: `memory`, which is for the kernel that it was
/// derived from, and for each argument after that what its attributes ask for,
/// of `extra` (adjoints or tangents), of `versions`, or garbage.
Memory extended(const Memory &memory, ir::KernelOp derived, const Arrays &extra,
                llvm::ArrayRef<Recorded> versions = {});

/// Adjoints or tangents in `memory`, on which `derived` was launched, by the
/// first `count` arguments.
Arrays extraOf(const Memory &memory, ir::KernelOp derived, size_t count);

/// The versions in `memory`, on which `derived` was launched.
std::vector<Recorded> versionsOf(const Memory &memory, ir::KernelOp derived);

/// NaN, large integers.
void fillWithGarbage(interpreter::HostArray &array, mlir::Type element);

} // namespace costate::fuzz
