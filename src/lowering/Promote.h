#pragma once
/// Private arrays whose indices are all known become variables.

#include "syntax/Syntax.h"

namespace costate::lowering {

/// `kernel` with variables in the place of the elements of private arrays that
/// are accessed at constant indices only. They need no memory, and gradients on
/// GPUs keep them like other values.
syntax::Kernel promoteLocals(const syntax::Kernel &kernel);

} // namespace costate::lowering
