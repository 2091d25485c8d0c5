#pragma once
/// What a function of the LLVM dialect allocates, as variables of SPIR-V.

#include "conversion/LLVMToSPIRV/SpirvBuilder.h"

#include "mlir/Interfaces/DataLayoutInterfaces.h"

namespace costate::conversion {

class PrivateMemory {
public:
  PrivateMemory(SpirvBuilder &b, mlir::DataLayout layout)
      : b(b), layout(std::move(layout)) {}

  /// An array of words or numbers.
  struct Variable {
    mlir::Value pointer; ///< to an array
    mlir::Type element;  ///< of the array
    unsigned bytes = 0;  ///< of an element, as the program counts
    uint64_t offset = 0; ///< of this part of it
  };
  /// Where an address is private memory.
  struct Place {
    const Variable *variable;
    mlir::Value bytes; ///< i32
  };

  /// Makes variables of all that `function` allocates.
  void prepare(mlir::LLVM::LLVMFuncOp function);
  /// The address of what `memory` allocates.
  mlir::Value addressOf(mlir::LLVM::AllocaOp memory);
  /// Where `pointer`, which has become `bytes`, points to; emits an error at
  /// `user` if that is not known.
  mlir::FailureOr<Place> placeOf(mlir::Value pointer, mlir::Value bytes,
                                 mlir::Operation *user);
  mlir::Value load(const Place &place, mlir::Type type);
  void store(const Place &place, mlir::Value value, mlir::Type type);

private:
  void addVariable(mlir::LLVM::AllocaOp memory);
  void addStack(llvm::ArrayRef<mlir::LLVM::AllocaOp> parts);
  Variable variableOf(uint64_t bytes, mlir::Type element,
                      unsigned elementBytes);
  uint64_t bytesOf(mlir::LLVM::AllocaOp memory) const;

  SpirvBuilder &b;
  mlir::DataLayout layout;
  llvm::DenseMap<mlir::Operation *, Variable> variables;
  /// Holds what pointers may go from one to the other of.
  std::optional<Variable> stack;
};

} // namespace costate::conversion
