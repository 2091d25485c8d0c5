#pragma once
/// Values of long functions that wait in memory for their use.

#include "llvm/IR/Function.h"

namespace costate::compiler {

/// Whether a function is so long that values which live long in it would make
/// the allocation of registers slow: it takes time quadratic in their number.
bool isLong(const llvm::Function &function);

/// Lets each use that is far after its definition, in the order of the
/// instructions, load the value from the stack. It would have been spilled
/// anyway. So do constants of floats, which a block keeps from its first use
/// on.
void spillFarValues(llvm::Function &function);

} // namespace costate::compiler
