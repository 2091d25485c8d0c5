#pragma once
/// Comparison of arrays.

#include "fuzz/Launch.h"

namespace costate::fuzz {

/// The largest magnitude among the floats of `arrays`; infinity for NaN.
/// `arrays` are indexed by the arguments of `kernel`; empty ones do not count.
double largest(ir::KernelOp kernel, const Arrays &arrays);

struct Dot {
  double sum = 0, magnitude = 0; ///< of the terms, and of their magnitudes
};
Dot dot(ir::KernelOp kernel, const Arrays &a, const Arrays &b);

/// Where `a` and `b` differ by more than `tolerance` allows for numbers as
/// large as they are; empty if nowhere. NaN equals NaN.
std::string difference(ir::KernelOp kernel, const Arrays &a, const Arrays &b,
                       double tolerance);
bool isClose(double a, double b, double tolerance);

Arrays zerosLike(ir::KernelOp kernel, const Arrays &arrays);
/// Adds `factor` times `direction` to the floats of `arrays`.
void addTo(ir::KernelOp kernel, Arrays &arrays, const Arrays &direction,
           double factor);

/// "argument 2 [5]"
std::string placeText(size_t argument, size_t element);
/// All digits that a number has.
std::string numberText(double value);

} // namespace costate::fuzz
