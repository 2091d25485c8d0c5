#pragma once
/// Random numbers inside a kernel.

#include "costate/math.h"

#include <numbers>

namespace costate {

/// A sequence of random numbers, fixed by a seed and the number of a stream:
///
///     parallel(n, [&](Index i) {
///       Random random(seed, i);
///       x[i] = random.uniform();
///     });
///
/// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
/// 2011), counter-based: the same numbers on every device, with any number of
/// threads, and in derivatives, where they are constants. It is a variable of
/// the kernel: what is drawn in a loop goes on counting, and a copy goes on
/// where the original is.
class Random {
public:
  /// Seed and stream: any integers. Sequences of different ones have nothing to
  /// do with each other.
  explicit Random(IndexOperand seed, IndexOperand stream = 0,
                  std::source_location place = std::source_location::current())
      : key(word(Index(seed.value), place)),
        stream(word(Index(stream.value), place)), drawn(place) {}

  /// 64 random bits.
  Expr<uint64_t>
  bits(std::source_location place = std::source_location::current()) {
    Expr<uint64_t> result =
        detail::call<uint64_t>(detail::Op::Philox, place, key, stream, drawn);
    drawn = Source<uint64_t>(
        detail::call<uint64_t>(detail::Op::Add, place, drawn, 1), place);
    return result;
  }

  /// Uniform in [0, 1): a multiple of 2^-53, of float 2^-24.
  template <std::floating_point T = double>
  Expr<T>
  uniform(std::source_location place = std::source_location::current()) {
    return fraction<T>(bits(place), 64 - digits<T>, 0, place);
  }

  /// Uniform in [lo, hi); hi itself by rounding only.
  template <std::floating_point T = double>
  Expr<T>
  uniform(std::type_identity_t<Operand<T>> lo,
          std::type_identity_t<Operand<T>> hi,
          std::source_location place = std::source_location::current()) {
    Expr<T> from(lo.value), to(hi.value);
    Expr<T> length = detail::call<T>(detail::Op::Sub, place, to, from);
    return detail::call<T>(detail::Op::Fma, place, length, uniform<T>(place),
                           from);
  }

  /// Normally distributed with mean 0 and variance 1, by Box and Muller (1958).
  template <std::floating_point T = double>
  Expr<T> normal(std::source_location place = std::source_location::current()) {
    using enum detail::Op;
    Expr<uint64_t> first = bits(place), second = first;
    if constexpr (digits<T> > 32)
      second = bits(place);
    else
      second = detail::call<uint64_t>(Shl, place, first, 32);
    int shift = 64 - digits<T>;
    Expr<T> u = fraction<T>(first, shift, 1, place); // in (0, 1]
    Expr<T> v = fraction<T>(second, shift, 0, place);
    Expr<T> minusTwo =
        detail::call<T>(Mul, place, detail::call<T>(Log, place, u), T(-2));
    Expr<T> angle = detail::call<T>(Mul, place, v, 2 * std::numbers::pi_v<T>);
    return detail::call<T>(Mul, place, detail::call<T>(Sqrt, place, minusTwo),
                           detail::call<T>(Cos, place, angle));
  }

  /// An integer in [0, n), each with the probability 1/n up to n / 2^64.
  Index below(IndexOperand n,
              std::source_location place = std::source_location::current()) {
    Expr<uint64_t> count = word(Index(n.value), place);
    return cast<int64_t>(
        detail::call<uint64_t>(detail::Op::Rem, place, bits(place), count),
        place);
  }

private:
  template <class T>
  static constexpr int digits = std::numeric_limits<T>::digits;

  static Expr<uint64_t> word(Index value, std::source_location place) {
    return cast<uint64_t>(value, place);
  }

  /// ((bits >> shift) + more) * 2^-digits
  template <class T>
  static Expr<T> fraction(Expr<uint64_t> bits, int shift, int more,
                          std::source_location place) {
    using enum detail::Op;
    Expr<uint64_t> top = detail::call<uint64_t>(Shr, place, bits, shift);
    if (more)
      top = detail::call<uint64_t>(Add, place, top, more);
    constexpr T unit = T(1) / T(uint64_t(1) << digits<T>);
    return detail::call<T>(Mul, place, cast<T>(top, place), unit);
  }

  Expr<uint64_t> key, stream;
  Var<uint64_t> drawn;
};

} // namespace costate
