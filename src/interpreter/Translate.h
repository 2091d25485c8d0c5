#pragma once
/// From kernel IR to what the interpreter runs.

#include "base/Result.h"
#include "interpreter/Code.h"
#include "interpreter/Interpreter.h"
#include "ir/Kernel.h"

namespace costate::interpreter {

Result<Code> translate(ir::KernelOp kernel, Functions functions);

} // namespace costate::interpreter
