#include "conversion/LLVMToSPIRV/BlockMemory.h"

#include "conversion/LLVMToSPIRV/Parts.h"

using namespace mlir;
namespace spv = mlir::spirv;

namespace costate::conversion {

Value blockWord(SpirvBuilder &b, Value bytes, unsigned further) {
  Value word = divided(b, bytes, llvm::Log2_32(wordBytes));
  if (further)
    word = spv::IAddOp::create(b, word, b.i32(further));
  Value memory = spv::AddressOfOp::create(b, b.module.blockMemory());
  return spv::AccessChainOp::create(
      b, spv::PointerType::get(b.getI32Type(), spv::StorageClass::Workgroup),
      memory, ValueRange{word});
}

static spv::MemoryAccessAttr access(SpirvBuilder &b) {
  if (!b.features().memoryModel)
    return {};
  return spv::MemoryAccessAttr::get(b.getContext(),
                                    spv::MemoryAccess::NonPrivatePointer);
}

static Value loadWord(SpirvBuilder &b, Value bytes, unsigned further) {
  return spv::LoadOp::create(b, blockWord(b, bytes, further), access(b),
                             IntegerAttr());
}

static void storeWord(SpirvBuilder &b, Value bytes, unsigned further,
                      Value word) {
  spv::StoreOp::create(b, blockWord(b, bytes, further), word, access(b),
                       IntegerAttr());
}

Value loadFromBlock(SpirvBuilder &b, Value bytes, Type type) {
  unsigned size = std::max(1u, type.getIntOrFloatBitWidth() / 8);
  Value low = loadWord(b, bytes, 0);
  if (size == wordBytes)
    return b.bitcast(low, b.typeOf(type));
  if (size == 2 * wordBytes)
    return joined(b, low, loadWord(b, bytes, 1), type);
  return partOf(b, low, bytes, type);
}

void storeToBlock(SpirvBuilder &b, Value bytes, Value value, Type type) {
  unsigned size = type.getIntOrFloatBitWidth() / 8;
  if (size == wordBytes)
    return storeWord(b, bytes, 0, b.bitcast(value, b.getI32Type()));
  if (size == 2 * wordBytes) {
    auto [low, high] = halves(b, value);
    storeWord(b, bytes, 0, low);
    return storeWord(b, bytes, 1, high);
  }
  // Other threads may write the rest of the word.
  auto [own, others] = placed(b, value, bytes, type);
  Value word = blockWord(b, bytes, 0);
  constexpr auto scope = spv::Scope::Workgroup;
  constexpr auto order = spv::MemorySemantics::None;
  spv::AtomicAndOp::create(b, b.getI32Type(), word, scope, order, others);
  spv::AtomicOrOp::create(b, b.getI32Type(), word, scope, order, own);
}

} // namespace costate::conversion
