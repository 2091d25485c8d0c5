#pragma once
/// Elements of arrays in memory, and the values that hold them.

#include "interpreter/Machine.h"
#include "ir/Kernel.h"

#include <cstring>
#include <type_traits>

namespace costate::interpreter {

struct Bool {}; ///< in memory one byte, true unless 0

/// The type of a value that holds a T.
template <class T>
using Wide = std::conditional_t<
    std::is_same_v<T, _Float16>, float,
    std::conditional_t<
        std::is_integral_v<T> && sizeof(T) < 4,
        std::conditional_t<std::is_signed_v<T>, int32_t, uint32_t>, T>>;

template <class T> T read(const std::byte *at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

template <class T> void write(std::byte *at, T value) {
  std::memcpy(at, &value, sizeof(T));
}

template <class T> uint64_t slotOf(T value) {
  Wide<T> wide = value;
  if constexpr (std::is_integral_v<T>)
    return static_cast<std::make_unsigned_t<Wide<T>>>(wide);
  else
    return Machine::asBits(wide);
}

/// The element that the value in a slot becomes.
template <class T> T elementOf(uint64_t slot) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(slot);
  else
    return static_cast<T>(Machine::asFloat<Wide<T>>(slot));
}

/// What `select` gives for the C++ type of elements of type `element`.
template <class Select>
Handler byElement(mlir::Type element, const Select &select) {
  if (element.isF16())
    return select.template operator()<_Float16>();
  if (element.isF32())
    return select.template operator()<float>();
  if (element.isF64())
    return select.template operator()<double>();
  bool isUnsigned = element.isUnsignedInteger();
  switch (element.getIntOrFloatBitWidth()) {
  case 1:
    return select.template operator()<Bool>();
  case 8:
    return isUnsigned ? select.template operator()<uint8_t>()
                      : select.template operator()<int8_t>();
  case 16:
    return isUnsigned ? select.template operator()<uint16_t>()
                      : select.template operator()<int16_t>();
  case 32:
    return isUnsigned ? select.template operator()<uint32_t>()
                      : select.template operator()<int32_t>();
  default:
    return isUnsigned ? select.template operator()<uint64_t>()
                      : select.template operator()<int64_t>();
  }
}

} // namespace costate::interpreter
