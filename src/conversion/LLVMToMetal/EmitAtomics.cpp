/// Atomics: of words by those of Metal, in no order, with fences around them;
/// of 64 bits, which Metal lacks, behind a lock (Prelude.metal).

#include "conversion/LLVMToMetal/EmitMemory.h"

#include "conversion/LLVMToSPIRV/AddressSpaces.h"

using namespace mlir;

namespace costate::conversion {

static bool acquires(LLVM::AtomicOrdering order) {
  using Order = LLVM::AtomicOrdering;
  return order == Order::acquire || order == Order::acq_rel ||
         order == Order::seq_cst;
}

static bool releases(LLVM::AtomicOrdering order) {
  using Order = LLVM::AtomicOrdering;
  return order == Order::release || order == Order::acq_rel ||
         order == Order::seq_cst;
}

static constexpr const char *fence = "costate_device_fence();";

/// What `access` writes, with fences as `order` says.
static LogicalResult inOrder(Emission &e, LLVM::AtomicOrdering order,
                             llvm::function_ref<LogicalResult()> access) {
  if (releases(order))
    e.line(fence);
  if (failed(access()))
    return failure();
  if (acquires(order))
    e.line(fence);
  return success();
}

/// The function `name` of words or of 64 bits, at `address`.
static std::string atomic(Emission &e, const Twine &name, unsigned bits,
                          Value address, ArrayRef<std::string> values) {
  SmallVector<std::string> arguments;
  if (bits == 64)
    arguments.push_back("launch");
  arguments.push_back(placeOf(e, address));
  llvm::append_range(arguments, values);
  return call("costate_atomic" + Twine(bits) + "_" + name, arguments);
}

bool isAtomicAccess(Type type, LLVM::AtomicOrdering order) {
  return order != LLVM::AtomicOrdering::not_atomic &&
         storedBits(type) >= metalWordBits;
}

LogicalResult emitAtomicLoad(Emission &e, LLVM::LoadOp op) {
  std::string word =
      atomic(e, "load", storedBits(op.getType()), op.getAddr(), {});
  return inOrder(e, op.getOrdering(),
                 [&] { return e.set(op, fromBits(word, op.getType())); });
}

LogicalResult emitAtomicStore(Emission &e, LLVM::StoreOp op) {
  Type type = op.getValue().getType();
  std::string statement = atomic(e, "store", storedBits(type), op.getAddr(),
                                 {toBits(e.get(op.getValue()), type)});
  return inOrder(e, op.getOrdering(), [&] {
    e.line(statement + ";");
    return success();
  });
}

namespace {

const char *nameOf(LLVM::AtomicBinOp kind) {
  using Kind = LLVM::AtomicBinOp;
  switch (kind) {
  case Kind::add:
    return "add";
  case Kind::sub:
    return "sub";
  case Kind::_and:
    return "bit_and";
  case Kind::_or:
    return "bit_or";
  case Kind::_xor:
    return "bit_xor";
  case Kind::max:
    return "max";
  case Kind::min:
    return "min";
  case Kind::umax:
    return "umax";
  case Kind::umin:
    return "umin";
  case Kind::xchg:
    return "exchange";
  case Kind::fadd:
    return "fadd";
  default:
    return nullptr;
  }
}

LogicalResult update(Emission &e, LLVM::AtomicRMWOp op) {
  Type type = op.getVal().getType();
  const char *name = nameOf(op.getBinOp());
  unsigned bits = storedBits(type);
  bool addsFloats = op.getBinOp() == LLVM::AtomicBinOp::fadd;
  if (!name || bits < metalWordBits || addsFloats != isa<FloatType>(type) ||
      (addsFloats && !type.isF32()))
    return e.none(op);
  return inOrder(e, op.getOrdering(), [&] {
    return e.set(op, atomic(e, name, bits, op.getPtr(), {e.get(op.getVal())}));
  });
}

LogicalResult exchange(Emission &e, LLVM::AtomicCmpXchgOp op) {
  Type type = op.getVal().getType();
  unsigned bits = storedBits(type);
  if (bits < metalWordBits || isa<FloatType>(type))
    return e.none(op);
  const std::string &expected = e.get(op.getCmp());
  std::string old = e.fresh();
  auto access = [&] {
    e.line("const " + metalType(type) + " " + old + " = " +
           atomic(e, "compare", bits, op.getPtr(),
                  {expected, e.get(op.getVal())}) +
           ";");
    return success();
  };
  if (failed(inOrder(e, op.getSuccessOrdering(), access)))
    return failure();
  e.parts[op.getResult()] = {old, "(" + old + " == " + expected + ")"};
  return success();
}

LogicalResult fenceAlone(Emission &e, LLVM::FenceOp) {
  e.line(fence);
  return success();
}

} // namespace

llvm::ArrayRef<EmittedOperation> emittedAtomics() {
  static const EmittedOperation all[] = {
      emitted<LLVM::AtomicRMWOp, update>(),
      emitted<LLVM::AtomicCmpXchgOp, exchange>(),
      emitted<LLVM::FenceOp, fenceAlone>(),
  };
  return all;
}

} // namespace costate::conversion
