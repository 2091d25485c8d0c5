#include "conversion/KernelToDevice/SharedArrays.h"

#include "ir/Blocks.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace costate::conversion {

/// Calls `visit` with each array in `region`, and where it begins; returns
/// where the last one ends.
static int64_t
forEachShared(Region &region,
              llvm::function_ref<void(ir::SharedOp, int64_t)> visit) {
  constexpr int64_t alignment = 16;
  int64_t at = 0;
  region.walk([&](ir::SharedOp op) {
    int64_t begin = llvm::alignTo(at, alignment);
    at = begin + op.getType().bytes();
    visit(op, begin);
  });
  return at;
}

SharedArrays::SharedArrays(Region &region)
    : size(forEachShared(region, [](ir::SharedOp, int64_t) {})) {}

void SharedArrays::place(ImplicitLocOpBuilder &b, Region &copy,
                         Value memory) const {
  forEachShared(copy, [&](ir::SharedOp op, int64_t at) {
    Value address =
        LLVM::GEPOp::create(b, memory.getType(), b.getI8Type(), memory,
                            ArrayRef<LLVM::GEPArg>(static_cast<int32_t>(at)));
    auto array = UnrealizedConversionCastOp::create(b, op.getType(), address);
    op.replaceAllUsesWith(array.getResult(0));
    op.erase();
  });
}

} // namespace costate::conversion
