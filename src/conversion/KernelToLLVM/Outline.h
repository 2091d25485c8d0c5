#pragma once
/// What outlining for the host and for devices has in common: functions, slots
/// of frames, and what a range uses of its kernel.

#include "conversion/KernelToLLVM/Runtime.h"
#include "ir/Tape.h"

#include "mlir/IR/IRMapping.h"

namespace costate::conversion {

using Values = llvm::SmallVector<mlir::Value>;

/// A function without result at the end of `module`, with an entry block.
mlir::LLVM::LLVMFuncOp createFunction(mlir::ModuleOp module, mlir::Location loc,
                                      const llvm::Twine &name,
                                      mlir::TypeRange params,
                                      mlir::LLVM::Linkage linkage);

/// The address of 8-byte slot `number`.
mlir::Value slot(mlir::ImplicitLocOpBuilder &builder, mlir::Value frame,
                 int64_t number);
/// Reads a frame or argument slot; a bool fills a byte.
mlir::Value loadSlot(mlir::ImplicitLocOpBuilder &builder, mlir::Type type,
                     mlir::Value frame, int64_t number);
void storeSlot(mlir::ImplicitLocOpBuilder &builder, mlir::Value value,
               mlir::Value frame, int64_t number);

/// Moves operations of `block` to the builder's place.
void splice(mlir::OpBuilder &builder, mlir::Block *block,
            mlir::Block::iterator first, mlir::Block::iterator last);

using ir::contains;
/// Whether `region` stores to `array`.
bool isWritten(mlir::Value array, mlir::Region &region);
bool isPush(mlir::Operation *op);
/// Whether `op` changes memory that outlives a launch.
bool isEffect(mlir::Operation *op);
bool isPrint(mlir::Operation *op);
/// Whether `op` adds to what other work items add to as well: their order
/// decides the bits.
bool addsInAnyOrder(mlir::Operation *op);

/// The product of the extents of a range; -1 if there are more work items than
/// an i64 can count.
mlir::Value workItemsOf(mlir::ImplicitLocOpBuilder &builder,
                        mlir::ValueRange extents);

/// Makes the body of `kernel`, which it erases, that of a function
/// `NAME.entry(launch, worker, arguments)`. Unless `keepDimensions`, arrays
/// lose those of one element.
mlir::LLVM::LLVMFuncOp createEntry(mlir::ModuleOp module, ir::KernelOp kernel,
                                   bool keepDimensions);

/// Hands the copies of `entry` to the runtime.
void callCopies(Runtime &runtime, mlir::LLVM::LLVMFuncOp entry);

/// What a region uses of the kernel around it.
struct Captures {
  /// `more`: used as well.
  Captures(mlir::Region &region, mlir::ValueRange more);

  /// Makes the region use what `parts` are here, and constants of its own.
  void map(mlir::ImplicitLocOpBuilder &builder, mlir::ValueRange parts,
           mlir::Region &region);
  /// Of `parts`.
  unsigned position(mlir::Value part) const;

  Values captured;  ///< values of the kernel
  Values parts;     ///< the same, arrays as base and unknown extents, each once
  Values constants; ///< the user has its own
  mlir::IRMapping mapping;

private:
  static Values partsOf(mlir::Value value);
};

} // namespace costate::conversion
