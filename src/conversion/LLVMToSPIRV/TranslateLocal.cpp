/// Memory of a thread and of a block.

#include "conversion/LLVMToSPIRV/Prepare.h"
#include "conversion/LLVMToSPIRV/Translator.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
namespace spv = mlir::spirv;

namespace costate::conversion {

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

/// The element at a place, and so many after it.
Value Translator::at(const Place &place, Value element) {
  Type type = spv::PointerType::get(place.variable->element,
                                    spv::StorageClass::Function);
  return spv::AccessChainOp::create(b, type, place.variable->pointer,
                                    ValueRange{element});
}

/// `bytes` / 2^`log`, if it is known to be a whole number.
static Value quotient(ImplicitLocOpBuilder &b, Value bytes, unsigned log) {
  auto part = [&](Value value) -> Value {
    APInt number;
    if (!matchPattern(value, m_ConstantInt(&number)) ||
        number.countr_zero() < log)
      return {};
    Type type = value.getType();
    return spv::ConstantOp::create(b, type,
                                   IntegerAttr::get(type, number.ashr(log)));
  };
  if (Value number = part(bytes))
    return number;
  if (auto product = bytes.getDefiningOp<spv::IMulOp>())
    if (Value factor = part(product.getOperand2()))
      return spv::IMulOp::create(b, product.getOperand1(), factor);
  return {};
}

/// `bytes` / 2^`log`, rounded down, also where parts of a sum are negative.
/// Numbers of elements stay what they are, so that drivers see where accesses
/// are: not NVIDIA's, which makes wrong code of loops then.
Value Translator::divided(Value bytes, unsigned log) {
  bool inParts = !module.features().miscompilesPlaceSums;
  if (inParts || matchPattern(bytes, m_Constant()))
    if (Value whole = quotient(b, bytes, log))
      return whole;
  if (auto sum = bytes.getDefiningOp<spv::IAddOp>(); sum && inParts) {
    Value one = sum.getOperand1(), other = sum.getOperand2();
    if (Value whole = quotient(b, other, log))
      return spv::IAddOp::create(b, divided(one, log), whole);
    if (Value whole = quotient(b, one, log))
      return spv::IAddOp::create(b, divided(other, log), whole);
  }
  if (log == 0)
    return inParts ? bytes : perLane(bytes);
  Type type = bytes.getType();
  Value shift = spv::ConstantOp::create(b, type, IntegerAttr::get(type, log));
  return spv::ShiftRightArithmeticOp::create(b, bytes, shift);
}

//===-- Words -------------------------------------------------------------===//

/// A number of 64 bits in two words.
Value Translator::joined(Value low, Value high, Type type) {
  Value top = spv::ShiftLeftLogicalOp::create(b, resized(high, b.getI64Type()),
                                              i64(32));
  Value both = spv::BitwiseOrOp::create(b, resized(low, b.getI64Type()), top);
  return bitcast(both, typeOf(type));
}

std::pair<Value, Value> Translator::halves(Value value) {
  Value wide = bitcast(value, b.getI64Type());
  Value high = spv::ShiftRightLogicalOp::create(b, wide, i64(32));
  return {resized(wide, b.getI32Type()), resized(high, b.getI32Type())};
}

/// By how many bits a part of a word is above its end.
Value Translator::shiftOf(Value bytes) {
  Value within = spv::BitwiseAndOp::create(b, bytes, i32(3));
  return spv::ShiftLeftLogicalOp::create(b, within, i32(3));
}

/// A number of 8 or 16 bits in a word.
Value Translator::partOf(Value word, Value bytes, Type type) {
  unsigned bits = std::max(8u, type.getIntOrFloatBitWidth());
  Value part =
      masked(spv::ShiftRightLogicalOp::create(b, word, shiftOf(bytes)), bits);
  if (type.isInteger(1))
    return asBool(part);
  return isa<FloatType>(type) ? bitcast(part, type) : part;
}

/// The word with nothing but `value` in it, and a mask of its other bits.
Translator::Part Translator::placed(Value value, Value bytes, Type type) {
  unsigned bits = std::max(8u, type.getIntOrFloatBitWidth());
  if (isa<FloatType>(value.getType()))
    value = bitcast(value, b.getI32Type());
  Value shift = shiftOf(bytes);
  Value own =
      spv::ShiftLeftLogicalOp::create(b, resized(value, b.getI32Type()), shift);
  Value mask = spv::ShiftLeftLogicalOp::create(b, i32((1u << bits) - 1), shift);
  return {own, spv::NotOp::create(b, mask)};
}

//===-- Accesses of private memory ----------------------------------------===//

Value Translator::loadPrivate(const Place &place, Type type) {
  const Variable &variable = *place.variable;
  unsigned bytes = std::max(1u, type.getIntOrFloatBitWidth() / 8);
  Value index = divided(place.bytes, llvm::Log2_32(variable.bytes));
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
  if (bytes == 2 * wordBytes) {
    Value low = word(0);
    return joined(low, word(1), type);
  }
  if (bytes == wordBytes)
    return bitcast(word(0), typeOf(type));
  return partOf(word(0), place.bytes, type);
}

void Translator::storePrivate(const Place &place, Value value, Type type) {
  const Variable &variable = *place.variable;
  unsigned bytes = std::max(1u, type.getIntOrFloatBitWidth() / 8);
  Value index = divided(place.bytes, llvm::Log2_32(variable.bytes));
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
    auto [low, high] = halves(value);
    put(0, low);
    return put(1, high);
  }
  if (bytes == wordBytes)
    return put(0, bitcast(value, b.getI32Type()));
  auto [own, others] = placed(value, place.bytes, type);
  Value old = spv::LoadOp::create(b, at(place, index));
  Value kept = spv::BitwiseAndOp::create(b, old, others);
  put(0, spv::BitwiseOrOp::create(b, kept, own));
}

//===-- Memory of a block -------------------------------------------------===//

Value Translator::sharedWord(Value bytes, unsigned index) {
  Value word = divided(bytes, 2);
  if (index)
    word = spv::IAddOp::create(b, word, i32(index));
  Value memory = spv::AddressOfOp::create(b, module.blockMemory());
  return spv::AccessChainOp::create(
      b, spv::PointerType::get(b.getI32Type(), spv::StorageClass::Workgroup),
      memory, ValueRange{word});
}

/// Seen by others after a barrier.
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
  if (size == 2 * wordBytes)
    return joined(low, loadSharedWord(bytes, 1), type);
  return partOf(low, bytes, type);
}

void Translator::storeShared(Value bytes, Value value, Type type) {
  unsigned size = type.getIntOrFloatBitWidth() / 8;
  if (size == wordBytes)
    return storeSharedWord(bytes, 0, bitcast(value, b.getI32Type()));
  if (size == 2 * wordBytes) {
    auto [low, high] = halves(value);
    storeSharedWord(bytes, 0, low);
    return storeSharedWord(bytes, 1, high);
  }
  // Other threads may write the rest of the word.
  auto [own, others] = placed(value, bytes, type);
  Value word = sharedWord(bytes, 0);
  constexpr auto scope = spv::Scope::Workgroup;
  constexpr auto order = spv::MemorySemantics::None;
  spv::AtomicAndOp::create(b, b.getI32Type(), word, scope, order, others);
  spv::AtomicOrOp::create(b, b.getI32Type(), word, scope, order, own);
}

} // namespace costate::conversion
