#pragma once
/// Sums, differences, products and shifts of integers that leave their type.

#include "syntax/Syntax.h"

#include "mlir/IR/Builders.h"

#include <map>
#include <string>
#include <vector>

namespace costate::lowering {

/// The lines of the files that a kernel stands in.
class SourceLines {
public:
  std::string place(Loc loc, const std::string &function);

private:
  std::map<std::string, std::vector<std::string>> files;
};

/// Prints `place()` where `op` on operands of this type gives another number
/// than `result`, which has its lowest bits. Nothing for operations that
/// cannot.
void reportOverflow(mlir::OpBuilder &b, mlir::Location loc, syntax::Op op,
                    DType type, mlir::ValueRange operands, mlir::Value result,
                    llvm::function_ref<std::string()> place);

} // namespace costate::lowering
