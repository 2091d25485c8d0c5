#include "conversion/LLVMToSPIRV/Lanes.h"

using namespace mlir;
namespace spv = mlir::spirv;

namespace costate::conversion {

Value launchWord(SpirvBuilder &b, LaunchWord k) {
  Value launch = spv::AddressOfOp::create(b, b.module.launch());
  Value word = spv::AccessChainOp::create(b, launch, ValueRange{b.i32(k)});
  return spv::LoadOp::create(b, word);
}

Value builtIn(SpirvBuilder &b, StringRef name) {
  Value address = spv::AddressOfOp::create(b, b.module.builtIn(name));
  Value all = spv::LoadOp::create(b, address);
  return spv::CompositeExtractOp::create(b, all, ArrayRef<int32_t>{0});
}

Value blockThreads(SpirvBuilder &b) {
  spv::SpecConstantOp constant = b.module.blockThreads();
  return spv::ReferenceOfOp::create(b, b.getI32Type(),
                                    FlatSymbolRefAttr::get(constant));
}

/// No grid is without blocks, but that is known to nobody.
static Value isEmptyGrid(SpirvBuilder &b) {
  Value blocks = builtIn(b, "NumWorkgroups");
  return spv::IEqualOp::create(b, blocks, b.i32(0));
}

Value opaque(SpirvBuilder &b, Value condition) {
  return spv::LogicalOrOp::create(b, condition, isEmptyGrid(b));
}

Value laneOrZero(SpirvBuilder &b, Type type) {
  Value isEmpty = isEmptyGrid(b), lane = builtIn(b, "LocalInvocationId");
  return b.resized(b.select(isEmpty, lane, b.i32(0)), type);
}

Value perLane(SpirvBuilder &b, Value number) {
  return spv::IAddOp::create(b, number, laneOrZero(b, number.getType()));
}

} // namespace costate::conversion
