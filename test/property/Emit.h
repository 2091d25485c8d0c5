#pragma once
/// From a program to a kernel.

#include "property/Coverage.h"
#include "property/Program.h"

#include "costate/costate.h"

namespace costate::property {

/// The extent that arrays of `program` have where none is fixed.
int widthOf(const Node &program);

/// The statement tree of `program`: a kernel whose arguments are the arrays of
/// Arrays.h and p: f64, q: i32. Tells in `uses` what it is made of. Throws
/// InvalidProgram.
std::shared_ptr<detail::TracedKernel> traced(const Node &program,
                                             Uses *uses = nullptr);
/// The kernel that it becomes, which calls all functions that it can call.
Kernel emit(const Node &program, KernelOptions options = {},
            Uses *uses = nullptr);

} // namespace costate::property
