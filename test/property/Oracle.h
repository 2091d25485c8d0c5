#pragma once
/// A random kernel on the reference interpreter.

#include "property/Arrays.h"

#include "compiler/Compiler.h"

#include <map>
#include <optional>

namespace costate::property {

/// A run that the interpreter has refused.
struct Stopped {
  Failure failure;
  bool inPrimal = false;
};

/// The derivative arrays of a run: adjoints, tangents, tangents of adjoints.
using Derivatives =
    std::map<std::pair<runtime::Parameter::Role, uint32_t>, Values>;

class Oracle {
public:
  /// Functions like `sin` are those of compiled code, or of the host's libm.
  Oracle(std::shared_ptr<compiler::Program> program, const Inputs &inputs,
         bool compiledFunctions = true);

  /// Runs the kernel on `memory`.
  interpreter::InterpreterReport primal(Memory &memory, uint64_t order = 0);
  /// The same, and what becomes of `tangents`.
  void tangent(Memory &memory, Values &tangents);
  /// Runs the kernel on `memory`, and then its gradient on `adjoints`.
  interpreter::InterpreterReport gradient(Memory &memory, Values &adjoints);

  /// The derivative along `direction` of what `gradient` makes of the weights.
  Values hessianProduct(const Values &direction);
  /// The second derivative of the results along `direction`.
  Values curvature(const Values &direction);

  /// Why there is no gradient, if there is none.
  std::optional<Failure> refusal();
  /// Whether the gradient needs values that the kernel overwrites.
  bool overwrites();

private:
  struct State;
  using Result = costate::Result<compiler::Interpretable>;

  compiler::Derivation derivation(compiler::Mode mode, unsigned order) const;
  Result &code(compiler::Mode mode, unsigned order = 0);
  interpreter::InterpreterReport run(compiler::Mode mode, unsigned order,
                                     State &state, uint64_t workItems = 0);
  interpreter::InterpreterReport runGradient(unsigned order, State &state);

  std::shared_ptr<compiler::Program> program;
  const Inputs &inputs;
  bool compiledFunctions;
  std::map<std::pair<compiler::Mode, unsigned>, Result> codes;
};

} // namespace costate::property
