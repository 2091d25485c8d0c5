#pragma once
/// Runs kernel IR of any stage directly: the oracle that compiled code is held
/// against. No LLVM type in sight.

#include "base/Result.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace costate::ir {
class KernelOp;
}

namespace costate::interpreter {

/// Row-major elements in their natural size; a bool takes one byte.
struct HostArray {
  std::vector<int64_t> extents;
  std::vector<std::byte> bytes;
};

/// One argument of a kernel: an array, or a scalar.
struct InterpreterArgument {
  HostArray *array = nullptr;
  int64_t integer = 0;
  double real = 0;
};

struct InterpreterOptions {
  /// 0: the work items of a range in order; else the seed of a random order.
  uint64_t order = 0;
  /// 0: all is rounded to nearest; else additions whose order is open, those to
  /// elements that work items share and those of a range's sums, are rounded
  /// stochastically, from this seed: what depends on their order spreads.
  uint64_t roundings = 0;
  /// A push beyond this is OutOfMemory.
  size_t tapeBytes = SIZE_MAX;
  /// What `tape.budget` says, if not `tapeBytes`.
  std::optional<size_t> budget = std::nullopt;
  /// As where a tape is measured before: a reverse sweep that takes more than
  /// the forward sweep has told is a defect.
  bool measured = false;
  /// Operations that may run; one more is KernelFailed.
  uint64_t steps = UINT64_MAX;
  /// Refuse, as Error(Race), an element that one work item of a range stores
  /// and another one uses, or that one updates and another one loads.
  bool races = true;
};

struct InterpreterReport {
  uint64_t steps = 0;       ///< operations that ran
  uint64_t pushes = 0;      ///< records that were pushed
  size_t peakTapeBytes = 0; ///< of the serial tape and a work item's together
  /// The largest magnitude that an addition of floats has seen: sums much
  /// smaller than this have lost digits.
  double largestAddend = 0;
};

/// The function that computes an operation like `costate.sin`, over float or
/// over double; null: the one of the host's libm.
using Functions = void *(*)(std::string_view operation, bool isF64);

struct Code;

/// A kernel in a form that runs fast many times; it keeps nothing of the IR.
/// Bits of functions like `sin` are those of `functions`; everything else is
/// exact. Failures change the arrays up to where they happened.
class Interpreter {
public:
  /// Fails with the name of an operation that it does not know.
  static Result<Interpreter> make(ir::KernelOp kernel,
                                  Functions functions = nullptr);

  /// May be called from several threads.
  Result<InterpreterReport> run(std::span<InterpreterArgument> arguments,
                                const InterpreterOptions &options = {}) const;

private:
  explicit Interpreter(std::shared_ptr<const Code> code)
      : code(std::move(code)) {}

  std::shared_ptr<const Code> code;
};

} // namespace costate::interpreter
