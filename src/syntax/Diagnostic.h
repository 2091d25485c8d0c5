#pragma once
/// Errors in the user's kernel.

#include "base/Result.h"
#include "costate/types.h"

namespace costate::syntax {

/// `file:line:column`
std::string toString(Loc loc);

/// A BadKernel at `loc`:
///
///     relax.cpp:12:5: error: `BREAK` outside a loop
///     note: `RETURN` ends the work item
Failure badKernel(Loc loc, const std::string &text, const std::string &note);

} // namespace costate::syntax
