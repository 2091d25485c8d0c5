#pragma once
/// Kernels: compiled on first use, run on the device of their arguments.

#include "costate/array.h"
#include "costate/detail/shared.h"
#include "costate/trace.h"

#include <array>
#include <concepts>
#include <memory>
#include <source_location>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace costate {

/// What Kernel::grad does where it is not certain that memory still holds what
/// the launch has read and written.
enum class Gradients {
  Checked,   ///< runs the launch again beside, and compares
  Unchecked, ///< takes memory as it is
};

struct KernelOptions {
  /// Checks every index, in derivatives too: Error(OutOfRange) instead of
  /// undefined behaviour; and that work items of a range do not get in each
  /// other's way: Error(Race). The environment variable COSTATE_DEBUG=1
  /// switches it on for all kernels.
  bool debug = false;
  /// Results are the same to the last bit for any number of threads.
  bool deterministic = false;
  /// Allows reassociation, contraction and less exact functions of `float`.
  bool fast_math = false;
  /// Stops a launch at the first operation that gives inf or NaN for finite
  /// operands, in derivatives too: Error(NotFinite). The environment variable
  /// COSTATE_FIND_NAN=1 switches it on for all kernels.
  bool find_nan = false;
  /// On a CPU: how many work items of a range are lanes of a vector, wherever a
  /// range can have lanes: a power of 2 up to 64; 0: what pays. Anything else
  /// is Error(BadKernel). Values do not depend on it. The environment variable
  /// COSTATE_LANES sets it for all kernels that leave it at 0.
  int lanes = 0;
  /// Bytes that the tapes of a gradient may take, of all threads together, on
  /// a GPU besides its on-chip memory; loops then run again what does not fit.
  /// 0: as the device says (DeviceOptions::tape_budget).
  size_t tape_budget = 0;
  Gradients gradients = Gradients::Checked;
};

/// What a kernel declares for one of its arguments.
struct ArgumentType {
  DType dtype;
  int rank; ///< 0..8, or -1 for a scalar
};

namespace detail {

struct KernelImpl;

enum class Mode : uint8_t { Primal, Gradient, Tangent, Recording, Check };

/// A kernel or its gradient, and of that so many derivatives along a curve.
struct Chain {
  Mode mode = Mode::Primal; ///< Primal or Gradient
  unsigned order = 0;

  constexpr Chain() = default;
  constexpr Chain(Mode mode)
      : mode(mode == Mode::Tangent ? Mode::Primal : mode),
        order(mode == Mode::Tangent) {}
  constexpr bool operator==(const Chain &) const = default;
};

/// One argument of a launch; refers to the array, so it must not outlive it.
struct ArgumentValue {
  enum class Kind : uint8_t { Array, Bool, Signed, Unsigned, Float };

  ArgumentValue(const AnyArray &array) : kind(Kind::Array), array(&array) {}
  template <HostNumber T> ArgumentValue(T value) {
    if constexpr (std::is_same_v<T, bool>) {
      kind = Kind::Bool;
      integer = value;
    } else if constexpr (!std::is_integral_v<T>) {
      kind = Kind::Float;
      real = static_cast<double>(value);
    } else if constexpr (std::is_signed_v<T>) {
      kind = Kind::Signed;
      integer = static_cast<uint64_t>(static_cast<int64_t>(value));
    } else {
      kind = Kind::Unsigned;
      integer = static_cast<uint64_t>(value);
    }
  }

  Kind kind;
  uint32_t number = 0; ///< that of the caller's argument, from 1; 0: its own
  const AnyArray *array = nullptr;
  uint64_t integer = 0; ///< Bool, Unsigned; Signed in two's complement
  double real = 0;      ///< Float
};

} // namespace detail

