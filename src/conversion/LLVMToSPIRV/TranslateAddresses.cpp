#include "conversion/LLVMToSPIRV/AddressSpaces.h"
#include "conversion/LLVMToSPIRV/Lanes.h"
#include "conversion/LLVMToSPIRV/Operations.h"

using namespace mlir;
namespace spv = mlir::spirv;

namespace costate::conversion {
namespace {

//===-- Tables of constants -----------------------------------------------===//

LogicalResult table(Translation &t, LLVM::AddressOfOp op) {
  FailureOr<std::string> bytes = tableBytes(t.layout, op);
  if (failed(bytes))
    return failure();
  uint64_t start = t.b.module.placeTable(op.getGlobalName(), *bytes);
  Value tables = launchWord(t.b, Tables);
  return t.set(op, spv::IAddOp::create(t.b, tables, t.b.i64(start)));
}

//===-- Starts ------------------------------------------------------------===//

LogicalResult variable(Translation &t, LLVM::AllocaOp op) {
  return t.set(op, t.memory.addressOf(op));
}

LogicalResult global(Translation &t, LLVM::AddressOfOp op) {
  if (spaceOf(op) == constantSpace)
    return table(t, op);
  auto start = t.shared.find(op.getGlobalName());
  if (spaceOf(op) == sharedSpace && start != t.shared.end())
    return t.set(op, t.b.i32(start->second));
  return t.none(op);
}

LogicalResult toOtherSpace(Translation &t, LLVM::AddrSpaceCastOp op) {
  SpirvBuilder &b = t.b;
  Value x = t.get(op.getArg());
  unsigned from = spaceOf(op.getArg()), to = spaceOf(op.getRes());
  if (std::optional<int64_t> tag = tagAmongGlobal(op)) {
    Value wide = b.resized(x, b.getI64Type());
    return t.set(op, spv::BitwiseOrOp::create(b, wide, b.i64(*tag)));
  }
  if (from == 0 && to == sharedSpace)
    return t.set(op, b.resized(x, b.getI32Type()));
  if ((isGlobal(from) && isGlobal(to)) || from == to)
    return t.set(op, x);
  return op->use_empty() ? success() : t.none(op);
}

//===-- Offsets -----------------------------------------------------------===//

/// An address while the indices of a GEP move it.
struct Offset {
  Translation &t;
  Value address;
  Type at;           ///< of what it points to
  int64_t known = 0; ///< bytes that are still to be added

  LogicalResult move(PointerUnion<IntegerAttr, Value> index);
  LogicalResult enter(PointerUnion<IntegerAttr, Value> index);
  Value get();

private:
  void enterField(LLVM::LLVMStructType record, int64_t which);
  Value scaled(Value index, int64_t size);
  void add(Value bytes) { address = spv::IAddOp::create(t.b, address, bytes); }
};

/// The bytes of so many elements.
Value Offset::scaled(Value index, int64_t size) {
  SpirvBuilder &b = t.b;
  Type word = address.getType();
  Value number =
      word.isInteger(64) ? b.widened(index, word) : b.resized(index, word);
  if (size == 1)
    return number;
  return spv::IMulOp::create(b, number, b.integer(word, APInt(64, size)));
}

/// To another element of the same type.
LogicalResult Offset::move(PointerUnion<IntegerAttr, Value> index) {
  int64_t size = t.layout.getTypeSize(at).getFixedValue();
  size = llvm::alignTo(size, t.layout.getTypeABIAlignment(at));
  if (auto constant = dyn_cast<IntegerAttr>(index))
    known += constant.getInt() * size;
  else
    add(scaled(t.get(cast<Value>(index)), size));
  return success();
}

void Offset::enterField(LLVM::LLVMStructType record, int64_t which) {
  int64_t offset = 0;
  for (int64_t k = 0; k <= which; ++k) {
    Type part = record.getBody()[k];
    if (!record.isPacked())
      offset = llvm::alignTo(offset, t.layout.getTypeABIAlignment(part));
    if (k < which)
      offset += t.layout.getTypeSize(part).getFixedValue();
  }
  known += offset;
  at = record.getBody()[which];
}

/// To what it points to consists of.
LogicalResult Offset::enter(PointerUnion<IntegerAttr, Value> index) {
  if (auto array = dyn_cast<LLVM::LLVMArrayType>(at)) {
    at = array.getElementType();
    return move(index);
  }
  auto record = dyn_cast<LLVM::LLVMStructType>(at);
  auto field = dyn_cast<IntegerAttr>(index);
  if (!record || !field)
    return failure();
  enterField(record, field.getInt());
  return success();
}

Value Offset::get() {
  if (known)
    add(t.b.integer(address.getType(), APInt(64, known, true, true)));
  return address;
}

LogicalResult offset(Translation &t, LLVM::GEPOp op) {
  Offset offset{t, t.get(op.getBase()), op.getElemType()};
  bool isFirst = true;
  for (auto index : op.getIndices()) {
    if (failed(isFirst ? offset.move(index) : offset.enter(index)))
      return t.none(op);
    isFirst = false;
  }
  return t.set(op, offset.get());
}

} // namespace

llvm::ArrayRef<KnownOperation> addressOperations() {
  static const KnownOperation all[] = {
      row<LLVM::AllocaOp, variable>(),
      row<LLVM::AddressOfOp, global>(),
      row<LLVM::AddrSpaceCastOp, toOtherSpace>(),
      row<LLVM::GEPOp, offset>(),
  };
  return all;
}

} // namespace costate::conversion
