#pragma once
/// From a program to a kernel.

#include "property/Program.h"

#include "costate/costate.h"

namespace costate::property {

/// Sizes of the arrays that every program has; see `emit`.
inline constexpr int steps = 5, sums = 3;
int widthOf(const Node &program);

/// Traces `program`: a kernel with the arguments
///
///   x, y, z: f64 (width)    u: f64 (steps, width)   v: f64 (3, width)
///   out: f64 (sums)         s: f64 ()
///   a, b: f32 (width)       m, n: i32 (width)       p: f64   q: i32
///
/// where x, a and m are only read. Throws InvalidProgram.
Kernel emit(const Node &program, KernelOptions options = {});

} // namespace costate::property
