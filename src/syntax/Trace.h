#pragma once
/// What tracing a C++ lambda gives (include/costate/trace.h).

#include "base/Result.h"
#include "syntax/Outline.h"

namespace costate::detail {

struct TracedKernel {
  syntax::Kernel kernel; ///< with marks where functions begin and end
  std::vector<syntax::NamedFunction> named; ///< by their marks
  /// The first mistake; `kernel` is then not to be used.
  std::optional<Failure> failure;

  /// `kernel` without marks: functions are called, or a part of it.
  syntax::Kernel outlined(Calls calls = wantedCalls()) const;
};

} // namespace costate::detail
