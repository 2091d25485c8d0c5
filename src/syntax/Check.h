#pragma once
/// Do the statements of a kernel fit together? The types of C++ see to that;
/// front ends without them may get it wrong.

#include "base/Result.h"
#include "syntax/Syntax.h"

#include <optional>

namespace costate::syntax {

/// The first statement whose operands are not what it takes: their number,
/// types, and the ranks of arrays. `kernel` is well nested, and its values are
/// defined before they are used.
std::optional<Failure> check(const Kernel &kernel);

} // namespace costate::syntax
