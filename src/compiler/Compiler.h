#pragma once
/// From a kernel to code that the runtime can run. No LLVM type in sight.

#include "base/Result.h"
#include "ir/interpreter/Interpreter.h"
#include "runtime/KernelCode.h"
#include "syntax/Syntax.h"

#include <memory>
#include <string>
#include <vector>

namespace costate::compiler {

struct Options {
  bool debug = false; ///< checks of indices and races, in derivatives too
  bool deterministic = false; ///< sums in an order that no thread count changes
  bool fastMath = false;      ///< allow reassociation and contraction anywhere
};

/// Recording: the primal, which also fills the versions of arrays that the
/// gradient with the same active arguments asks for.
enum class Mode { Primal, Gradient, Tangent, Recording };

/// A kernel for the reference interpreter, and what is known of its code.
struct Interpretable {
  runtime::KernelCode code;    ///< without an entry
  ir::Interpreter interpreter; ///< its arguments are in the order of
                               ///< `code.parameters`
};

/// A kernel in kernel IR, from which each mode is compiled on demand. Safe to
/// use from several threads.
class Program {
public:
  static Result<std::shared_ptr<Program>> lower(const syntax::Kernel &kernel,
                                                Options options);
  /// `kernel` may be empty if `text` has exactly one kernel.
  static Result<std::shared_ptr<Program>> parse(const std::string &text,
                                                const std::string &fileName,
                                                const std::string &kernel,
                                                Options options);
  virtual ~Program() = default;

  virtual const std::string &name() const = 0;
  virtual const std::vector<syntax::Argument> &arguments() const = 0;

  /// Compiles for this machine's CPU. `active[i]` says that array argument i
  /// comes with an adjoint (Gradient) or tangent (Tangent) array; empty for
  /// Primal. Texts of failures name the user's lines. Not cached: each call
  /// compiles.
  virtual Result<runtime::KernelCode>
  compile(Mode mode, const std::vector<bool> &active) = 0;

  /// The IR that `compile` compiles, for the reference interpreter. Bits of
  /// functions like `sin` are those of the host's libm, or of compiled code.
  virtual Result<Interpretable> interpret(Mode mode,
                                          const std::vector<bool> &active,
                                          bool compiledFunctions = false) = 0;

  /// Kernel IR, or with `llvm` the optimised LLVM IR, as text.
  virtual Result<std::string> print(Mode mode, const std::vector<bool> &active,
                                    bool llvm) = 0;
};

} // namespace costate::compiler
