#pragma once
/// What messages call the operations of a kernel.

#include "mlir/IR/Operation.h"

#include <optional>
#include <string>

namespace costate::conversion {

struct Wording {
  std::string name;    ///< `sqrt`, `/`
  std::string formula; ///< `sqrt(%)`, `% / %`: a % for every float operand
};

/// Nothing for an operation that gives finite results for finite operands, or
/// no float.
std::optional<Wording> wordingOf(mlir::Operation *op);

/// On operations that the user has written, unlike those of a derivative.
inline constexpr llvm::StringLiteral ownAttr = "costate.own";

/// The name that `name-operations` has put into `loc`; empty if none.
llvm::StringRef userNameOf(mlir::Location loc);

} // namespace costate::conversion
