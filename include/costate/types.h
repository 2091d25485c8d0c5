#pragma once
/// Element types and source locations, shared by every layer.

#include "costate/f16.h"

#include <cstddef>
#include <cstdint>
#include <source_location>
#include <string>
#include <type_traits>

namespace costate {

/// The type of an array element or of a scalar in a kernel.
enum class DType : uint8_t {
  Bool,
  I8,
  I16,
  I32,
  I64,
  U8,
  U16,
  U32,
  U64,
  F16,
  F32,
  F64
};

/// Bytes of one element in memory; a bool takes one byte, 0 or 1.
constexpr size_t sizeOf(DType type) {
  constexpr size_t sizes[] = {1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 4, 8};
  return sizes[static_cast<int>(type)];
}

/// How many types there are.
inline constexpr int dtypeCount = 12;

constexpr bool isFloat(DType type) { return type >= DType::F16; }
constexpr bool isUnsigned(DType type) {
  return type >= DType::U8 && type <= DType::U64;
}
constexpr bool isInteger(DType type) {
  return !isFloat(type) && type != DType::Bool;
}

/// The type of adjoints and tangents of a float type: those of f16 are f32.
constexpr DType derivativeOf(DType type) {
  return type == DType::F16 ? DType::F32 : type;
}

/// The name that errors and reports use: `bool i8 i16 i32 i64 u8 u16 u32 u64
/// f16 f32 f64`.
constexpr const char *nameOf(DType type) {
  constexpr const char *names[] = {"bool", "i8",  "i16", "i32", "i64", "u8",
                                   "u16",  "u32", "u64", "f16", "f32", "f64"};
  return names[static_cast<int>(type)];
}

namespace detail {

/// An integer type that is a number of a kernel: none of those for characters,
/// but `signed char` and `unsigned char`, which are i8 and u8.
template <class T>
inline constexpr bool isKernelInteger =
    std::is_integral_v<T> && !std::is_same_v<T, bool> &&
    !std::is_same_v<T, char> && !std::is_same_v<T, wchar_t> &&
    !std::is_same_v<T, char8_t> && !std::is_same_v<T, char16_t> &&
    !std::is_same_v<T, char32_t>;

template <class T> constexpr DType integerType() {
  constexpr int log = std::countr_zero(sizeof(T));
  constexpr DType first = std::is_signed_v<T> ? DType::I8 : DType::U8;
  return static_cast<DType>(static_cast<int>(first) + log);
}

} // namespace detail

/// The C++ types that kernels compute with, and their dtype. `long` and
/// `long long` are both i64.
template <class T>
concept Element = std::is_same_v<T, bool> || std::is_same_v<T, f16> ||
                  std::is_same_v<T, float> || std::is_same_v<T, double> ||
                  (detail::isKernelInteger<T> && sizeof(T) <= 8);

template <Element T>
inline constexpr DType dtypeOf =
    std::is_same_v<T, bool>     ? DType::Bool
    : std::is_same_v<T, f16>    ? DType::F16
    : std::is_same_v<T, float>  ? DType::F32
    : std::is_same_v<T, double> ? DType::F64
                                : detail::integerType<T>();

/// Element types by kind: f16, float and double; all integers and bool.
template <class T>
concept FloatElement = Element<T> && isFloat(dtypeOf<T>);

/// A number of C++ that the host may pass to a kernel.
template <class T>
concept HostNumber = std::is_arithmetic_v<T> || std::is_same_v<T, f16>;

namespace detail {

/// The type of the numbers of `.grad()` and `.dual()`.
template <class T>
using DerivativeOf = std::conditional_t<std::is_same_v<T, f16>, float, T>;

} // namespace detail

/// Where an array of vectors, matrices or structs keeps their numbers: those of
/// one element side by side, or those of one component.
enum Layout : uint8_t { AoS, SoA };

/// What the elements of an array are made of.
struct ElementForm {
  std::string name;  ///< `Vec<f64, 3>`
  int64_t count = 0; ///< numbers in an element; 0: the element is a number
  Layout layout = AoS;
  bool isPart = false; ///< the array has only those of its own type
};

/// The largest rank of an array.
inline constexpr int maxRank = 8;

/// A place in the user's source. `file` lives as long as the program.
struct Loc {
  const char *file = "";
  uint32_t line = 0;
  uint32_t column = 0;

  constexpr Loc() = default;
  constexpr Loc(const char *file, uint32_t line, uint32_t column)
      : file(file), line(line), column(column) {}
  constexpr Loc(const std::source_location &place)
      : file(place.file_name()), line(place.line()), column(place.column()) {}

  static constexpr Loc
  current(const std::source_location &place = std::source_location::current()) {
    return place;
  }
};

} // namespace costate
