#pragma once
/// Arrays of other libraries.

#include "bindings/Bindings.h"

#include <nanobind/ndarray.h>

namespace costate::python {

[[noreturn]] inline void reject(const std::string &text) {
  throw Error(ErrorCode::BadArgument, text);
}

inline nb::dlpack::dtype dlpackType(DType type) {
  using nb::dlpack::dtype_code;
  dtype_code code = type == DType::Bool ? dtype_code::Bool
                    : isFloat(type)     ? dtype_code::Float
                    : isUnsigned(type)  ? dtype_code::UInt
                                        : dtype_code::Int;
  return {static_cast<uint8_t>(code), static_cast<uint8_t>(8 * sizeOf(type)),
          1};
}

inline std::string shapeText(const std::vector<int64_t> &shape) {
  std::string text;
  for (int64_t extent : shape)
    text += (text.empty() ? "" : ", ") + std::to_string(extent);
  return "(" + text + ")";
}

inline std::string contentsText(const AnyArray &array) {
  return std::string(nameOf(array.dtype())) + " of shape " +
         shapeText(array.shape());
}

template <class N> std::string contentsText(const N &data) {
  static constexpr const char *codes[] = {"i", "u", "f"};
  std::vector<int64_t> shape;
  for (size_t dim = 0; dim < data.ndim(); ++dim)
    shape.push_back(static_cast<int64_t>(data.shape(dim)));
  nb::dlpack::dtype type = data.dtype();
  std::string name = type.code < 3
                         ? codes[type.code] + std::to_string(type.bits)
                     : type == dlpackType(DType::Bool) ? "bool"
                                                       : "another dtype";
  return name + " of shape " + shapeText(shape);
}

/// Whether `data` is row-major without gaps.
template <class N> bool isContiguous(const N &data) {
  int64_t stride = 1;
  for (size_t dim = data.ndim(); dim-- > 0;) {
    if (data.shape(dim) != 1 && data.stride(dim) != stride)
      return data.size() == 0;
    stride *= static_cast<int64_t>(data.shape(dim));
  }
  return true;
}

} // namespace costate::python
