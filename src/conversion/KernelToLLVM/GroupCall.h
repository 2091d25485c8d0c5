#pragma once
/// What `costate.group` becomes: a call of a function of the device. Numbers
/// are passed as their bits, bools as i32; the last argument is the number of
/// the source place.

#include "conversion/KernelToLLVM/Runtime.h"
#include "ir/Blocks.h"

namespace costate::conversion {

/// On such an op, once the functions are declared.
inline constexpr llvm::StringLiteral groupFunctionAttr = "costate.function";
inline constexpr llvm::StringLiteral groupSiteAttr = "costate.site";

/// Declares what `GroupOp`s of the module become, and tells each of them its
/// function and the number of its source place.
void declareGroups(mlir::ModuleOp module, Runtime &runtime);
/// Waits for the threads of the block that have not ended.
void callBlockBarrier(mlir::ImplicitLocOpBuilder &builder,
                      mlir::ModuleOp module);

class GroupCall {
public:
  explicit GroupCall(ir::GroupOp op) : op(op) {}

  /// `costate_device_warp_shuffle_i64`; for 32 bits, or where the value does
  /// not count, without the end.
  std::string name() {
    std::string name = "costate_device_" + op.getKind().str();
    std::ranges::replace(name, '.', '_');
    bool isWide = llvm::any_of(op.getValues().getTypes(), [](mlir::Type type) {
      return type.getIntOrFloatBitWidth() == 64;
    });
    return name + (isWide ? "_i64" : "");
  }
  llvm::SmallVector<mlir::Type> operands() {
    return llvm::map_to_vector(op.getValues().getTypes(), bitsOf);
  }
  mlir::Type result() {
    if (op.getNumResults())
      return bitsOf(op.getResult(0).getType());
    return mlir::LLVM::LLVMVoidType::get(op.getContext());
  }

  static mlir::Type bitsOf(mlir::Type type) {
    unsigned width = std::max(32u, type.getIntOrFloatBitWidth());
    return mlir::IntegerType::get(type.getContext(), width);
  }

private:
  ir::GroupOp op;
};

} // namespace costate::conversion
