#pragma once
/// What tracing a C++ lambda gives (include/costate/trace.h).

#include "base/Result.h"
#include "syntax/Syntax.h"

namespace costate::detail {

struct TracedKernel {
  syntax::Kernel kernel;
  /// The first mistake; `kernel` is then not to be used.
  std::optional<Failure> failure;
};

} // namespace costate::detail
