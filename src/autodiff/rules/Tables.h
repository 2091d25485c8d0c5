#pragma once
/// Where rules are written, one file per dialect, and the words for writing
/// them. Products inside a rule are strong: a factor of 0 hides inf and NaN.

#include "autodiff/cut/Number.h"
#include "autodiff/rules/Rules.h"

#include "llvm/ADT/StringMap.h"

namespace costate::autodiff {

void addArithRules(llvm::StringMap<Rule> &rules);
void addMathRules(llvm::StringMap<Rule> &rules);
void addCustomRule(llvm::StringMap<Rule> &rules);

/// Of x y, the first two operands.
Factor mulRule(const RuleArguments &arguments, unsigned index);

inline Factor times(mlir::Value value) { return {Factor::Times, value}; }

/// What a rule sees, to be written in formulas.
inline Number operand(const RuleArguments &a, unsigned index = 0) {
  return {a.b, a.operand(index)};
}
inline Number result(const RuleArguments &a) { return {a.b, a.result()}; }

} // namespace costate::autodiff
