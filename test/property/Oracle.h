#pragma once
/// A random kernel on the reference interpreter.

#include "property/Arrays.h"

#include "compiler/Compiler.h"
#include "costate/kernel.h"

#include <map>
#include <optional>

namespace costate::property {

/// A run that the interpreter has refused.
struct Stopped {
  Failure failure;
  bool inPrimal = false;
};

class Oracle {
public:
  Oracle(const Kernel &kernel, const Inputs &inputs);

  /// Runs the kernel on `memory`.
  ir::InterpreterReport primal(Memory &memory, uint64_t order = 0);
  /// The same, and what becomes of `tangents`.
  void tangent(Memory &memory, Values &tangents);
  /// Runs the kernel on `memory`, and then its gradient on `adjoints`.
  ir::InterpreterReport gradient(Memory &memory, Values &adjoints);

  /// Why there is no gradient, if there is none.
  std::optional<Failure> refusal();
  /// Whether the gradient needs values that the kernel overwrites.
  bool overwrites();

private:
  using Result = costate::Result<compiler::Interpretable>;
  Result &code(compiler::Mode mode);
  /// `versions` are those that the recording primal fills.
  ir::InterpreterReport
  run(compiler::Mode mode, Memory &memory, Values *derived,
      std::map<std::pair<int, int>, ir::HostArray> &versions, uint64_t order);

  Kernel kernel; // keeps the program
  const Inputs &inputs;
  std::map<compiler::Mode, Result> codes;
};

} // namespace costate::property
