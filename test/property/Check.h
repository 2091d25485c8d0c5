#pragma once
/// Are the derivatives of a program right?

#include "property/Program.h"

namespace costate::property {

struct Verdict {
  enum Kind {
    Right,
    Refused, ///< Error(CannotReplay)
    Wild,    ///< values too large to compare
    Invalid, ///< cannot be traced
    Wrong
  } kind = Right;
  std::string text;
  int differences = 0; ///< entries that central differences could judge
};

/// Compares reverse mode with forward mode and with central differences in
/// every entry of every array, at values that `seed` chooses; and what a
/// gradient launch must keep: memory, sums of gradients, independence of the
/// number of threads and of debug checks.
Verdict check(const Node &program, unsigned seed);

} // namespace costate::property
