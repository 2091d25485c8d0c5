#include "conversion/LLVMToMetal/Emission.h"

#include "conversion/LLVMToSPIRV/AddressSpaces.h"
#include "conversion/LLVMToSPIRV/Prepare.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace costate::conversion {

//===-- Types -------------------------------------------------------------===//

StringRef metalType(Type type) {
  if (auto pointer = dyn_cast<LLVM::LLVMPointerType>(type)) {
    unsigned space = pointer.getAddressSpace();
    if (space == privateSpace)
      return "thread uchar *";
    return space <= 1 ? "ulong" : "uint";
  }
  if (type.isIndex())
    return "uint";
  if (auto number = dyn_cast<IntegerType>(type)) {
    unsigned bits = number.getWidth();
    return bits == 1               ? "bool"
           : bits <= metalWordBits ? "uint"
           : bits <= 64            ? "ulong"
                                   : "";
  }
  return type.isF16()   ? "half"
         : type.isF32() ? "float"
         : type.isF64() ? "ulong"
                        : "";
}

unsigned bitsOf(Type type) {
  if (isa<IntegerType, FloatType>(type))
    return type.getIntOrFloatBitWidth();
  return metalType(type) == "ulong" ? 64 : metalWordBits;
}

//===-- Statements --------------------------------------------------------===//

Emission::Emission(MetalText &module, LLVM::LLVMFuncOp from)
    : module(module), from(from), layout(from->getParentOfType<ModuleOp>()) {}

const std::string &Emission::get(Value value) const {
  return names.find(value)->second;
}

LogicalResult Emission::set(Operation *op, const std::string &expression) {
  Value result = op->getResult(0);
  StringRef type = metalType(result.getType());
  if (type.empty())
    return none(op);
  std::string name = fresh();
  line("const " + (type.ends_with("*") ? "auto" : type) + " " + name + " = " +
       expression + ";");
  names[result] = name;
  return success();
}

LogicalResult Emission::alias(Operation *op, std::string name) {
  names[op->getResult(0)] = std::move(name);
  return success();
}

LogicalResult Emission::none(Operation *op) {
  return op->emitError("has no counterpart in Metal: ") << *op;
}

void Emission::line(const Twine &statement) {
  text += std::string(2 * depth, ' ') + statement.str() + "\n";
}

std::string Emission::declare(Type type) {
  std::string name = fresh();
  line(metalType(type) + (metalType(type).ends_with("*") ? "" : " ") + name +
       ";");
  return name;
}

void Emission::open(const Twine &head) {
  line(head + " {");
  ++depth;
}

void Emission::close(const Twine &tail) {
  --depth;
  line("}" + tail);
}

//===-- Functions ---------------------------------------------------------===//

static Emit find(StringRef name) {
  static const llvm::StringMap<Emit> known = [] {
    llvm::StringMap<Emit> map;
    for (auto table : {emittedIntegers(), emittedFloats(), emittedConversions(),
                       emittedValues(), emittedAddresses(), emittedMemory(),
                       emittedAtomics(), emittedThreads(), emittedControl()})
      for (const EmittedOperation &operation : table)
        map[operation.name] = operation.emit;
    return map;
  }();
  return known.lookup(name);
}

LogicalResult emitBlock(Emission &e, Block &block) {
  for (Operation &op : block) {
    Emit emit = find(op.getName().getStringRef());
    if (failed(emit ? emit(e, &op) : e.none(&op)))
      return failure();
  }
  return success();
}

/// `static float f(float a0, uint a1)`; none if it takes anything else.
static FailureOr<std::string> headOf(Emission &e) {
  Type result = e.from.getFunctionType().getReturnType();
  bool isVoid = isa<LLVM::LLVMVoidType>(result);
  std::string head = "static " + (isVoid ? "void" : metalType(result)).str() +
                     " " + e.from.getName().str() + "(";
  for (BlockArgument argument : e.from.getArguments()) {
    StringRef type = metalType(argument.getType());
    if (type != "float" && type != "half" && type != "bool" && type != "uint" &&
        type != "ulong")
      return failure();
    std::string name = "a" + std::to_string(argument.getArgNumber());
    e.names[argument] = name;
    head += (argument.getArgNumber() ? ", " : "") + type.str() + " " + name;
  }
  return head + ")";
}

LogicalResult emitFunction(MetalText &module, LLVM::LLVMFuncOp from) {
  Emission e(module, from);
  if (isKernel(from)) {
    e.names[from.getArgument(0)] = "launch.words";
    if (failed(emitBlock(e, from.getBody().front())))
      return failure();
    module.addKernel(from.getName().str(), e.text);
    return success();
  }
  FailureOr<std::string> head = headOf(e);
  if (failed(head))
    return from.emitError("has parameters without a counterpart in Metal");
  if (failed(emitBlock(e, from.getBody().front())))
    return failure();
  module.addFunction(*head, e.text);
  return success();
}

//===-- Expressions -------------------------------------------------------===//

std::string literal(const APInt &number, unsigned bits) {
  if (bits == 1)
    return number.isZero() ? "false" : "true";
  uint64_t value = number.zextOrTrunc(64).getZExtValue();
  std::string digits =
      value < 4096 ? llvm::utostr(value) : "0x" + llvm::utohexstr(value, true);
  return digits + (bits > metalWordBits ? "ul" : "u");
}

std::string zeroOf(Type type) {
  StringRef name = metalType(type);
  if (name == "bool")
    return "false";
  if (name.ends_with("*"))
    return "nullptr";
  return name == "ulong" ? "0ul" : name.str() + "(0)";
}

static bool isNarrow(unsigned bits) {
  return bits != 1 && bits != 32 && bits != 64;
}

static StringRef wordOf(unsigned bits) {
  return bits > metalWordBits ? "ulong" : "uint";
}

std::string masked(const std::string &word, unsigned bits) {
  if (!isNarrow(bits))
    return word;
  return "(" + word + ") & " + literal(APInt::getLowBitsSet(64, bits), bits);
}

std::string extended(const std::string &word, unsigned bits) {
  if (bits == 1)
    return "(" + word + " ? ~0u : 0u)";
  if (!isNarrow(bits))
    return word;
  unsigned rest = (bits > metalWordBits ? 64 : metalWordBits) - bits;
  return (wordOf(bits) + "(" + (bits > metalWordBits ? "long" : "int") + "(" +
          word + " << " + Twine(rest) + ") >> " + Twine(rest) + ")")
      .str();
}

std::string withSign(const std::string &word, unsigned bits) {
  return (bits > metalWordBits ? "long(" : "int(") + extended(word, bits) + ")";
}

std::string toBits(const std::string &number, Type type) {
  if (type.isF32())
    return "as_type<uint>(" + number + ")";
  if (type.isF16())
    return "uint(as_type<ushort>(" + number + "))";
  return number;
}

std::string fromBits(const std::string &bits, Type type) {
  if (type.isF32())
    return "as_type<float>(" + bits + ")";
  if (type.isF16())
    return "as_type<half>(ushort(" + bits + "))";
  return bits;
}

std::string call(const Twine &function, ArrayRef<std::string> arguments) {
  return (function + "(" + llvm::join(arguments, ", ") + ")").str();
}

} // namespace costate::conversion
