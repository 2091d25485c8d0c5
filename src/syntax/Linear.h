#pragma once
/// Values as sums of others, for indices.

#include "syntax/Syntax.h"

#include <map>

namespace costate::syntax {

/// The statement that defines each value.
using Definitions = std::vector<const Statement *>;
Definitions definitionsOf(const Kernel &kernel);

/// A sum of values that are none, each times a factor that is not 0.
struct Linear {
  std::map<ValueId, int64_t> terms;
  int64_t constant = 0;

  void add(const Linear &other, int64_t factor);
  bool isConstant() const { return terms.empty(); }
  /// The value that this is, but for a constant, or `none`.
  ValueId root() const;
};

/// An integer, as if no operation overflowed and no conversion lost anything.
Linear linearOf(ValueId value, const Definitions &definitions);

} // namespace costate::syntax
