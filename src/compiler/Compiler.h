#pragma once
/// From a kernel to code that the runtime can run. No LLVM type in sight.

#include "base/Calls.h"
#include "base/Result.h"
#include "code/KernelCode.h"
#include "interpreter/Interpreter.h"
#include "syntax/Syntax.h"

#include <memory>
#include <string>
#include <vector>

namespace costate::cache {
class Store;
}

namespace costate::compiler {

struct Options {
  bool debug = false; ///< checks of indices and races, in derivatives too
  bool deterministic = false; ///< sums in an order that no thread count changes
  bool fastMath = false;      ///< allow reassociation and contraction anywhere
  bool findNan = false;       ///< stop where inf or NaN arise
  bool contract = true; ///< fuse products with sums, where the processor does
  Calls calls = wantedCalls();
  /// Work items of a CPU that are lanes of a vector, a power of 2 up to 64; 0:
  /// as many as pay.
  unsigned lanes = 0;
};

/// Recording: the primal, which also fills the versions of arrays that the
/// gradient with the same active arguments asks for. Check: ends with
/// CannotReplay unless memory is as that gradient needs it.
enum class Mode { Primal, Gradient, Tangent, Recording, Check };

/// What to compile of a kernel.
struct Derivation {
  Mode mode = Mode::Primal; ///< not Tangent
  /// It also computes derivatives along a curve, of the 1st to this order.
  unsigned order = 0;
  /// Curves at once, for which tangent arrays have an outer dimension. 0: one
  /// curve, without that dimension.
  unsigned directions = 0;
  /// By argument: it comes with an adjoint array, with tangent arrays.
  std::vector<bool> adjoint, tangent;
  /// Of what device: DeviceInfo::target.
  std::string target = "cpu";
  /// Instead of Options::lanes; 0: as those say.
  unsigned lanes = 0;
  /// A gradient whose loops save what the tape has room for, and run the rest
  /// again. For a CPU.
  bool byBudget = false;
  /// A gradient, or what checks one, that reads memory as it is where there are
  /// no versions.
  bool fromMemory = false;

  Derivation() = default;
  /// `active`: the adjoint flags, or for Tangent, which means order 1, those of
  /// the tangents.
  Derivation(Mode mode, const std::vector<bool> &active)
      : mode(mode == Mode::Tangent ? Mode::Primal : mode),
        order(mode == Mode::Tangent) {
    (mode == Mode::Tangent ? tangent : adjoint) = active;
  }
  bool operator==(const Derivation &) const = default;
  auto operator<=>(const Derivation &) const = default;
};

/// A kernel for the reference interpreter, and what is known of its code.
struct Interpretable {
  runtime::KernelCode code;             ///< without an entry
  interpreter::Interpreter interpreter; ///< its arguments are in the order of
                                        ///< `code.parameters`
};

/// A kernel in kernel IR, from which each mode is compiled on demand. Safe to
/// use from several threads.
class Program {
public:
  /// What `store` holds is not made again.
  static Result<std::shared_ptr<Program>>
  lower(syntax::Kernel kernel, Options options,
        std::shared_ptr<cache::Store> store = nullptr);
  /// `kernel` may be empty if `text` has exactly one kernel.
  static Result<std::shared_ptr<Program>>
  parse(const std::string &text, const std::string &fileName,
        const std::string &kernel, Options options,
        std::shared_ptr<cache::Store> store = nullptr);
  virtual ~Program() = default;

  virtual const std::string &name() const = 0;
  virtual const std::vector<syntax::Argument> &arguments() const = 0;

  /// Compiles for a device of this machine. Texts of failures name the user's
  /// lines. Each call compiles, or takes what the store holds.
  virtual Result<runtime::KernelCode> compile(const Derivation &derivation) = 0;
  Result<runtime::KernelCode> compile(Mode mode,
                                      const std::vector<bool> &active) {
    return compile(Derivation(mode, active));
  }

  /// The IR that `compile` compiles, for the reference interpreter. Bits of
  /// functions like `sin` are those of the host's libm, or of compiled code.
  virtual Result<Interpretable> interpret(const Derivation &derivation,
                                          bool compiledFunctions = false) = 0;
  Result<Interpretable> interpret(Mode mode, const std::vector<bool> &active,
                                  bool compiledFunctions = false) {
    return interpret(Derivation(mode, active), compiledFunctions);
  }

  /// Kernel IR, or with `llvm` the optimised LLVM IR, as text.
  virtual Result<std::string> print(const Derivation &derivation,
                                    bool llvm) = 0;
  Result<std::string> print(Mode mode, const std::vector<bool> &active,
                            bool llvm) {
    return print(Derivation(mode, active), llvm);
  }
};

} // namespace costate::compiler
