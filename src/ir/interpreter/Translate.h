#pragma once
/// From kernel IR to what the interpreter runs.

#include "base/Result.h"
#include "ir/Kernel.h"
#include "ir/interpreter/Code.h"

namespace costate::ir {

Result<Code> translate(KernelOp kernel);

} // namespace costate::ir
