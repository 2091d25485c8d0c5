#pragma once
/// Numbers of Python as numbers of a dtype.

#include "bindings/Bindings.h"

#include <optional>

namespace costate::python {

/// Calls `use` with a value of the C++ type of `type`.
template <class F> decltype(auto) withType(DType type, const F &use) {
  switch (type) {
  case DType::Bool:
    return use(bool());
  case DType::I8:
    return use(int8_t());
  case DType::I16:
    return use(int16_t());
  case DType::I32:
    return use(int32_t());
  case DType::I64:
    return use(int64_t());
  case DType::U8:
    return use(uint8_t());
  case DType::U16:
    return use(uint16_t());
  case DType::U32:
    return use(uint32_t());
  case DType::U64:
    return use(uint64_t());
  case DType::F16:
    return use(f16());
  case DType::F32:
    return use(float());
  case DType::F64:
    break;
  }
  return use(double());
}

/// A bool, integer or real number of Python or NumPy. None for anything else,
/// and for integers of more than 64 bits.
std::optional<detail::ArgumentValue> numberOf(PyObject *object);

/// `object` in the type `T`; none if `T` does not have it. Real numbers are
/// rounded to real types, and have to be whole for others.
template <class T> std::optional<T> convert(nb::handle object);

} // namespace costate::python
