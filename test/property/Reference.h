#pragma once
/// A kernel as the guide to the language describes it: its statement tree,
/// evaluated. Shares nothing with lowering, passes and the interpreter of
/// kernel IR.

#include "interpreter/Interpreter.h"
#include "syntax/Syntax.h"

namespace costate::property {

/// Runs `kernel`: the work items of a range one after the other, functions of
/// the host's libm, no operation fused with another one. False if it stops: at
/// a step of 0, at a write out of range, or because it takes too long.
bool evaluate(const syntax::Kernel &kernel,
              std::vector<interpreter::InterpreterArgument> arguments);

} // namespace costate::property