namespace detail {

template <class A>
concept Argument = std::is_convertible_v<const A &, ArgumentValue>;

/// Appends `argument`; of vectors, matrices and structs all numbers, in order;
/// of an array of structs with members of several types one array for each.
template <class A>
void appendArgument(std::vector<ArgumentValue> &values, const A &argument) {
  if constexpr (Argument<A>)
    values.push_back(ArgumentValue(argument));
  else if constexpr (requires { argument.costateEach([](auto &&...) {}); })
    argument.costateEach([&](const auto &one) { appendArgument(values, one); });
  else if constexpr (requires { std::tuple_size<A>::value; })
    for (const auto &one : argument)
      appendArgument(values, one);
  else
    static_assert(Argument<A>,
                  "arguments of a kernel are arrays, numbers, std::arrays of "
                  "numbers, and structs that COSTATE_STRUCT has registered");
}

template <class F, class... A>
decltype(auto) withArguments(const F &use, const A &...arguments) {
  if constexpr ((Argument<A> && ...)) {
    const std::array<ArgumentValue, sizeof...(A)> values = {
        ArgumentValue(arguments)...};
    return use(std::span<const ArgumentValue>(values));
  } else {
    std::vector<ArgumentValue> values;
    uint32_t number = 0;
    auto append = [&](const auto &argument) {
      size_t first = values.size();
      appendArgument(values, argument);
      ++number;
      for (size_t i = first; i < values.size(); ++i)
        values[i].number = number;
    };
    (append(arguments), ...);
    return use(std::span<const ArgumentValue>(values));
  }
}

} // namespace detail

/// First argument of Kernel::grad: the arrays hold what they held before the
/// launch whose gradient is wanted.
struct InitialState {};
inline constexpr InitialState initial_state;

/// A kernel. Immutable and safe to launch from several threads; copies share
/// everything, compiled code included. Arguments of a launch are arrays, and
/// C++ numbers for scalars: a number must be exact in the declared type, except
/// that a real number is rounded to it. Vectors, matrices
/// and structs are std::arrays and Host<C>.
///
/// All launches throw Error(BadArgument) for a wrong number, kind, dtype, rank
/// or device of arguments and for overlapping written arguments;
/// Error(OutOfMemory), Error(OutOfRange), Error(Race), Error(NotFinite) and
/// Error(KernelFailed) if the run fails.
class Kernel {
public:
  Kernel() = default;
  explicit Kernel(std::shared_ptr<detail::KernelImpl> impl,
                  detail::Chain chain = {})
      : impl(std::move(impl)), chain(chain) {}

  /// A kernel from kernel IR as text. `name` chooses one of several kernels;
  /// `file` is for messages. Error(BadKernel) if it does not parse or verify.
  static Kernel from_ir(const std::string &text, const std::string &name = "",
                        KernelOptions options = {},
                        const std::string &file = "<kernel>");

  /// Runs the kernel.
  template <class... A> void operator()(const A &...arguments) const {
    launch(detail::Mode::Primal, arguments...);
  }

  /// Reverse mode, at the current contents of the arguments: adds to `.grad()`
  /// of the arrays that the kernel reads, consumes `.grad()` of those that it
  /// writes. Leaves all other memory as it is. Arrays without gradient that are
  /// only read count as constants. If it runs out of memory, no gradient has
  /// changed.
  ///
  /// Error(MissingGradient) if no array has a gradient, or one that is written
  /// with a differentiable value has none. Error(NotDifferentiable), and
  /// Error(CannotReplay) if values that the derivative needs have been
  /// overwritten; the text names the lines.
  template <class... A> void grad(const A &...arguments) const {
    launch(detail::Mode::Gradient, arguments...);
  }

  /// The same from the state before the launch, for every kernel: also for
  /// those that overwrite what their gradient needs. Runs the kernel, reverses
  /// it, and leaves what the kernel wrote as it was before. Needs memory for a
  /// copy of all arrays that the kernel writes, and of the versions that it
  /// overwrites.
  template <class... A> void grad(InitialState, const A &...arguments) const {
    launch(initial_state, detail::Mode::Gradient, arguments...);
  }

  /// Forward mode: runs the kernel and pushes `.dual()` through it; `=`
  /// overwrites
  /// `.dual()`, `+=` adds to it. Arrays whose tangents have several directions
  /// (ArrayOptions) get them all, for one run of the kernel. Errors like those
  /// of grad(), and Error(BadArgument) for arrays whose tangents have different
  /// numbers of directions.
  template <class... A> void jvp(const A &...arguments) const {
    launch(detail::Mode::Tangent, arguments...);
  }

