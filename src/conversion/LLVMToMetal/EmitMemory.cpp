/// Loads and stores: of 1, 2, 4 or 8 bytes, by functions of Prelude.metal.

#include "conversion/LLVMToMetal/EmitMemory.h"

#include "conversion/LLVMToSPIRV/AddressSpaces.h"
#include "conversion/LLVMToSPIRV/Prepare.h"

using namespace mlir;

namespace costate::conversion {

unsigned storedBits(Type type) {
  return isa<LLVM::LLVMPointerType>(type) ? 64 : std::max(8u, bitsOf(type));
}

std::string placeOf(Emission &e, Value address) {
  bool isShared = spaceOf(address) == sharedSpace;
  return isShared ? "shared + " + e.get(address) : e.get(address);
}

namespace {

/// What names of functions start with that access what is behind `address`.
StringRef prefixOf(Value address) {
  unsigned space = spaceOf(address);
  return space == sharedSpace    ? "costate_shared_"
         : space == privateSpace ? "costate_own_"
                                 : "costate_";
}

/// Pointers in memory are those of global memory.
bool isStorable(Type type) {
  auto pointer = dyn_cast<LLVM::LLVMPointerType>(type);
  unsigned bits = metalType(type).empty() ? 0 : storedBits(type);
  return pointer ? pointer.getAddressSpace() <= 1
                 : bits == 8 || bits == 16 || bits == 32 || bits == 64;
}

bool isTable(Value address) { return spaceOf(address) == constantSpace; }

/// Whether it may stand at an odd word, which GPUs take no 64 bits from.
FailureOr<bool> isHalfAligned(Operation *op, std::optional<uint64_t> given,
                              unsigned bits) {
  if (given.value_or(bits / 8) >= bits / 8)
    return false;
  if (bits == 64 && *given == 4)
    return true;
  return op->emitError() << "memory of " << bits / 8
                         << " bytes is accessed at multiples of " << *given;
}

std::string fromMemory(const std::string &word, Type type) {
  return type.isInteger(1) ? word + " != 0u" : fromBits(word, type);
}

LogicalResult load(Emission &e, LLVM::LoadOp op) {
  Type type = op.getType();
  if (!isStorable(type))
    return e.none(op);
  if (isAtomicAccess(type, op.getOrdering()))
    return emitAtomicLoad(e, op);
  unsigned bits = storedBits(type);
  std::string place = placeOf(e, op.getAddr());
  if (isTable(op.getAddr()))
    return e.set(
        op, fromMemory(call("costate_table" + Twine(bits), {place}), type));
  FailureOr<bool> inHalves = isHalfAligned(op, op.getAlignment(), bits);
  if (failed(inHalves))
    return failure();
  const char *suffix = *inHalves ? "_halves" : "";
  return e.set(op, fromMemory(call(prefixOf(op.getAddr()) + "load" +
                                       Twine(bits) + suffix,
                                   {place}),
                              type));
}

LogicalResult store(Emission &e, LLVM::StoreOp op) {
  Type type = op.getValue().getType();
  if (!isStorable(type) || isTable(op.getAddr()))
    return e.none(op);
  if (isAtomicAccess(type, op.getOrdering()))
    return emitAtomicStore(e, op);
  unsigned bits = storedBits(type);
  FailureOr<bool> inHalves = isHalfAligned(op, op.getAlignment(), bits);
  if (failed(inHalves))
    return failure();
  std::string word = toBits(e.get(op.getValue()), type);
  if (type.isInteger(1))
    word = "uint(" + word + ")";
  const char *suffix = *inHalves ? "_halves" : "";
  e.line(call(prefixOf(op.getAddr()) + "store" + Twine(bits) + suffix,
              {placeOf(e, op.getAddr()), word}) +
         ";");
  return success();
}

} // namespace

llvm::ArrayRef<EmittedOperation> emittedMemory() {
  static const EmittedOperation all[] = {
      emitted<LLVM::LoadOp, load>(),
      emitted<LLVM::StoreOp, store>(),
  };
  return all;
}

} // namespace costate::conversion
