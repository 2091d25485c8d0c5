#pragma once
/// A statement tree as text, for people and tests.

#include "syntax/Syntax.h"

namespace costate::syntax {

/// One statement per line, blocks indented:
///
///     kernel scale(a0: array f64 1, a1: f64)
///       %0 = scalar a1
///       %1 = extent a0[0]
///       range (%2) in (%1)
///         %3 = load a0[%2]
///         %4 = mul %3, %0 : f64
///         store %4, a0[%2]
std::string print(const Kernel &kernel);

/// The name of `op` in that text.
const char *nameOf(Op op);

} // namespace costate::syntax
