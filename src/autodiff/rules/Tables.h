#pragma once
/// Where rules are written, one file per dialect, and the words for writing
/// them. Products inside a rule are strong: a factor of 0 hides inf and NaN.

#include "autodiff/rules/Rules.h"

#include "llvm/ADT/StringMap.h"

namespace costate::autodiff {

void addArithRules(llvm::StringMap<Rule> &rules);
void addMathRules(llvm::StringMap<Rule> &rules);
void addCustomRule(llvm::StringMap<Rule> &rules);

inline Factor times(mlir::Value value) { return {Factor::Times, value}; }

/// Arithmetic on values of one float type, without strong zeros.
class Formula {
public:
  explicit Formula(const RuleArguments &a)
      : b(a.b), type(a.op->getResult(0).getType()) {}

  mlir::Value constant(double value) { return floatConstant(b, type, value); }
  mlir::Value add(mlir::Value x, mlir::Value y);
  mlir::Value sub(mlir::Value x, mlir::Value y);
  mlir::Value mul(mlir::Value x, mlir::Value y);
  mlir::Value div(mlir::Value x, mlir::Value y);
  mlir::Value neg(mlir::Value x);
  mlir::Value strong(mlir::Value g, mlir::Value f);
  mlir::Value reciprocal(mlir::Value x) { return div(constant(1), x); }

private:
  mlir::ImplicitLocOpBuilder &b;
  mlir::Type type;
};

} // namespace costate::autodiff
