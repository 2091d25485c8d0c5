#pragma once
/// One function of the LLVM dialect, with structured control flow, while it
/// becomes text: a statement for each operation, in the same order.

#include "conversion/LLVMToMetal/MetalText.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/Twine.h"

namespace costate::conversion {

constexpr unsigned metalWordBits = 32;

/// What a type is in the text; empty: it has no counterpart. Integers of fewer
/// than 32 bits are words whose other bits are 0, f64 is what it is in memory.
/// Addresses are numbers: in global memory, from the start of that of a block,
/// or of the tables; private ones are pointers.
llvm::StringRef metalType(mlir::Type type);

/// Bits that count: 1, 8, 16, ...; of an address those of its number.
unsigned bitsOf(mlir::Type type);

class Emission {
public:
  Emission(MetalText &module, mlir::LLVM::LLVMFuncOp from);

  const std::string &get(mlir::Value value) const;
  const std::string &operand(mlir::Operation *op, unsigned k) const {
    return get(op->getOperand(k));
  }
  /// Says what the result of `op` is.
  mlir::LogicalResult set(mlir::Operation *op, const std::string &expression);
  /// Says that it is something that has a name, or a constant. By value, as
  /// what `get` gives ends when a name is added.
  mlir::LogicalResult alias(mlir::Operation *op, std::string name);
  /// Says that it has no counterpart.
  mlir::LogicalResult none(mlir::Operation *op);
  void line(const llvm::Twine &text);
  /// A variable that is assigned later.
  std::string declare(mlir::Type type);
  std::string fresh() { return "v" + std::to_string(count++); }

  /// What is in braces between the two.
  void open(const llvm::Twine &head);
  void close(const llvm::Twine &tail = "");

  MetalText &module;
  mlir::LLVM::LLVMFuncOp from;
  mlir::DataLayout layout;
  llvm::DenseMap<mlir::Value, std::string> names;
  /// Results of operations with several, which have no name.
  llvm::DenseMap<mlir::Value, llvm::SmallVector<std::string, 2>> parts;
  std::string text;

private:
  unsigned depth = 1, count = 0;
};

/// Appends the function to `module`. Emits an error at what has no counterpart.
mlir::LogicalResult emitFunction(MetalText &module,
                                 mlir::LLVM::LLVMFuncOp from);

//===-- Operations --------------------------------------------------------===//

/// Emits one operation. To emit another one, add a row to a table of one of the
/// files Emit*.cpp.
using Emit = mlir::LogicalResult (*)(Emission &, mlir::Operation *);

struct EmittedOperation {
  llvm::StringRef name;
  Emit emit;
};

llvm::ArrayRef<EmittedOperation> emittedIntegers();
llvm::ArrayRef<EmittedOperation> emittedFloats();
llvm::ArrayRef<EmittedOperation> emittedConversions();
llvm::ArrayRef<EmittedOperation> emittedValues();
llvm::ArrayRef<EmittedOperation> emittedAddresses();
llvm::ArrayRef<EmittedOperation> emittedMemory();
llvm::ArrayRef<EmittedOperation> emittedAtomics();
llvm::ArrayRef<EmittedOperation> emittedThreads();
llvm::ArrayRef<EmittedOperation> emittedControl();

mlir::LogicalResult emitBlock(Emission &e, mlir::Block &block);

/// The row of `Op`, for a function that takes it or any operation.
template <class Op, auto emit> EmittedOperation emitted() {
  return {Op::getOperationName(), [](Emission &e, mlir::Operation *op) {
            return emit(e, mlir::cast<Op>(op));
          }};
}

//===-- Expressions -------------------------------------------------------===//

/// A number of so many bits.
std::string literal(const llvm::APInt &number, unsigned bits);
std::string zeroOf(mlir::Type type);
/// Without what is above `bits`.
std::string masked(const std::string &word, unsigned bits);
/// With the sign of `bits` in all of the word.
std::string extended(const std::string &word, unsigned bits);
/// `word`, of `bits`, as a number with a sign.
std::string withSign(const std::string &word, unsigned bits);
/// The bits of `number`, of `type`, as an integer, and back.
std::string toBits(const std::string &number, mlir::Type type);
std::string fromBits(const std::string &bits, mlir::Type type);
/// `function(arguments)`.
std::string call(const llvm::Twine &function,
                 llvm::ArrayRef<std::string> arguments);

} // namespace costate::conversion
