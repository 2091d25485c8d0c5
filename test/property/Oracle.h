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

/// How the interpreter runs what any order of work items may run: 0, or seeds.
struct Variant {
  uint64_t order = 0;     ///< of work items
  uint64_t roundings = 0; ///< of sums over them
};

class Oracle {
public:
  /// Functions like `sin` are those of compiled code, or of the host's libm.
  Oracle(std::shared_ptr<compiler::Program> program, const Inputs &inputs,
         bool compiledFunctions = true);

  /// Runs the kernel on `memory`.
  interpreter::InterpreterReport primal(Memory &memory, Variant variant = {});
  /// The same, and what becomes of `tangents`.
  void tangent(Memory &memory, Values &tangents, Variant variant = {});
  /// Runs the kernel on `memory`, and then its gradient on `adjoints`.
  interpreter::InterpreterReport gradient(Memory &memory, Values &adjoints,
                                          Variant variant = {});

  /// The derivative along `direction` of what `gradient` makes of the weights.
  Values hessianProduct(const Values &direction, Variant variant = {});
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
                                     State &state);
  interpreter::InterpreterReport runGradient(unsigned order, State &state);

  std::shared_ptr<compiler::Program> program;
  const Inputs &inputs;
  bool compiledFunctions;
  std::map<std::pair<compiler::Mode, unsigned>, Result> codes;
};

} // namespace costate::property
