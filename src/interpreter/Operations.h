#pragma once
/// The operations that the interpreter knows. To teach it another one, add a
/// row to a table: of Scalars.cpp, Accesses.cpp, Locals.cpp, Control.cpp or
/// Checks.cpp.

#include "interpreter/Code.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <optional>

namespace mlir {
class Operation;
class Type;
} // namespace mlir

namespace costate::interpreter {

/// Chooses the handler of an operation by its types and attributes, and may
/// fill the detail of its instruction; null if it cannot handle them.
using Select = Handler (*)(mlir::Operation *, Instruction &, Code &);

struct KnownOperation {
  llvm::StringRef name;
  Select select;
};

llvm::ArrayRef<KnownOperation> scalarOperations();
llvm::ArrayRef<KnownOperation> accessOperations();
llvm::ArrayRef<KnownOperation> localOperations();
llvm::ArrayRef<KnownOperation> controlOperations();
llvm::ArrayRef<KnownOperation> checkOperations();

/// A row that runs the same code for all types.
template <Handler handler>
Handler always(mlir::Operation *, Instruction &, Code &) {
  return handler;
}

/// Operand `position` is an array; the operands after it are the indices of
/// an element. Its number, unless an index is out of range.
std::optional<size_t> elementOf(Machine &machine, const Instruction &op,
                                uint32_t position);

/// Calls the function of its instruction.
Handler callOf(mlir::Type type, unsigned operands);

/// Bits of an integer, float or index.
unsigned widthOf(mlir::Type type);

/// What `costate.trip_count` counts; nothing for a step of 0.
std::optional<uint64_t> tripCountOf(int64_t lo, int64_t hi, int64_t step);

inline constexpr const char *stepIsZero =
    "the step of this loop is 0, so it would not end; give it another step";

} // namespace costate::interpreter
