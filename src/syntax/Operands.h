#pragma once
/// What a statement uses.

#include "syntax/Syntax.h"

namespace costate::syntax {

/// Calls `use` with each value that `statement` uses, to be changed unless it
/// is const.
template <class Of, class F> void forEachOperand(Of &statement, F use) {
  for (auto *list : {&statement.operands, &statement.results})
    for (auto &value : *list)
      use(value);
  if (statement.condition != none)
    use(statement.condition);
}

inline bool usesLocal(const Statement &statement) {
  return traitsOf(statement.kind).argument == Counted::Local;
}

} // namespace costate::syntax
