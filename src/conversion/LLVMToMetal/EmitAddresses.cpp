#include "conversion/LLVMToMetal/Emission.h"

#include "conversion/LLVMToSPIRV/AddressSpaces.h"
#include "conversion/LLVMToSPIRV/Prepare.h"

using namespace mlir;

namespace costate::conversion {
namespace {

//===-- Starts ------------------------------------------------------------===//

LogicalResult variable(Emission &e, LLVM::AllocaOp op) {
  auto count = op.getArraySize().getDefiningOp<LLVM::ConstantOp>();
  auto number = count ? dyn_cast<IntegerAttr>(count.getValue()) : IntegerAttr();
  if (!number)
    return e.none(op);
  uint64_t bytes = number.getValue().getZExtValue() *
                   e.layout.getTypeSize(op.getElemType()).getFixedValue();
  uint64_t words = std::max<uint64_t>(1, llvm::divideCeil(bytes, 8));
  std::string name = e.fresh();
  e.line("thread ulong " + name + "[" + Twine(words) + "];");
  return e.set(op, "reinterpret_cast<thread uchar *>(" + name + ")");
}

LogicalResult global(Emission &e, LLVM::AddressOfOp op) {
  if (spaceOf(op) == constantSpace) {
    FailureOr<std::string> bytes = tableBytes(e.layout, op);
    if (failed(bytes))
      return failure();
    uint64_t start = e.module.placeTable(op.getGlobalName(), *bytes);
    return e.alias(op, literal(APInt(64, start), metalWordBits));
  }
  auto start = e.module.shared.find(op.getGlobalName());
  if (spaceOf(op) != sharedSpace || start == e.module.shared.end())
    return e.none(op);
  return e.alias(op, literal(APInt(64, start->second), metalWordBits));
}

LogicalResult toOtherSpace(Emission &e, LLVM::AddrSpaceCastOp op) {
  const std::string &x = e.get(op.getArg());
  unsigned from = spaceOf(op.getArg()), to = spaceOf(op.getRes());
  if (std::optional<int64_t> tag = tagAmongGlobal(op))
    return e.set(op, "ulong(" + x + ") | " + literal(APInt(64, *tag), 64));
  if (from == 0 && to == sharedSpace)
    return e.set(op, "uint(" + x + ")");
  if ((from <= 1 && to <= 1) || from == to)
    return e.alias(op, x);
  return op->use_empty() ? success() : e.none(op);
}

//===-- Offsets -----------------------------------------------------------===//

/// An address while the indices of a GEP move it.
struct Offset {
  Emission &e;
  std::string address;
  Type at;           ///< of what it points to
  int64_t known = 0; ///< bytes that are still to be added
  bool isWide;       ///< counted in 64 bits

  void move(PointerUnion<IntegerAttr, Value> index);
  LogicalResult enter(PointerUnion<IntegerAttr, Value> index);
  std::string get() const;

private:
  void enterField(LLVM::LLVMStructType record, int64_t which);
};

/// To another element of the same type.
void Offset::move(PointerUnion<IntegerAttr, Value> index) {
  int64_t size = e.layout.getTypeSize(at).getFixedValue();
  size = llvm::alignTo(size, e.layout.getTypeABIAlignment(at));
  if (auto constant = dyn_cast<IntegerAttr>(index)) {
    known += constant.getInt() * size;
    return;
  }
  Value value = cast<Value>(index);
  std::string number = withSign(e.get(value), bitsOf(value.getType()));
  address +=
      isWide ? " + ulong(long(" + number + "))" : " + uint(" + number + ")";
  if (size != 1)
    address += " * " + literal(APInt(64, size), isWide ? 64 : metalWordBits);
}

void Offset::enterField(LLVM::LLVMStructType record, int64_t which) {
  int64_t offset = 0;
  for (int64_t k = 0; k <= which; ++k) {
    Type part = record.getBody()[k];
    if (!record.isPacked())
      offset = llvm::alignTo(offset, e.layout.getTypeABIAlignment(part));
    if (k < which)
      offset += e.layout.getTypeSize(part).getFixedValue();
  }
  known += offset;
  at = record.getBody()[which];
}

/// To what it points to consists of.
LogicalResult Offset::enter(PointerUnion<IntegerAttr, Value> index) {
  if (auto array = dyn_cast<LLVM::LLVMArrayType>(at)) {
    at = array.getElementType();
    move(index);
    return success();
  }
  auto record = dyn_cast<LLVM::LLVMStructType>(at);
  auto field = dyn_cast<IntegerAttr>(index);
  if (!record || !field)
    return failure();
  enterField(record, field.getInt());
  return success();
}

std::string Offset::get() const {
  if (!known)
    return address;
  return address + " + " +
         literal(APInt(64, known, true, true).trunc(isWide ? 64 : 32),
                 isWide ? 64 : metalWordBits);
}

LogicalResult offset(Emission &e, LLVM::GEPOp op) {
  unsigned space = spaceOf(op.getBase());
  bool isWide = space <= 1 || space == privateSpace;
  Offset offset{e, e.get(op.getBase()), op.getElemType(), 0, isWide};
  bool isFirst = true;
  for (auto index : op.getIndices()) {
    if (isFirst)
      offset.move(index);
    else if (failed(offset.enter(index)))
      return e.none(op);
    isFirst = false;
  }
  return e.set(op, offset.get());
}

} // namespace

llvm::ArrayRef<EmittedOperation> emittedAddresses() {
  static const EmittedOperation all[] = {
      emitted<LLVM::AllocaOp, variable>(),
      emitted<LLVM::AddressOfOp, global>(),
      emitted<LLVM::AddrSpaceCastOp, toOtherSpace>(),
      emitted<LLVM::GEPOp, offset>(),
  };
  return all;
}

} // namespace costate::conversion
