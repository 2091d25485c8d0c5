#include "conversion/LLVMToSPIRV/PrivateMemory.h"

#include "conversion/LLVMToSPIRV/AddressSpaces.h"
#include "conversion/LLVMToSPIRV/Parts.h"
#include "conversion/LLVMToSPIRV/Prepare.h"

using namespace mlir;
namespace spv = mlir::spirv;

namespace costate::conversion {

//===-- Variables ---------------------------------------------------------===//

namespace {
/// What is done with the memory behind a pointer.
struct Uses {
  SmallVector<Type> accessed;
  bool escapes = false; ///< its place is not known where it is used
};
} // namespace

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

uint64_t PrivateMemory::bytesOf(LLVM::AllocaOp op) const {
  auto count = op.getArraySize().getDefiningOp<LLVM::ConstantOp>();
  uint64_t elements =
      count ? cast<IntegerAttr>(count.getValue()).getValue().getZExtValue() : 1;
  return elements * layout.getTypeSize(op.getElemType()).getFixedValue();
}

PrivateMemory::Variable PrivateMemory::variableOf(uint64_t bytes, Type element,
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

void PrivateMemory::addVariable(LLVM::AllocaOp memory) {
  Uses uses;
  findUses(memory, uses);
  Type type = elementFor(uses.accessed, b);
  auto number = dyn_cast<IntegerType>(type);
  unsigned elementBytes = std::max(1u, type.getIntOrFloatBitWidth() / 8);
  Type word = number ? b.wordOf(std::max(number.getWidth(), wordBits)) : type;
  variables[memory] = variableOf(bytesOf(memory), word, elementBytes);
}

void PrivateMemory::addStack(ArrayRef<LLVM::AllocaOp> parts) {
  constexpr uint64_t alignment = 8;
  uint64_t bytes = 0;
  for (LLVM::AllocaOp part : parts) {
    variables[part].offset = bytes;
    bytes += llvm::alignTo(bytesOf(part), alignment);
  }
  stack = variableOf(bytes, b.getI32Type(), wordBytes);
  for (LLVM::AllocaOp part : parts) {
    uint64_t offset = variables[part].offset;
    variables[part] = *stack;
    variables[part].offset = offset;
  }
}

void PrivateMemory::prepare(LLVM::LLVMFuncOp function) {
  SmallVector<LLVM::AllocaOp> mixed;
  function.walk([&](LLVM::AllocaOp memory) {
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

//===-- Places ------------------------------------------------------------===//

static Value traced(Value pointer) {
  while (Operation *op = pointer.getDefiningOp()) {
    if (!isa<LLVM::GEPOp, LLVM::AddrSpaceCastOp>(op))
      break;
    pointer = op->getOperand(0);
  }
  return pointer;
}

Value PrivateMemory::addressOf(LLVM::AllocaOp memory) {
  return b.i32(variables[memory].offset);
}

FailureOr<PrivateMemory::Place>
PrivateMemory::placeOf(Value pointer, Value bytes, Operation *user) {
  Operation *owner = traced(pointer).getDefiningOp();
  auto found = owner ? variables.find(owner) : variables.end();
  if (found != variables.end())
    return Place{&found->second, bytes};
  if (stack && spaceOf(pointer) == privateSpace)
    return Place{&*stack, bytes};
  return user->emitError("the memory behind a pointer is not known");
}

/// Element `index` of the variable, and so many after it.
static Value elementAt(SpirvBuilder &b, const PrivateMemory::Variable &variable,
                       Value index, unsigned further) {
  if (further)
    index = spv::IAddOp::create(b, index, b.i32(further));
  Type type =
      spv::PointerType::get(variable.element, spv::StorageClass::Function);
  return spv::AccessChainOp::create(b, type, variable.pointer,
                                    ValueRange{index});
}

//===-- Accesses ----------------------------------------------------------===//

Value PrivateMemory::load(const Place &place, Type type) {
  const Variable &variable = *place.variable;
  unsigned bytes = std::max(1u, type.getIntOrFloatBitWidth() / 8);
  Value index = divided(b, place.bytes, llvm::Log2_32(variable.bytes));
  auto word = [&](unsigned k) -> Value {
    return spv::LoadOp::create(b, elementAt(b, variable, index, k));
  };
  Value first = word(0);
  if (variable.bytes == bytes) {
    if (isa<IntegerType>(type) && isa<IntegerType>(variable.element))
      return type.isInteger(1) ? b.asBool(first) : first;
    return b.bitcast(first, b.typeOf(type));
  }
  if (bytes == 2 * wordBytes)
    return joined(b, first, word(1), type);
  if (bytes == wordBytes)
    return b.bitcast(first, b.typeOf(type));
  return partOf(b, first, place.bytes, type);
}

void PrivateMemory::store(const Place &place, Value value, Type type) {
  const Variable &variable = *place.variable;
  unsigned bytes = std::max(1u, type.getIntOrFloatBitWidth() / 8);
  Value index = divided(b, place.bytes, llvm::Log2_32(variable.bytes));
  if (type.isInteger(1))
    value = b.resized(value, b.getI32Type());
  if (variable.bytes == bytes) {
    Value at = elementAt(b, variable, index, 0);
    spv::StoreOp::create(b, at, b.bitcast(value, variable.element));
    return;
  }
  auto put = [&](unsigned k, Value word) {
    spv::StoreOp::create(b, elementAt(b, variable, index, k), word);
  };
  if (bytes == 2 * wordBytes) {
    auto [low, high] = halves(b, value);
    put(0, low);
    return put(1, high);
  }
  if (bytes == wordBytes)
    return put(0, b.bitcast(value, b.getI32Type()));
  auto [own, others] = placed(b, value, place.bytes, type);
  Value old = spv::LoadOp::create(b, elementAt(b, variable, index, 0));
  Value kept = spv::BitwiseAndOp::create(b, old, others);
  put(0, spv::BitwiseOrOp::create(b, kept, own));
}

} // namespace costate::conversion
