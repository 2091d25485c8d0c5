#pragma once
/// The functions of costate/detail/operations.def on numbers of the host: those
/// of the standard library, and what it lacks.

#include <cmath>

namespace costate::host {

using namespace std; // NOLINT: looked up as host::sin

template <class T> T rsqrt(T x) { return 1 / std::sqrt(x); }
template <class T> T exp10(T x) { return std::pow(T(10), x); }

} // namespace costate::host
