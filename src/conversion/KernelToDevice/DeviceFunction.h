#pragma once
/// A function of a device under construction, and the values that such
/// functions leave in the frame of the launch.

#include "conversion/KernelToLLVM/Outline.h"

namespace costate::conversion {

inline mlir::LLVM::LLVMPointerType pointerType(mlir::MLIRContext *context) {
  return mlir::LLVM::LLVMPointerType::get(context);
}

/// How threads come by their work, and by a tape.
enum class Threading { Serial, Strided, Tiled };

/// `NAME(words, thread, threads, memory)`, which makes a worker and calls a
/// body that is to be filled.
class DeviceFunction {
public:
  DeviceFunction(mlir::ModuleOp module, mlir::Location loc,
                 const llvm::Twine &name, int64_t words, Threading threading,
                 int64_t lanes, bool measures);

  mlir::Value words() { return body.getArgument(0); }
  mlir::Value worker() { return body.getArgument(1); }
  mlir::Value thread() { return body.getArgument(2); }
  mlir::Value threads() { return body.getArgument(3); }
  /// What the threads of a block share; null: nothing.
  mlir::Value memory() { return body.getArgument(4); }
  /// Of NVIDIA's kernel: `costate-tiles`, `costate-sums`,
  /// `costate-gathers`, `costate-shared`, and the number `costate-block-dim`.
  void mark(llvm::StringRef attribute);
  void mark(llvm::StringRef attribute, int64_t number);
  mlir::Block *block() { return &body.getFunctionBody().front(); }
  void end(mlir::ImplicitLocOpBuilder &builder);

private:
  bool isSerial() const { return threading == Threading::Serial; }
  void fillOuter();
  void storeTape(mlir::ImplicitLocOpBuilder &b, mlir::Value args,
                 mlir::Value worker, mlir::Value thread);

  Threading threading;
  int64_t lanes; ///< of a warp
  mlir::LLVM::LLVMFuncOp outer, body;
};

/// What stands for a value in slot `slot` of the frame. A sum is f64 there.
mlir::Value frameValue(mlir::ImplicitLocOpBuilder &builder, mlir::Type type,
                       int64_t slot, bool isSum);
/// Lets `local` live in the frame from `slot` on; how many slots it takes.
int64_t keepInFrame(ir::LocalOp local, int64_t slot);
/// The slot that `value` stands for, if any.
std::optional<int64_t> frameSlotOf(mlir::Value value);
/// In a function of the device: the value itself.
mlir::Value loadFromFrame(mlir::ImplicitLocOpBuilder &builder,
                          mlir::Value value, mlir::Value frame, int64_t slot);
/// Of the 8 bytes of a slot that the host has read.
mlir::Value fromFrameBits(mlir::ImplicitLocOpBuilder &builder, mlir::Type type,
                          mlir::Value bits, bool isSum);

} // namespace costate::conversion
