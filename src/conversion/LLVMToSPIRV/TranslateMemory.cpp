#include "conversion/LLVMToSPIRV/Translator.h"

#include "conversion/LLVMToSPIRV/Prepare.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
namespace spv = mlir::spirv;

namespace costate::conversion {

static constexpr unsigned sharedSpace = 3, wordBytes = 4;

static unsigned spaceOf(Value pointer) {
  return cast<LLVM::LLVMPointerType>(pointer.getType()).getAddressSpace();
}

//===-- Private memory ----------------------------------------------------===//

/// What is done with the memory behind a pointer.
struct Uses {
  SmallVector<Type> accessed;
  bool escapes = false; ///< its place is not known where it is used
};

static void findUses(Value pointer, Uses &uses) {
  for (OpOperand &use : pointer.getUses()) {
    Operation *user = use.getOwner();
    if (isa<LLVM::GEPOp, LLVM::AddrSpaceCastOp>(user))
      findUses(user->getResult(0), uses);
    else if (auto load = dyn_cast<LLVM::LoadOp>(user))
      uses.accessed.push_back(load.getType());
    else if (auto store = dyn_cast<LLVM::StoreOp>(user);
             store && use.getOperandNumber() == 1)
      uses.accessed.push_back(store.getValue().getType());
    else
      uses.escapes = true;
  }
}

/// The element of an array that serves all accesses: their own type, or i32.
static Type elementFor(ArrayRef<Type> accessed, OpBuilder &b) {
  for (Type type : accessed)
    if (type != accessed.front())
      return b.getI32Type();
  if (accessed.empty() || isa<LLVM::LLVMPointerType>(accessed.front()))
    return accessed.empty() ? b.getI32Type() : Type(b.getI64Type());
  return accessed.front();
}

static Value traced(Value pointer) {
  while (Operation *op = pointer.getDefiningOp()) {
    if (!isa<LLVM::GEPOp, LLVM::AddrSpaceCastOp>(op))
      break;
    pointer = op->getOperand(0);
  }
  return pointer;
}

static uint64_t bytesOf(LLVM::AllocaOp op, const DataLayout &layout) {
  auto count = op.getArraySize().getDefiningOp<LLVM::ConstantOp>();
  uint64_t elements =
      count ? cast<IntegerAttr>(count.getValue()).getValue().getZExtValue() : 1;
  return elements * layout.getTypeSize(op.getElemType()).getFixedValue();
}

Translator::Variable Translator::variableOf(uint64_t bytes, Type element,
                                            unsigned elementBytes) {
  uint64_t length =
      std::max<uint64_t>(1, llvm::divideCeil(bytes, elementBytes));
  auto array = spv::ArrayType::get(element, length);
  auto type = spv::PointerType::get(array, spv::StorageClass::Function);
  Variable made;
  made.pointer = spv::VariableOp::create(
      b, type,
      spv::StorageClassAttr::get(b.getContext(), spv::StorageClass::Function),
      Value());
  made.element = element;
  made.bytes = elementBytes;
  return made;
}

void Translator::addVariable(LLVM::AllocaOp memory) {
  Uses uses;
  findUses(memory, uses);
  Type type = elementFor(uses.accessed, b);
  auto number = dyn_cast<IntegerType>(type);
  unsigned elementBytes = std::max(1u, type.getIntOrFloatBitWidth() / 8);
  Type word = number ? wordOf(std::max(number.getWidth(), 32u)) : type;
  variables[memory] = variableOf(bytesOf(memory, layout), word, elementBytes);
}

/// Arrays that pointers may go from one to the other of.
void Translator::addStack(ArrayRef<LLVM::AllocaOp> parts) {
  constexpr uint64_t alignment = 8;
  uint64_t bytes = 0;
  for (LLVM::AllocaOp part : parts) {
    variables[part].offset = bytes;
    bytes += llvm::alignTo(bytesOf(part, layout), alignment);
  }
  stack = variableOf(bytes, b.getI32Type(), wordBytes);
  for (LLVM::AllocaOp part : parts) {
    uint64_t offset = variables[part].offset;
    variables[part] = *stack;
    variables[part].offset = offset;
  }
}

void Translator::prepareVariables() {
  SmallVector<LLVM::AllocaOp> mixed;
  from.walk([&](LLVM::AllocaOp memory) {
    Uses uses;
    findUses(memory, uses);
    if (uses.escapes)
      mixed.push_back(memory);
    else
      addVariable(memory);
  });
  if (!mixed.empty())
    addStack(mixed);
}

FailureOr<Translator::Place> Translator::placeOf(Value pointer,
                                                 Operation *user) {
  Operation *owner = traced(pointer).getDefiningOp();
  auto found = owner ? variables.find(owner) : variables.end();
  if (found != variables.end())
    return Place{&found->second, get(pointer)};
  if (stack && spaceOf(pointer) == privateSpace)
    return Place{&*stack, get(pointer)};
  return user->emitError("the memory behind a pointer is not known");
}

/// The element at a place, and so many behind it.
Value Translator::at(const Place &place, Value element) {
  Type type = spv::PointerType::get(place.variable->element,
                                    spv::StorageClass::Function);
  return spv::AccessChainOp::create(b, type, place.variable->pointer,
                                    ValueRange{element});
}

static Value divided(ImplicitLocOpBuilder &b, Value bytes, Value shift) {
  return spv::ShiftRightLogicalOp::create(b, bytes, shift);
}

Value Translator::loadPrivate(const Place &place, Type type) {
  const Variable &variable = *place.variable;
  unsigned bytes = std::max(1u, type.getIntOrFloatBitWidth() / 8);
  Value index = divided(b, place.bytes, i32(llvm::Log2_32(variable.bytes)));
  if (variable.bytes == bytes) {
    Value word = spv::LoadOp::create(b, at(place, index));
    if (auto number = dyn_cast<IntegerType>(type);
        number && isa<IntegerType>(variable.element))
      return number.getWidth() == 1 ? asBool(word) : word;
    return bitcast(word, typeOf(type));
  }
  auto word = [&](unsigned k) -> Value {
    Value place32 =
        k ? spv::IAddOp::create(b, index, i32(k)).getResult() : index;
    return spv::LoadOp::create(b, at(place, place32));
  };
  if (bytes > variable.bytes && variable.bytes < wordBytes) {
    Type number = b.getIntegerType(std::max(8 * bytes, 32u));
    Value all = resized(word(0), number);
    for (unsigned k = 1; k < bytes / variable.bytes; ++k) {
      Value shift = integer(number, APInt(64, 8 * k * variable.bytes));
      all = spv::BitwiseOrOp::create(
          b, all,
          spv::ShiftLeftLogicalOp::create(b, resized(word(k), number), shift));
    }
    return bitcast(all, typeOf(type));
  }
  if (bytes == 2 * wordBytes) {
    Value low = resized(word(0), b.getI64Type());
    Value high = spv::ShiftLeftLogicalOp::create(
        b, resized(word(1), b.getI64Type()), i64(32));
    return bitcast(spv::BitwiseOrOp::create(b, low, high), typeOf(type));
  }
  if (bytes == wordBytes)
    return bitcast(word(0), typeOf(type));
  Value within = spv::BitwiseAndOp::create(b, place.bytes, i32(3));
  Value shift = spv::ShiftLeftLogicalOp::create(b, within, i32(3));
  Value part =
      masked(spv::ShiftRightLogicalOp::create(b, word(0), shift), 8 * bytes);
  if (type.isInteger(1))
    return asBool(part);
  return isa<FloatType>(type) ? bitcast(part, type) : part;
}

void Translator::storePrivate(const Place &place, Value value, Type type) {
  const Variable &variable = *place.variable;
  unsigned bytes = std::max(1u, type.getIntOrFloatBitWidth() / 8);
  Value index = divided(b, place.bytes, i32(llvm::Log2_32(variable.bytes)));
  if (type.isInteger(1))
    value = resized(value, b.getI32Type());
  if (variable.bytes == bytes) {
    spv::StoreOp::create(b, at(place, index), bitcast(value, variable.element));
    return;
  }
  auto put = [&](unsigned k, Value word) {
    Value place32 =
        k ? spv::IAddOp::create(b, index, i32(k)).getResult() : index;
    spv::StoreOp::create(b, at(place, place32), word);
  };
  if (bytes == 2 * wordBytes) {
    Value wide = bitcast(value, b.getI64Type());
    put(0, resized(wide, b.getI32Type()));
    Value high = spv::ShiftRightLogicalOp::create(b, wide, i64(32));
    return put(1, resized(high, b.getI32Type()));
  }
  if (bytes == wordBytes)
    return put(0, bitcast(value, b.getI32Type()));
  Value within = spv::BitwiseAndOp::create(b, place.bytes, i32(3));
  Value shift = spv::ShiftLeftLogicalOp::create(b, within, i32(3));
  Value mask =
      spv::ShiftLeftLogicalOp::create(b, i32((1u << 8 * bytes) - 1), shift);
  Value old = spv::LoadOp::create(b, at(place, index));
  Value others = spv::BitwiseAndOp::create(b, old, spv::NotOp::create(b, mask));
  Value own = spv::ShiftLeftLogicalOp::create(
      b,
      isa<FloatType>(value.getType()) ? bitcast(value, b.getI32Type()) : value,
      shift);
  put(0, spv::BitwiseOrOp::create(b, others, own));
}

//===-- Memory of a block -------------------------------------------------===//

Value Translator::sharedWord(Value bytes, unsigned index) {
  Value word = divided(b, bytes, i32(2));
  if (index)
    word = spv::IAddOp::create(b, word, i32(index));
  Value memory = spv::AddressOfOp::create(b, module.blockMemory());
  return spv::AccessChainOp::create(
      b, spv::PointerType::get(b.getI32Type(), spv::StorageClass::Workgroup),
      memory, ValueRange{word});
}

/// Seen by others behind a barrier.
Value Translator::loadSharedWord(Value bytes, unsigned index) {
  auto access = sharedAccess();
  return spv::LoadOp::create(b, sharedWord(bytes, index), access,
                             IntegerAttr());
}

void Translator::storeSharedWord(Value bytes, unsigned index, Value word) {
  auto access = sharedAccess();
  spv::StoreOp::create(b, sharedWord(bytes, index), word, access,
                       IntegerAttr());
}

spv::MemoryAccessAttr Translator::sharedAccess() {
  if (!module.features().memoryModel)
    return {};
  return spv::MemoryAccessAttr::get(b.getContext(),
                                    spv::MemoryAccess::NonPrivatePointer);
}

Value Translator::loadShared(Value bytes, Type type) {
  unsigned size = std::max(1u, type.getIntOrFloatBitWidth() / 8);
  Value low = loadSharedWord(bytes, 0);
  if (size == wordBytes)
    return bitcast(low, typeOf(type));
  if (size == 2 * wordBytes) {
    Value high = loadSharedWord(bytes, 1);
    high = spv::ShiftLeftLogicalOp::create(b, resized(high, b.getI64Type()),
                                           i64(32));
    Value both =
        spv::BitwiseOrOp::create(b, resized(low, b.getI64Type()), high);
    return bitcast(both, typeOf(type));
  }
  Value within = spv::BitwiseAndOp::create(b, bytes, i32(3));
  Value shift = spv::ShiftLeftLogicalOp::create(b, within, i32(3));
  Value part =
      masked(spv::ShiftRightLogicalOp::create(b, low, shift), 8 * size);
  if (type.isInteger(1))
    return asBool(part);
  return isa<FloatType>(type) ? bitcast(part, type) : part;
}

LogicalResult Translator::storeShared(Value bytes, Value value, Type type) {
  unsigned size = type.getIntOrFloatBitWidth() / 8;
  if (size == wordBytes) {
    storeSharedWord(bytes, 0, bitcast(value, b.getI32Type()));
    return success();
  }
  if (size == 2 * wordBytes) {
    Value wide = bitcast(value, b.getI64Type());
    storeSharedWord(bytes, 0, resized(wide, b.getI32Type()));
    Value high = spv::ShiftRightLogicalOp::create(b, wide, i64(32));
    storeSharedWord(bytes, 1, resized(high, b.getI32Type()));
    return success();
  }
  // Other threads may write the rest of the word.
  unsigned bits = type.isInteger(1) ? 8 : type.getIntOrFloatBitWidth();
  if (type.isInteger(1))
    value = resized(value, b.getI32Type());
  Value within = spv::BitwiseAndOp::create(b, bytes, i32(3));
  Value shift = spv::ShiftLeftLogicalOp::create(b, within, i32(3));
  Value mask = spv::ShiftLeftLogicalOp::create(b, i32((1u << bits) - 1), shift);
  Value own =
      isa<FloatType>(value.getType()) ? bitcast(value, b.getI32Type()) : value;
  own = spv::ShiftLeftLogicalOp::create(b, own, shift);
  Value word = sharedWord(bytes, 0);
  constexpr auto scope = spv::Scope::Workgroup;
  constexpr auto order = spv::MemorySemantics::None;
  spv::AtomicAndOp::create(b, b.getI32Type(), word, scope, order,
                           spv::NotOp::create(b, mask));
  spv::AtomicOrOp::create(b, b.getI32Type(), word, scope, order, own);
  return success();
}

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

static unsigned alignmentOf(std::optional<uint64_t> given, Type stored) {
  return given.value_or(stored.getIntOrFloatBitWidth() / 8);
}

Value Translator::loadGlobal(Value address, Type type, LLVM::LoadOp op) {
  Type stored = storedAs(type, b);
  module.needStorage(stored);
  Value pointer = globalPointer(address, stored);
  Value value = spv::LoadOp::create(
      b, pointer,
      access(op.getVolatile_() ||
             op.getOrdering() != LLVM::AtomicOrdering::not_atomic),
      b.getI32IntegerAttr(alignmentOf(op.getAlignment(), stored)));
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
      b.getI32IntegerAttr(alignmentOf(op.getAlignment(), stored)));
}

/// Of a table, from the words that the value lies in. Drivers know no addresses
/// of numbers but multiples of their size.
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
    Value number = index.getType() == word ? index
                   : word.isInteger(64)
                       ? Value(spv::SConvertOp::create(b, word, index))
                       : resized(index, word);
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
  if (isGlobal(space))
    return set(op, loadGlobal(address, type, op));
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
  if (space == sharedSpace)
    return storeShared(address, value, type);
  if (space <= 1) {
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
    return set(op,
               spv::AtomicExchangeOp::create(b, type, at, scope, order, value));
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
      semantics(op.getFailureOrdering()), get(op.getVal()), expected);
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
