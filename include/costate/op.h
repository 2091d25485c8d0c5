#pragma once
/// The pure operations of the kernel language.

#include <cstdint>

namespace costate::syntax {

/// Operands have one type unless said; integer operations are signed or
/// unsigned by that type. Semantics: docs/guide/language.md.
enum class Op : uint8_t {
  // arithmetic (all but Bool), Neg of unsigned wraps; Clamp: value, low, high
  Neg, Add, Sub, Mul, Div, Rem, Min, Max, Clamp, Abs,
  // bits: integers, and Bool for And Or Xor Not; Shl/Shr take the count in the
  // type of the shifted value, masked to its width; Popcnt, Clz: integers
  And, Or, Xor, Not, Shl, Shr, Popcnt, Clz,
  // random bits, U64 only: key, stream, counter
  Philox,
  // comparisons: operands of one type, result Bool
  Lt, Le, Gt, Ge, Eq, Ne,
  // Select: Bool, then two values of one type
  Select,
  // Cast: any type to Statement::type; BitCast: to one as wide, the same bits
  Cast, BitCast,
  // floats only
  Floor, Ceil, Round, Trunc, Sqrt, Rsqrt, Cbrt, Exp, Exp2, Expm1, Log, Log2,
  Log10, Log1p, Pow, Hypot, Sin, Cos, Tan, Asin, Acos, Atan, Atan2, Sinh, Cosh,
  Tanh, Asinh, Acosh, Atanh, Erf, Erfc, Fma, StopGradient,
  // any number to I64, in the order of the numbers; NaN comes last
  Ordinal,
  // floats: the value, and what takes its place in derivatives of order 1, 2
  ByOrder,
};

} // namespace costate::syntax
