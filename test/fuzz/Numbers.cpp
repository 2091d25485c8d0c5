#include "fuzz/Numbers.h"

#include <cmath>
#include <cstdio>
#include <limits>

using namespace mlir;

namespace costate::fuzz {

static Type elementOf(ir::KernelOp kernel, size_t k) {
  return cast<ir::ArrayType>(kernel.getArgumentTypes()[k]).getElementType();
}

/// Calls `visit(argument, type of its elements, element)` for all elements.
template <class Visit>
static void forElements(ir::KernelOp kernel, const Arrays &arrays,
                        Visit visit) {
  for (size_t k = 0; k < arrays.size(); ++k) {
    if (arrays[k].bytes.empty())
      continue;
    Type element = elementOf(kernel, k);
    for (size_t at = 0, count = sizeOf(arrays[k]); at < count; ++at)
      visit(k, element, at);
  }
}

double largest(ir::KernelOp kernel, const Arrays &arrays) {
  double most = 0;
  forElements(kernel, arrays, [&](size_t k, Type element, size_t at) {
    if (!isa<FloatType>(element))
      return;
    double value = std::abs(get(arrays[k], element, at));
    most = value <= most       ? most
           : std::isnan(value) ? std::numeric_limits<double>::infinity()
                               : value;
  });
  return most;
}

Dot dot(ir::KernelOp kernel, const Arrays &a, const Arrays &b) {
  Dot result;
  forElements(kernel, a, [&](size_t k, Type element, size_t at) {
    if (b[k].bytes.empty())
      return;
    double term = get(a[k], element, at) * get(b[k], element, at);
    result.sum += term;
    result.magnitude += std::abs(term);
  });
  return result;
}

bool isClose(double a, double b, double tolerance) {
  if (std::isnan(a) || std::isnan(b))
    return std::isnan(a) && std::isnan(b);
  return a == b || std::abs(a - b) <=
                       tolerance * (1 + std::max(std::abs(a), std::abs(b)));
}

std::string difference(ir::KernelOp kernel, const Arrays &a, const Arrays &b,
                       double tolerance) {
  std::string text;
  forElements(kernel, a, [&](size_t k, Type element, size_t at) {
    if (!text.empty() || b[k].bytes.empty())
      return;
    double x = get(a[k], element, at), y = get(b[k], element, at);
    if (!isClose(x, y, isa<FloatType>(element) ? tolerance : 0))
      text =
          placeText(k, at) + " is " + numberText(x) + ", not " + numberText(y);
  });
  return text;
}

Arrays zerosLike(ir::KernelOp kernel, const Arrays &arrays) {
  Arrays zeros(arrays.size());
  for (size_t k = 0; k < arrays.size(); ++k)
    if (!arrays[k].bytes.empty() && isFloatArray(kernel, k))
      zeros[k] = makeArray(
          cast<ir::ArrayType>(kernel.getArgumentTypes()[k]).getDerivative(),
          arrays[k].extents);
  return zeros;
}

void addTo(ir::KernelOp kernel, Arrays &arrays, const Arrays &direction,
           double factor) {
  forElements(kernel, direction, [&](size_t k, Type element, size_t at) {
    double value = get(arrays[k], element, at);
    set(arrays[k], element, at,
        value + factor * get(direction[k], element, at));
  });
}

std::string placeText(size_t argument, size_t element) {
  return "argument " + std::to_string(argument + 1) + " [" +
         std::to_string(element) + "]";
}

std::string numberText(double value) {
  char text[40];
  std::snprintf(text, sizeof(text), "%.17g", value);
  return text;
}

} // namespace costate::fuzz
