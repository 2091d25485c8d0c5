#pragma once
/// What a gradient costs, by lines of the source.

#include "code/KernelCode.h"
#include "ir/Kernel.h"

namespace costate::compiler {

/// The lines of which `gradient` saves something or computes something again,
/// by file and line.
std::vector<runtime::LineCost> lineCosts(ir::KernelOp gradient);

} // namespace costate::compiler
