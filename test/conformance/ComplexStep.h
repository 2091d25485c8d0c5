#pragma once
/// Derivatives of plain C++ without differences: the imaginary part of f at
/// x + 1e-30 i, exact to rounding for functions that complex numbers have too.

#include <complex>
#include <vector>

namespace costate::test {

using Complex = std::complex<double>;

/// The derivative of f by each element of `x`. `f` takes a vector of Complex
/// and returns one; it branches on real parts.
template <class F>
std::vector<double> complexStep(F &&f, const std::vector<double> &x) {
  constexpr double step = 1e-30;
  std::vector<Complex> at(x.begin(), x.end());
  std::vector<double> derivative(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    at[i] = Complex(x[i], step);
    derivative[i] = f(at).imag() / step;
    at[i] = x[i];
  }
  return derivative;
}

} // namespace costate::test
