#include "compiler/targets/vulkan/Lacks.h"

#include "compiler/Groups.h"
#include "compiler/targets/Doubles.h"
#include "ir/Blocks.h"

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

/// None: the device has all numbers that `op` works on.
std::optional<Lack> lackOfNumbers(Operation *op, const VulkanFeatures &has) {
  if (!has.f64 && worksOnDoubles(op))
    return Lack{"floats of 64 bits (f64)", "use f32"};
  if (isa<ir::ElementAccess>(op))
    for (Type type : op->getOperandTypes())
      if (auto array = dyn_cast<ir::ArrayType>(type))
        return lackOfElement(array.getElementType(), has);
  return std::nullopt;
}

bool isOfWarp(Operation *op) {
  auto group = dyn_cast<ir::GroupOp>(op);
  return group && group.getKind().starts_with("warp.");
}

} // namespace

std::optional<Fault> lackOf(Operation *op, const VulkanFeatures &has) {
  if (std::optional<Lack> lack = lackOfNumbers(op, has))
    return Fault{std::string("this device has no ") + lack->numbers,
                 std::string(lack->wayOut) + ", or another device"};
  if (isOfWarp(op) && !(has.warps && has.shuffle && has.ballot && has.vote))
    return Fault{groupName(op) + " needs subgroups of 32 threads with "
                                 "shuffles, votes and ballots, which this "
                                 "device lacks",
                 "exchange values by a shared array and `block.sync`, or "
                 "choose another device"};
  return std::nullopt;
}

} // namespace costate::compiler
