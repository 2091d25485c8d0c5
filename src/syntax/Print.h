#pragma once
/// A statement tree as text, for people and tests.

#include "costate/detail/group.h"
#include "syntax/Syntax.h"

#include <string_view>

namespace costate::syntax {

/// One statement per line, blocks indented:
///
///     kernel scale(a0: array f64 1, a1: f64)
///       %0 = scalar a1
///       %1 = extent a0[0]
///       range (%2) in (%1)
///         %3 = load a0[%2]
///         %4 = mul %3, %0 : f64
///         store %4, a0[%2]
std::string print(const Kernel &kernel);

/// The name of `op` in that text.
const char *nameOf(Op op);
const char *nameOf(GroupOp op);

/// What `op` takes, a letter for each operand, and gives; see
/// costate/detail/group_operations.def.
struct GroupForm {
  std::string_view operands;
  char result;
};
GroupForm formOf(GroupOp op);
inline bool hasResult(GroupOp op) { return formOf(op).result != '-'; }

} // namespace costate::syntax
