/// Loads and stores, by the space of the address.

#include "conversion/LLVMToSPIRV/AddressSpaces.h"
#include "conversion/LLVMToSPIRV/Atomics.h"
#include "conversion/LLVMToSPIRV/BlockMemory.h"
#include "conversion/LLVMToSPIRV/GlobalMemory.h"
#include "conversion/LLVMToSPIRV/Operations.h"

using namespace mlir;

namespace costate::conversion {
namespace {

/// Pointers are numbers of 64 bits in any memory.
Type numberOf(Type type, SpirvBuilder &b) {
  return isa<LLVM::LLVMPointerType>(type) ? Type(b.getI64Type()) : type;
}

bool isUnalignedTable(LLVM::LoadOp op) {
  return spaceOf(op.getAddr()) == constantSpace &&
         8 * op.getAlignment().value_or(8) <
             op.getType().getIntOrFloatBitWidth();
}

LogicalResult load(Translation &t, LLVM::LoadOp op) {
  Type type = op.getType();
  if (!t.b.typeOf(type))
    return t.none(op);
  Value address = t.get(op.getAddr());
  unsigned space = spaceOf(op.getAddr());
  if (isAtomic(type, op.getOrdering()))
    return loadAtomic(t, op);
  if (space == sharedSpace)
    return t.set(op, loadFromBlock(t.b, address, numberOf(type, t.b)));
  if (isUnalignedTable(op))
    return t.set(op, loadUnaligned(t.b, address, type));
  if (isGlobal(space)) {
    FailureOr<Value> value = loadGlobal(t.b, address, op);
    return failed(value) ? failure() : t.set(op, *value);
  }
  auto place = t.memory.placeOf(op.getAddr(), address, op);
  if (failed(place))
    return failure();
  return t.set(op, t.memory.load(*place, numberOf(type, t.b)));
}

LogicalResult store(Translation &t, LLVM::StoreOp op) {
  Type type = op.getValue().getType();
  if (!t.b.typeOf(type))
    return t.none(op);
  Value address = t.get(op.getAddr()), value = t.get(op.getValue());
  unsigned space = spaceOf(op.getAddr());
  if (isAtomic(type, op.getOrdering()))
    return storeAtomic(t, op);
  if (isa<LLVM::LLVMPointerType>(type) && spaceOf(op.getValue()) > 1)
    return t.none(op);
  if (space == sharedSpace) {
    storeToBlock(t.b, address, value, numberOf(type, t.b));
    return success();
  }
  if (space <= 1)
    return storeGlobal(t.b, address, value, op);
  auto place = t.memory.placeOf(op.getAddr(), address, op);
  if (failed(place))
    return failure();
  t.memory.store(*place, value, numberOf(type, t.b));
  return success();
}

} // namespace

llvm::ArrayRef<KnownOperation> memoryOperations() {
  static const KnownOperation all[] = {
      row<LLVM::LoadOp, load>(),
      row<LLVM::StoreOp, store>(),
  };
  return all;
}

} // namespace costate::conversion
