#include "compiler/DeviceNumbers.h"

#include "base/VulkanChip.h"
#include "compiler/Diagnostics.h"
#include "ir/Kernel.h"

using namespace mlir;

namespace costate::compiler {
namespace {

struct Lack {
  const char *numbers, *wayOut;
};

/// Values of fewer than 32 bits are wider ones.
std::optional<Lack> lackOfElement(Type type, const VulkanFeatures &has) {
  unsigned bits = type.getIntOrFloatBitWidth();
  if (type.isF16() && !(has.f16 && has.storage16))
    return Lack{"floats of 16 bits (f16)", "use f32"};
  if (bits == 16 && !(has.i16 && has.storage16))
    return Lack{"elements of 16 bits (i16, u16)", "use i32 or u32"};
  if (bits <= 8 && !(has.i8 && has.storage8))
    return Lack{"elements of 8 bits (i8, u8, bool)", "use i32 or u32"};
  return std::nullopt;
}

/// None: the device has all that `op` works on.
std::optional<Lack> lackOf(Operation *op, const VulkanFeatures &has) {
  auto isDouble = [](Type type) { return type.isF64(); };
  if (!has.f64 && (llvm::any_of(op->getResultTypes(), isDouble) ||
                   llvm::any_of(op->getOperandTypes(), isDouble)))
    return Lack{"floats of 64 bits (f64)", "use f32"};
  if (isa<ir::ElementAccess>(op))
    for (Type type : op->getOperandTypes())
      if (auto array = dyn_cast<ir::ArrayType>(type))
        return lackOfElement(array.getElementType(), has);
  return std::nullopt;
}

} // namespace

Result<> checkNumbers(ModuleOp module, const std::string &target,
                      DiagnosticText &diagnostics) {
  std::optional<VulkanFeatures> has = parseVulkanChip(target);
  if (!has)
    return {};
  WalkResult result = module.walk([&](Operation *op) {
    std::optional<Lack> lack = lackOf(op, *has);
    if (!lack)
      return WalkResult::advance();
    InFlightDiagnostic error = op->emitError("this device has no ")
                               << lack->numbers;
    error.attachNote() << lack->wayOut << ", or another device";
    return WalkResult::interrupt();
  });
  if (!result.wasInterrupted())
    return {};
  return Failure{ErrorCode::BadKernel, diagnostics.take("")};
}

} // namespace costate::compiler
