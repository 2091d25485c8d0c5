#include "conversion/LLVMToSPIRV/Translator.h"

using namespace mlir;
namespace spv = mlir::spirv;

namespace costate::conversion {

static constexpr unsigned sharedSpace = 3;

//===-- Global memory -----------------------------------------------------===//

Value Translator::globalPointer(Value address, Type type) {
  return spv::ConvertUToPtrOp::create(
      b, spv::PointerType::get(type, spv::StorageClass::PhysicalStorageBuffer),
      address);
}

spv::MemoryAccessAttr Translator::access(bool isVolatile) {
  auto kind = spv::MemoryAccess::Aligned;
  if (isVolatile)
    kind = kind | spv::MemoryAccess::Volatile;
  if (module.features().memoryModel)
    kind = kind | spv::MemoryAccess::NonPrivatePointer;
  return spv::MemoryAccessAttr::get(b.getContext(), kind);
}

/// What memory has of a type: numbers of 8 and 16 bits as such.
static Type storedAs(Type type, OpBuilder &b) {
  if (isa<LLVM::LLVMPointerType>(type))
    return b.getI64Type();
  if (type.isInteger(1))
    return b.getIntegerType(8);
  return type;
}

static unsigned sizeOf(Type stored) {
  return stored.getIntOrFloatBitWidth() / 8;
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

Value Translator::loadGlobal(Value address, Type type, LLVM::LoadOp op) {
  Type stored = storedAs(type, b);
  module.needStorage(stored);
  Value pointer = globalPointer(address, stored);
  Value value = spv::LoadOp::create(
      b, pointer,
      access(op.getVolatile_() ||
             op.getOrdering() != LLVM::AtomicOrdering::not_atomic),
      b.getI32IntegerAttr(op.getAlignment().value_or(sizeOf(stored))));
  if (!isa<IntegerType>(stored))
    return value;
  value = resized(value, wordOf(stored.getIntOrFloatBitWidth()));
  return type.isInteger(1) ? asBool(value) : value;
}

void Translator::storeGlobal(Value address, Value value, Type type,
                             LLVM::StoreOp op) {
  Type stored = storedAs(type, b);
  module.needStorage(stored);
  if (isa<IntegerType>(stored))
    value = resized(value, stored);
  spv::StoreOp::create(
      b, globalPointer(address, stored), value,
      access(op.getVolatile_() ||
             op.getOrdering() != LLVM::AtomicOrdering::not_atomic),
      b.getI32IntegerAttr(op.getAlignment().value_or(sizeOf(stored))));
}

/// Of a table, from the words that the value lies in.
Value Translator::loadUnaligned(Value address, Type type) {
  unsigned bits = type.getIntOrFloatBitWidth();
  Type word = bits > 32 ? b.getI64Type() : b.getI32Type();
  int64_t size = word.getIntOrFloatBitWidth() / 8;
  Value start = spv::BitwiseAndOp::create(b, address, i64(-size));
  auto part = [&](int64_t offset) -> Value {
    Value place = spv::IAddOp::create(b, start, i64(offset));
    return spv::LoadOp::create(b, globalPointer(place, word), access(false),
                               b.getI32IntegerAttr(size));
  };
  auto number = [&](int64_t value) {
    return integer(word, APInt(64, value, true, true));
  };
  Value within =
      resized(spv::BitwiseAndOp::create(b, address, i64(size - 1)), word);
  Value shift = spv::ShiftLeftLogicalOp::create(b, within, number(3));
  Value low = spv::ShiftRightLogicalOp::create(b, part(0), shift);
  // In two steps: the whole word must be shifted out where `shift` is 0.
  Value high = spv::ShiftLeftLogicalOp::create(b, part(size), number(1));
  high = spv::ShiftLeftLogicalOp::create(
      b, high, spv::ISubOp::create(b, number(8 * size - 1), shift));
  Value value = spv::BitwiseOrOp::create(b, low, high);
  if (bits < 32)
    value = masked(value, bits);
  return isa<FloatType>(type) ? bitcast(value, type) : value;
}

//===-- Addresses ---------------------------------------------------------===//

/// The bytes of what numbers are in memory.
static std::string bytesOf(DenseElementsAttr numbers) {
  std::string bytes;
  auto add = [&](const APInt &number) {
    for (unsigned at = 0; at < number.getBitWidth(); at += 8)
      bytes += static_cast<char>(number.lshr(at).trunc(8).getZExtValue());
  };
  if (isa<FloatType>(numbers.getElementType()))
    for (const APFloat &number : numbers.getValues<APFloat>())
      add(number.bitcastToAPInt());
  else
    for (const APInt &number : numbers.getValues<APInt>())
      add(number.zext(llvm::alignTo(number.getBitWidth(), 8)));
  return bytes;
}

FailureOr<Value> Translator::tableOf(LLVM::AddressOfOp op) {
  auto table = SymbolTable::lookupNearestSymbolFrom<LLVM::GlobalOp>(
      op, op.getGlobalNameAttr());
  Attribute contents = table.getValueOrNull();
  std::string bytes;
  if (auto text = dyn_cast_or_null<StringAttr>(contents))
    bytes = text.str();
  else if (auto numbers = dyn_cast_or_null<DenseElementsAttr>(contents))
    bytes = bytesOf(numbers);
  else if (isa_and_nonnull<LLVM::ZeroAttr>(contents))
    bytes.resize(layout.getTypeSize(table.getGlobalType()).getFixedValue());
  else
    return op.emitError("the contents of a table are not numbers");
  uint64_t start = module.placeTable(op.getGlobalName(), bytes);
  return spv::IAddOp::create(b, launchWord(Tables), i64(start)).getResult();
}

LogicalResult Translator::addressOp(Operation *op) {
  if (isa<LLVM::AllocaOp>(op))
    return set(op, i32(variables[op].offset));
  if (auto address = dyn_cast<LLVM::AddressOfOp>(op)) {
    if (spaceOf(address) == constantSpace) {
      FailureOr<Value> table = tableOf(address);
      return failed(table) ? failure() : set(op, *table);
    }
    auto start = shared.find(address.getGlobalName());
    if (spaceOf(address) == sharedSpace && start != shared.end())
      return set(op, i32(start->second));
    return none(op);
  }
  Value x = operand(op, 0);
  unsigned from = spaceOf(op->getOperand(0)), to = spaceOf(op->getResult(0));
  if (from == sharedSpace && to == 0) {
    Value tag = i64(sharedTag << sharedTagShift);
    return set(op,
               spv::BitwiseOrOp::create(b, resized(x, b.getI64Type()), tag));
  }
  if (from == 0 && to == sharedSpace)
    return set(op, resized(x, b.getI32Type()));
  if ((isGlobal(from) && isGlobal(to)) || from == to)
    return set(op, x);
  if (op->use_empty())
    return success();
  return none(op);
}

LogicalResult Translator::offsetOp(LLVM::GEPOp op) {
  Value address = get(op.getBase());
  Type word = address.getType();
  Type at = op.getElemType();
  int64_t known = 0;
  auto add = [&](Value more) {
    address = spv::IAddOp::create(b, address, more);
  };
  auto scaled = [&](Value index, int64_t size) -> Value {
    Value number =
        word.isInteger(64) ? widened(index, word) : resized(index, word);
    if (size == 1)
      return number;
    return spv::IMulOp::create(b, number, integer(word, APInt(64, size)));
  };
  bool isFirst = true;
  for (auto index : op.getIndices()) {
    if (!isFirst) {
      if (auto array = dyn_cast<LLVM::LLVMArrayType>(at)) {
        at = array.getElementType();
      } else if (auto record = dyn_cast<LLVM::LLVMStructType>(at)) {
        auto field = dyn_cast<IntegerAttr>(index);
        if (!field)
          return none(op);
        int64_t offset = 0, which = field.getInt();
        for (int64_t k = 0; k <= which; ++k) {
          Type part = record.getBody()[k];
          if (!record.isPacked())
            offset = llvm::alignTo(offset, layout.getTypeABIAlignment(part));
          if (k < which)
            offset += layout.getTypeSize(part).getFixedValue();
        }
        known += offset;
        at = record.getBody()[which];
        continue;
      } else {
        return none(op);
      }
    }
    isFirst = false;
    int64_t size = layout.getTypeSize(at).getFixedValue();
    size = llvm::alignTo(size, layout.getTypeABIAlignment(at));
    if (auto constant = dyn_cast<IntegerAttr>(index))
      known += constant.getInt() * size;
    else
      add(scaled(get(cast<Value>(index)), size));
  }
  if (known)
    add(integer(word, APInt(64, known, true, true)));
  return set(op, address);
}

//===-- Accesses ----------------------------------------------------------===//

/// Narrow elements are read and written as a whole anyway.
static bool isAtomicWord(Type type, LLVM::AtomicOrdering order) {
  return order != LLVM::AtomicOrdering::not_atomic &&
         (isa<LLVM::LLVMPointerType>(type) ||
          type.getIntOrFloatBitWidth() >= 8 * wordBytes);
}

LogicalResult Translator::load(LLVM::LoadOp op) {
  Type type = op.getType();
  if (!typeOf(type))
    return none(op);
  Value address = get(op.getAddr());
  unsigned space = spaceOf(op.getAddr());
  if (isAtomicWord(type, op.getOrdering())) {
    Type word = b.getIntegerType(storedAs(type, b).getIntOrFloatBitWidth());
    auto pointer = atomicPointer(op.getAddr(), word, op);
    if (failed(pointer))
      return failure();
    Value value =
        spv::AtomicOrOp::create(b, word, *pointer, spv::Scope::Device,
                                semantics(op.getOrdering()), zeroOf(word));
    return set(op, bitcast(value, typeOf(type)));
  }
  if (space == sharedSpace)
    return set(op, loadShared(address, storedAs(type, b) == b.getI64Type()
                                           ? b.getI64Type()
                                           : type));
  bool isTable = space == constantSpace;
  if (isTable &&
      8 * op.getAlignment().value_or(8) < type.getIntOrFloatBitWidth())
    return set(op, loadUnaligned(address, type));
  if (isGlobal(space)) {
    if (failed(checkAligned(op, op.getAlignment(), storedAs(type, b))))
      return failure();
    return set(op, loadGlobal(address, type, op));
  }
  auto place = placeOf(op.getAddr(), op);
  if (failed(place))
    return failure();
  bool isPointer = isa<LLVM::LLVMPointerType>(type);
  return set(op, loadPrivate(*place, isPointer ? Type(b.getI64Type()) : type));
}

LogicalResult Translator::store(LLVM::StoreOp op) {
  Type type = op.getValue().getType();
  if (!typeOf(type))
    return none(op);
  Value address = get(op.getAddr()), value = get(op.getValue());
  unsigned space = spaceOf(op.getAddr());
  if (isAtomicWord(type, op.getOrdering())) {
    Type word = b.getIntegerType(storedAs(type, b).getIntOrFloatBitWidth());
    auto pointer = atomicPointer(op.getAddr(), word, op);
    if (failed(pointer))
      return failure();
    spv::AtomicExchangeOp::create(b, word, *pointer, spv::Scope::Device,
                                  semantics(op.getOrdering()),
                                  bitcast(value, word));
    return success();
  }
  if (isa<LLVM::LLVMPointerType>(type)) {
    if (spaceOf(op.getValue()) > 1)
      return none(op);
    type = b.getI64Type();
  }
  if (space == sharedSpace) {
    storeShared(address, value, type);
    return success();
  }
  if (space <= 1) {
    if (failed(checkAligned(op, op.getAlignment(), storedAs(type, b))))
      return failure();
    storeGlobal(address, value, type, op);
    return success();
  }
  auto place = placeOf(op.getAddr(), op);
  if (failed(place))
    return failure();
  storePrivate(*place, value, type);
  return success();
}

FailureOr<Value> Translator::atomicPointer(Value pointer, Type type,
                                           Operation *op) {
  unsigned space = spaceOf(pointer), bits = type.getIntOrFloatBitWidth();
  if (bits < 32)
    return op->emitError("atomics of ") << bits << " bits are not expanded";
  if (space == sharedSpace && bits == 32)
    return sharedWord(get(pointer), 0);
  if (space > 1)
    return op->emitError("there are no atomics of ")
           << bits << " bits in address space " << space;
  if (isa<IntegerType>(type) && bits == 64)
    module.need(spv::Capability::Int64Atomics);
  return globalPointer(get(pointer), type);
}

spv::MemorySemantics Translator::semantics(LLVM::AtomicOrdering order) {
  using Is = spv::MemorySemantics;
  bool acquires = false, releases = false;
  switch (order) {
  case LLVM::AtomicOrdering::acquire:
    acquires = true;
    break;
  case LLVM::AtomicOrdering::release:
    releases = true;
    break;
  case LLVM::AtomicOrdering::acq_rel:
    acquires = releases = true;
    break;
  case LLVM::AtomicOrdering::seq_cst:
    acquires = releases = true;
    break;
  default:
    return Is::None;
  }
  bool isModel = module.features().memoryModel;
  auto result = acquires && releases ? Is::AcquireRelease
                : acquires           ? Is::Acquire
                                     : Is::Release;
  if (isModel && acquires)
    result = result | Is::MakeVisible;
  if (isModel && releases)
    result = result | Is::MakeAvailable;
  return result | Is::UniformMemory;
}

/// What an atomic operation stores: hidden where a driver must not know that it
/// is an f64.
Value Translator::exchanged(Value number) {
  bool mayBeF64 = number.getType().isInteger(64);
  return mayBeF64 && module.features().crashesOnExchangedF64 ? perLane(number)
                                                             : number;
}

LogicalResult Translator::update(LLVM::AtomicRMWOp op) {
  using Kind = LLVM::AtomicBinOp;
  Type type = op.getVal().getType();
  Value value = get(op.getVal());
  auto pointer = atomicPointer(op.getPtr(), type, op);
  if (failed(pointer))
    return failure();
  auto order = semantics(op.getOrdering());
  constexpr auto scope = spv::Scope::Device;
  Value at = *pointer;
  switch (op.getBinOp()) {
  case Kind::add:
    return set(op, spv::AtomicIAddOp::create(b, type, at, scope, order, value));
  case Kind::sub:
    return set(op, spv::AtomicISubOp::create(b, type, at, scope, order, value));
  case Kind::_and:
    return set(op, spv::AtomicAndOp::create(b, type, at, scope, order, value));
  case Kind::_or:
    return set(op, spv::AtomicOrOp::create(b, type, at, scope, order, value));
  case Kind::_xor:
    return set(op, spv::AtomicXorOp::create(b, type, at, scope, order, value));
  case Kind::xchg:
    return set(op, spv::AtomicExchangeOp::create(b, type, at, scope, order,
                                                 exchanged(value)));
  case Kind::max:
    return set(op, spv::AtomicSMaxOp::create(b, type, at, scope, order, value));
  case Kind::min:
    return set(op, spv::AtomicSMinOp::create(b, type, at, scope, order, value));
  case Kind::umax:
    return set(op, spv::AtomicUMaxOp::create(b, type, at, scope, order, value));
  case Kind::umin:
    return set(op, spv::AtomicUMinOp::create(b, type, at, scope, order, value));
  case Kind::fadd:
    module.need(spv::Extension::SPV_EXT_shader_atomic_float_add);
    module.need(type.isF64() ? spv::Capability::AtomicFloat64AddEXT
                             : spv::Capability::AtomicFloat32AddEXT);
    return set(op, spv::EXTAtomicFAddOp::create(b, at, scope, order, value));
  default:
    return none(op);
  }
}

LogicalResult Translator::exchange(LLVM::AtomicCmpXchgOp op) {
  Type type = op.getVal().getType();
  Type word = typeOf(type);
  auto pointer = atomicPointer(op.getPtr(), word, op);
  if (failed(pointer))
    return failure();
  Value expected = get(op.getCmp());
  Value old = spv::AtomicCompareExchangeOp::create(
      b, word, *pointer, spv::Scope::Device, semantics(op.getSuccessOrdering()),
      semantics(op.getFailureOrdering()), exchanged(get(op.getVal())),
      expected);
  Value isDone = spv::IEqualOp::create(b, old, expected);
  parts[op.getResult()] = {old, isDone};
  return success();
}

LogicalResult Translator::fence(LLVM::FenceOp op) {
  spv::MemoryBarrierOp::create(b, spv::Scope::Device,
                               semantics(op.getOrdering()));
  return success();
}

} // namespace costate::conversion
