#include "conversion/LLVMToSPIRV/AddressSpaces.h"
#include "conversion/LLVMToSPIRV/Atomics.h"
#include "conversion/LLVMToSPIRV/BlockMemory.h"
#include "conversion/LLVMToSPIRV/GlobalMemory.h"
#include "conversion/LLVMToSPIRV/Lanes.h"
#include "conversion/LLVMToSPIRV/Operations.h"

using namespace mlir;
namespace spv = mlir::spirv;

namespace costate::conversion {

static constexpr auto scope = spv::Scope::Device;

spv::MemorySemantics semantics(const VulkanFeatures &features,
                               LLVM::AtomicOrdering order) {
  using Is = spv::MemorySemantics;
  using Order = LLVM::AtomicOrdering;
  bool isBoth = order == Order::acq_rel || order == Order::seq_cst;
  bool acquires = isBoth || order == Order::acquire;
  bool releases = isBoth || order == Order::release;
  if (!acquires && !releases)
    return Is::None;
  auto result = isBoth     ? Is::AcquireRelease
                : acquires ? Is::Acquire
                           : Is::Release;
  if (features.memoryModel && acquires)
    result = result | Is::MakeVisible;
  if (features.memoryModel && releases)
    result = result | Is::MakeAvailable;
  return result | Is::UniformMemory;
}

static FailureOr<Value> pointerTo(Translation &t, Value pointer, Type type,
                                  Operation *op) {
  unsigned space = spaceOf(pointer), bits = type.getIntOrFloatBitWidth();
  if (bits < wordBits)
    return op->emitError("atomics of ") << bits << " bits are not expanded";
  if (space == sharedSpace && bits == wordBits)
    return blockWord(t.b, t.get(pointer), 0);
  if (space > 1)
    return op->emitError("there are no atomics of ")
           << bits << " bits in address space " << space;
  if (isa<IntegerType>(type) && bits == 64)
    t.b.module.need(spv::Capability::Int64Atomics);
  return globalPointer(t.b, t.get(pointer), type);
}

//===-- Loads and stores --------------------------------------------------===//

bool isAtomic(Type type, LLVM::AtomicOrdering order) {
  return order != LLVM::AtomicOrdering::not_atomic &&
         (isa<LLVM::LLVMPointerType>(type) ||
          type.getIntOrFloatBitWidth() >= wordBits);
}

static Type bitsOf(SpirvBuilder &b, Type type) {
  return b.getIntegerType(storedAs(type, b).getIntOrFloatBitWidth());
}

LogicalResult loadAtomic(Translation &t, LLVM::LoadOp op) {
  SpirvBuilder &b = t.b;
  Type word = bitsOf(b, op.getType());
  auto pointer = pointerTo(t, op.getAddr(), word, op);
  if (failed(pointer))
    return failure();
  auto order = semantics(b.features(), op.getOrdering());
  Value value =
      spv::AtomicOrOp::create(b, word, *pointer, scope, order, b.zeroOf(word));
  return t.set(op, b.bitcast(value, b.typeOf(op.getType())));
}

LogicalResult storeAtomic(Translation &t, LLVM::StoreOp op) {
  SpirvBuilder &b = t.b;
  Type word = bitsOf(b, op.getValue().getType());
  auto pointer = pointerTo(t, op.getAddr(), word, op);
  if (failed(pointer))
    return failure();
  auto order = semantics(b.features(), op.getOrdering());
  spv::AtomicExchangeOp::create(b, word, *pointer, scope, order,
                                b.bitcast(t.get(op.getValue()), word));
  return success();
}

//===-- Updates -----------------------------------------------------------===//

namespace {

/// What an update consists of.
struct Update {
  SpirvBuilder &b;
  Value pointer, value;
  spv::MemorySemantics order;
};
using MakeUpdate = Value (*)(const Update &);

template <class To> Value make(const Update &u) {
  return To::create(u.b, u.value.getType(), u.pointer, scope, u.order, u.value);
}

/// What an atomic operation stores: hidden where a driver must not know that it
/// is an f64.
Value exchanged(SpirvBuilder &b, Value number) {
  bool mayBeF64 = number.getType().isInteger(64);
  return mayBeF64 && b.features().crashesOnExchangedF64 ? perLane(b, number)
                                                        : number;
}

Value makeExchange(const Update &u) {
  return make<spv::AtomicExchangeOp>(
      {u.b, u.pointer, exchanged(u.b, u.value), u.order});
}

Value makeFloatSum(const Update &u) {
  SpirvModule &module = u.b.module;
  module.need(spv::Extension::SPV_EXT_shader_atomic_float_add);
  module.need(u.value.getType().isF64() ? spv::Capability::AtomicFloat64AddEXT
                                        : spv::Capability::AtomicFloat32AddEXT);
  return spv::EXTAtomicFAddOp::create(u.b, u.pointer, scope, u.order, u.value);
}

MakeUpdate updateOf(LLVM::AtomicBinOp kind) {
  using Kind = LLVM::AtomicBinOp;
  switch (kind) {
  case Kind::add:
    return make<spv::AtomicIAddOp>;
  case Kind::sub:
    return make<spv::AtomicISubOp>;
  case Kind::_and:
    return make<spv::AtomicAndOp>;
  case Kind::_or:
    return make<spv::AtomicOrOp>;
  case Kind::_xor:
    return make<spv::AtomicXorOp>;
  case Kind::max:
    return make<spv::AtomicSMaxOp>;
  case Kind::min:
    return make<spv::AtomicSMinOp>;
  case Kind::umax:
    return make<spv::AtomicUMaxOp>;
  case Kind::umin:
    return make<spv::AtomicUMinOp>;
  case Kind::xchg:
    return makeExchange;
  case Kind::fadd:
    return makeFloatSum;
  default:
    return nullptr;
  }
}

LogicalResult update(Translation &t, LLVM::AtomicRMWOp op) {
  Value value = t.get(op.getVal());
  auto pointer = pointerTo(t, op.getPtr(), op.getVal().getType(), op);
  if (failed(pointer))
    return failure();
  auto order = semantics(t.b.features(), op.getOrdering());
  MakeUpdate make = updateOf(op.getBinOp());
  return make ? t.set(op, make({t.b, *pointer, value, order})) : t.none(op);
}

LogicalResult exchange(Translation &t, LLVM::AtomicCmpXchgOp op) {
  SpirvBuilder &b = t.b;
  Type word = b.typeOf(op.getVal().getType());
  auto pointer = pointerTo(t, op.getPtr(), word, op);
  if (failed(pointer))
    return failure();
  Value expected = t.get(op.getCmp());
  Value old = spv::AtomicCompareExchangeOp::create(
      b, word, *pointer, scope,
      semantics(b.features(), op.getSuccessOrdering()),
      semantics(b.features(), op.getFailureOrdering()),
      exchanged(b, t.get(op.getVal())), expected);
  Value isDone = spv::IEqualOp::create(b, old, expected);
  t.parts[op.getResult()] = {old, isDone};
  return success();
}

LogicalResult fence(Translation &t, LLVM::FenceOp op) {
  spv::MemoryBarrierOp::create(t.b, scope,
                               semantics(t.b.features(), op.getOrdering()));
  return success();
}

} // namespace

llvm::ArrayRef<KnownOperation> atomicOperations() {
  static const KnownOperation all[] = {
      row<LLVM::AtomicRMWOp, update>(),
      row<LLVM::AtomicCmpXchgOp, exchange>(),
      row<LLVM::FenceOp, fence>(),
  };
  return all;
}

} // namespace costate::conversion
