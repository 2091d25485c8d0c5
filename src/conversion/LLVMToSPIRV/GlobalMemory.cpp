#include "conversion/LLVMToSPIRV/GlobalMemory.h"

using namespace mlir;
namespace spv = mlir::spirv;

namespace costate::conversion {

Type storedAs(Type type, OpBuilder &b) {
  if (isa<LLVM::LLVMPointerType>(type))
    return b.getI64Type();
  if (type.isInteger(1))
    return b.getIntegerType(8);
  return type;
}

static unsigned sizeOf(Type stored) {
  return stored.getIntOrFloatBitWidth() / 8;
}

Value globalPointer(SpirvBuilder &b, Value address, Type type) {
  return spv::ConvertUToPtrOp::create(
      b, spv::PointerType::get(type, spv::StorageClass::PhysicalStorageBuffer),
      address);
}

static spv::MemoryAccessAttr access(SpirvBuilder &b, bool isVolatile) {
  auto kind = spv::MemoryAccess::Aligned;
  if (isVolatile)
    kind = kind | spv::MemoryAccess::Volatile;
  if (b.features().memoryModel)
    kind = kind | spv::MemoryAccess::NonPrivatePointer;
  return spv::MemoryAccessAttr::get(b.getContext(), kind);
}

template <class Access>
static spv::MemoryAccessAttr accessOf(SpirvBuilder &b, Access op) {
  return access(b, op.getVolatile_() ||
                       op.getOrdering() != LLVM::AtomicOrdering::not_atomic);
}

/// Drivers know no addresses of numbers but multiples of their size, and do
/// anything with others.
static LogicalResult checkAligned(Operation *op, std::optional<uint64_t> given,
                                  Type stored) {
  if (given.value_or(sizeOf(stored)) >= sizeOf(stored))
    return success();
  return op->emitError() << "memory of " << sizeOf(stored)
                         << " bytes is accessed at multiples of " << *given;
}

FailureOr<Value> loadGlobal(SpirvBuilder &b, Value address, LLVM::LoadOp op) {
  Type type = op.getType(), stored = storedAs(type, b);
  if (failed(checkAligned(op, op.getAlignment(), stored)))
    return failure();
  b.module.needStorage(stored);
  Value pointer = globalPointer(b, address, stored);
  Value value = spv::LoadOp::create(
      b, pointer, accessOf(b, op),
      b.getI32IntegerAttr(op.getAlignment().value_or(sizeOf(stored))));
  if (!isa<IntegerType>(stored))
    return value;
  value = b.resized(value, b.wordOf(stored.getIntOrFloatBitWidth()));
  return type.isInteger(1) ? b.asBool(value) : value;
}

LogicalResult storeGlobal(SpirvBuilder &b, Value address, Value value,
                          LLVM::StoreOp op) {
  Type stored = storedAs(op.getValue().getType(), b);
  if (failed(checkAligned(op, op.getAlignment(), stored)))
    return failure();
  b.module.needStorage(stored);
  if (isa<IntegerType>(stored))
    value = b.resized(value, stored);
  spv::StoreOp::create(
      b, globalPointer(b, address, stored), value, accessOf(b, op),
      b.getI32IntegerAttr(op.getAlignment().value_or(sizeOf(stored))));
  return success();
}

Value loadUnaligned(SpirvBuilder &b, Value address, Type type) {
  unsigned bits = type.getIntOrFloatBitWidth();
  Type word = bits > wordBits ? b.getI64Type() : b.getI32Type();
  int64_t size = word.getIntOrFloatBitWidth() / 8;
  Value start = spv::BitwiseAndOp::create(b, address, b.i64(-size));
  auto part = [&](int64_t offset) -> Value {
    Value place = spv::IAddOp::create(b, start, b.i64(offset));
    return spv::LoadOp::create(b, globalPointer(b, place, word),
                               access(b, /*isVolatile=*/false),
                               b.getI32IntegerAttr(size));
  };
  auto number = [&](int64_t value) {
    return b.integer(word, APInt(64, value, true, true));
  };
  Value within =
      b.resized(spv::BitwiseAndOp::create(b, address, b.i64(size - 1)), word);
  Value shift = spv::ShiftLeftLogicalOp::create(b, within, number(3));
  Value low = spv::ShiftRightLogicalOp::create(b, part(0), shift);
  // In two steps: the whole word must be shifted out where `shift` is 0.
  Value high = spv::ShiftLeftLogicalOp::create(b, part(size), number(1));
  high = spv::ShiftLeftLogicalOp::create(
      b, high, spv::ISubOp::create(b, number(8 * size - 1), shift));
  Value value = spv::BitwiseOrOp::create(b, low, high);
  if (bits < wordBits)
    value = b.masked(value, bits);
  return isa<FloatType>(type) ? b.bitcast(value, type) : value;
}

} // namespace costate::conversion
