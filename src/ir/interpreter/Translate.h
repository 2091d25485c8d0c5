#pragma once
/// From kernel IR to what the interpreter runs.

#include "base/Result.h"
#include "ir/Kernel.h"
#include "ir/interpreter/Code.h"
#include "ir/interpreter/Interpreter.h"

namespace costate::ir {

Result<Code> translate(KernelOp kernel, Functions functions);

} // namespace costate::ir
