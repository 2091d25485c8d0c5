#pragma once
/// Launches as the user asks for them: all checks, the run, and all who want to
/// know.

#include "api/Call.h"

namespace costate::detail {

void launch(const Call &call, Chain chain);

/// A gradient, or tangents of one, of a launch that has not run yet: runs it,
/// reverses it, and puts back what it wrote.
void launchFromInitialState(const Call &call, Chain chain);

} // namespace costate::detail
