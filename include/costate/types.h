#pragma once
/// Element types and source locations, shared by every layer.

#include <cstddef>
#include <cstdint>
#include <source_location>
#include <string>
#include <type_traits>

namespace costate {

/// The type of an array element or of a scalar in a kernel.
enum class DType : uint8_t { Bool, I32, I64, U32, U64, F32, F64 };

/// Bytes of one element in memory; a bool takes one byte, 0 or 1.
constexpr size_t sizeOf(DType type) {
  switch (type) {
  case DType::Bool:
    return 1;
  case DType::I32:
  case DType::U32:
  case DType::F32:
    return 4;
  default:
    return 8;
  }
}

constexpr bool isFloat(DType type) {
  return type == DType::F32 || type == DType::F64;
}
constexpr bool isUnsigned(DType type) {
  return type == DType::U32 || type == DType::U64;
}
constexpr bool isInteger(DType type) {
  return !isFloat(type) && type != DType::Bool;
}

/// The name that errors and reports use: `bool i32 i64 u32 u64 f32 f64`.
constexpr const char *nameOf(DType type) {
  constexpr const char *names[] = {"bool", "i32", "i64", "u32",
                                   "u64",  "f32", "f64"};
  return names[static_cast<int>(type)];
}

/// The C++ types that kernels compute with, and their dtype. `long` and
/// `long long` are both i64.
template <class T>
concept Element =
    std::is_same_v<T, bool> || std::is_same_v<T, float> ||
    std::is_same_v<T, double> ||
    (std::is_integral_v<T> && (sizeof(T) == 4 || sizeof(T) == 8) &&
     !std::is_same_v<T, wchar_t> && !std::is_same_v<T, char32_t>);

template <Element T>
inline constexpr DType dtypeOf =
    std::is_same_v<T, bool>     ? DType::Bool
    : std::is_same_v<T, float>  ? DType::F32
    : std::is_same_v<T, double> ? DType::F64
    : std::is_signed_v<T>       ? (sizeof(T) == 4 ? DType::I32 : DType::I64)
                                : (sizeof(T) == 4 ? DType::U32 : DType::U64);

/// Where an array of vectors, matrices or structs keeps their numbers: those of
/// one element side by side, or those of one component.
enum Layout : uint8_t { AoS, SoA };

/// What the elements of an array are made of.
struct ElementForm {
  std::string name;  ///< `Vec<f64, 3>`
  int64_t count = 0; ///< numbers in an element; 0: the element is a number
  Layout layout = AoS;
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
