#include "bindings/Numbers.h"

#include <atomic>
#include <cmath>
#include <limits>

namespace costate::python {

using detail::ArgumentValue;

/// Found once NumPy is imported; never released.
static bool isNumpyBool(PyObject *object) {
  static std::atomic<PyObject *> type = nullptr;
  if (!type) {
    nb::object numpy = nb::steal(PyImport_GetModule(nb::str("numpy").ptr()));
    if (!numpy.is_valid() || !nb::hasattr(numpy, "bool_"))
      return false;
    type = nb::object(numpy.attr("bool_")).release().ptr();
  }
  return nb::handle(object).type().is(type.load());
}

static std::optional<ArgumentValue> integerOf(PyObject *object) {
  int overflow = 0;
  long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
  if (!overflow)
    return ArgumentValue(value);
  if (overflow > 0) {
    unsigned long long large = PyLong_AsUnsignedLongLong(object);
    if (!PyErr_Occurred())
      return ArgumentValue(large);
    PyErr_Clear();
  }
  return std::nullopt;
}

std::optional<ArgumentValue> numberOf(PyObject *object) {
  if (PyFloat_Check(object))
    return ArgumentValue(PyFloat_AsDouble(object));
  if (PyBool_Check(object))
    return ArgumentValue(object == Py_True);
  if (PyLong_Check(object))
    return integerOf(object);
  if (isNumpyBool(object))
    return ArgumentValue(PyObject_IsTrue(object) == 1);
  if (PyIndex_Check(object)) {
    nb::object index = nb::steal(PyNumber_Index(object));
    if (index.is_valid())
      return integerOf(index.ptr());
  } else if (PyType_GetSlot(Py_TYPE(object), Py_nb_float)) {
    double value = PyFloat_AsDouble(object);
    if (!PyErr_Occurred())
      return ArgumentValue(value);
  }
  PyErr_Clear();
  return std::nullopt;
}

template <class T> static std::optional<T> whole(double value) {
  constexpr double end =
      2.0 * static_cast<double>(std::numeric_limits<T>::max() / 2 + 1);
  constexpr double begin = std::is_signed_v<T> ? -end : 0;
  bool fits = value >= begin && value < end && std::trunc(value) == value;
  return fits ? std::optional(static_cast<T>(value)) : std::nullopt;
}

template <class T> static std::optional<T> inRange(const ArgumentValue &value) {
  auto narrowed = [](auto integer) {
    return std::in_range<T>(integer) ? std::optional(static_cast<T>(integer))
                                     : std::nullopt;
  };
  if (value.kind == ArgumentValue::Kind::Signed)
    return narrowed(static_cast<int64_t>(value.integer));
  return narrowed(value.integer);
}

static double realOf(const ArgumentValue &value) {
  if (value.kind == ArgumentValue::Kind::Float)
    return value.real;
  return value.kind == ArgumentValue::Kind::Signed
             ? static_cast<double>(static_cast<int64_t>(value.integer))
             : static_cast<double>(value.integer);
}

template <class T> std::optional<T> convert(nb::handle object) {
  std::optional<ArgumentValue> value = numberOf(object.ptr());
  if (!value)
    return std::nullopt;
  if constexpr (FloatElement<T>) {
    return static_cast<T>(realOf(*value));
  } else if constexpr (std::is_same_v<T, bool>) {
    double real = realOf(*value);
    return real == 0 || real == 1 ? std::optional(real == 1) : std::nullopt;
  } else {
    return value->kind == ArgumentValue::Kind::Float ? whole<T>(value->real)
                                                     : inRange<T>(*value);
  }
}

template std::optional<bool> convert(nb::handle);
template std::optional<int8_t> convert(nb::handle);
template std::optional<int16_t> convert(nb::handle);
template std::optional<int32_t> convert(nb::handle);
template std::optional<int64_t> convert(nb::handle);
template std::optional<uint8_t> convert(nb::handle);
template std::optional<uint16_t> convert(nb::handle);
template std::optional<uint32_t> convert(nb::handle);
template std::optional<uint64_t> convert(nb::handle);
template std::optional<f16> convert(nb::handle);
template std::optional<float> convert(nb::handle);
template std::optional<double> convert(nb::handle);

} // namespace costate::python