  /// grad() and jvp() as kernels with the same arguments: `k.gradient()(a...)`
  /// is `k.grad(a...)`, and `k.tangent()(a...)` is `k.jvp(a...)`. They have
  /// derivatives themselves, along the curve whose derivative is `dual()`, that
  /// is, `x.dual()` at the point x and `x.grad().dual()` at the point x.grad():
  ///
  /// - `k.gradient().jvp(a...)` does what grad() does, and to `.grad().dual()`
  /// of
  ///   each array what grad() does to `.grad()`: where `.grad().dual()` of the
  ///   outputs is 0, it adds the product of the Hessian with `.dual()`.
  /// - `k.tangent().jvp(a...)` does what jvp() does, and to `.dual().dual()`
  /// what
  ///   jvp() does to `.dual()`: second derivatives along the curve.
  /// - and so on: `k.gradient().tangent().jvp(a...)`, ...
  ///
  /// Where grad() needs what the last launch left (Error(CannotReplay)), the
  /// derivative of gradient() needs the tangents that jvp() left there.
  /// Error(NotDifferentiable) for the gradient of a gradient or of a tangent.
  ///
  /// A derived gradient takes `initial_state` as grad() does:
  /// `k.gradient().jvp(initial_state, a...)`. Error(BadArgument) otherwise.
  Kernel gradient() const { return derived(detail::Mode::Gradient); }
  Kernel tangent() const { return derived(detail::Mode::Tangent); }

  template <class... A>
  void operator()(InitialState, const A &...arguments) const {
    launch(initial_state, detail::Mode::Primal, arguments...);
  }
  template <class... A> void jvp(InitialState, const A &...arguments) const {
    launch(initial_state, detail::Mode::Tangent, arguments...);
  }

  /// The same with arguments that are known only at run time. Each number of a
  /// vector, matrix or struct, and each part of an array of structs, is one.
  void launch_with(detail::Mode mode,
                   std::span<const detail::ArgumentValue> arguments) const;
  void launch_with(InitialState, detail::Mode mode,
                   std::span<const detail::ArgumentValue> arguments) const;

  const std::string &name() const;
  std::vector<ArgumentType> arguments() const;

  /// For people: signature, what has been compiled and how long that took, its
  /// size; of a gradient what each line of the source saves and what is
  /// computed again, the tape of the last launch, and copies of arrays.
  std::string report() const;

  /// The kernel, its gradient or its tangent as kernel IR, which costate-opt
  /// and costate-run read; with `llvm` as the LLVM IR that machine code is made
  /// of. Every float array counts as active. Throws like a launch in that mode.
  std::string ir(detail::Mode mode = detail::Mode::Primal,
                 bool llvm = false) const;

  /// Error(BadArgument) if the kernel is empty.
  const std::shared_ptr<detail::KernelImpl> &shared() const {
    return impl.get();
  }
  /// What is derived from shared().
  detail::Chain derivation() const { return chain; }

private:
  Kernel derived(detail::Mode mode) const;

  template <class... A>
  void launch(detail::Mode mode, const A &...arguments) const {
    detail::withArguments([&](auto values) { launch_with(mode, values); },
                          arguments...);
  }
  template <class... A>
  void launch(InitialState state, detail::Mode mode,
              const A &...arguments) const {
    detail::withArguments(
        [&](auto values) { launch_with(state, mode, values); }, arguments...);
  }

  static constexpr char empty[] =
      "this kernel is empty; make one with kernel(name, lambda)";
  detail::Shared<detail::KernelImpl, empty> impl;
  detail::Chain chain;
};

namespace detail {
Kernel make_kernel(const TracedKernel &traced, KernelOptions options);
}

/// Makes a kernel of a lambda over `ArrayRef` and `Scalar` parameters. The
/// lambda runs once, now. Error(BadKernel) if it breaks a rule of the language.
template <class F>
Kernel kernel(const char *name, F &&body, KernelOptions options = {},
              Loc loc = std::source_location::current()) {
  return detail::make_kernel(*detail::trace(name, std::forward<F>(body), loc),
                             options);
}

/// From here on `check` is asked while a launch on the host takes long (about
/// ten times a second, first after 0.3 s), on the thread that launches: true
/// ends the launch with Error(Interrupted), at the next chunk of a range or in
/// the middle of a loop. What the launch writes is then not usable; everything
/// else is. Null, as at first: launches run to their end. Takes the signal
/// SIGURG, and passes on those of others.
void set_interrupt_check(bool (*check)());

} // namespace costate
