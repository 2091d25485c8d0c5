#include "interpreter/Translate.h"

#include "interpreter/Operations.h"
#include "ir/Functions.h"
#include "ir/Source.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace costate::interpreter {
namespace {

Select find(StringRef name) {
  static const llvm::StringMap<Select> known = [] {
    llvm::StringMap<Select> map;
    for (auto table :
         {scalarOperations(), accessOperations(), localOperations(),
          controlOperations(), checkOperations()})
      for (const KnownOperation &operation : table)
        map[operation.name] = operation.select;
    return map;
  }();
  return known.lookup(name);
}

llvm::SmallPtrSet<Value, 8> arraysWrittenIn(Operation *root) {
  llvm::SmallPtrSet<Value, 8> arrays;
  root->walk([&](MemoryEffectOpInterface op) {
    for (Value operand : op->getOperands())
      if (isa<ir::ArrayType>(operand.getType()) &&
          op.getEffectOnValue<MemoryEffects::Write>(operand))
        arrays.insert(operand);
  });
  return arrays;
}

uint64_t bitsOf(Attribute constant) {
  APInt bits = isa<FloatAttr>(constant)
                   ? cast<FloatAttr>(constant).getValue().bitcastToAPInt()
                   : cast<IntegerAttr>(constant).getValue();
  return bits.getZExtValue();
}

Kind kindOf(Type type) {
  if (type.isF32())
    return Kind::F32;
  if (type.isF64())
    return Kind::F64;
  return type.isInteger(1)    ? Kind::I1
         : type.isInteger(32) ? Kind::I32
                              : Kind::I64;
}

class Translator {
public:
  explicit Translator(Functions functions) : functions(functions) {}

  Result<Code> translate(ir::KernelOp kernel) {
    code.name = kernel.getName().str();
    placeOf(*kernel);
    declareArguments(kernel);
    code.blocks.emplace_back();
    fill(0, kernel.getRegion());
    if (unknown)
      return refuse(unknown);
    return std::move(code);
  }

private:
  void declareArguments(ir::KernelOp kernel) {
    llvm::SmallPtrSet<Value, 8> written = arraysWrittenIn(kernel);
    for (BlockArgument argument : kernel.getArguments()) {
      auto array = dyn_cast<ir::ArrayType>(argument.getType());
      Type type = array ? array.getValueType() : argument.getType();
      int rank = array ? static_cast<int>(array.getRank()) : -1;
      size_t bytes = array ? static_cast<size_t>(array.elementBytes()) : 0;
      code.parameters.push_back(
          {kindOf(type), bytes, rank, nameOf(kernel, argument),
           written.contains(argument), ir::knownExtents(argument)});
    }
  }

  /// An adjoint or tangent goes by the number of the argument it belongs to.
  static int64_t nameOf(ir::KernelOp kernel, BlockArgument argument) {
    unsigned number = argument.getArgNumber();
    for (StringRef origin : {ir::adjointOfAttr, ir::tangentOfAttr})
      if (auto of = kernel.getArgAttrOfType<IntegerAttr>(number, origin))
        return of.getInt() + 1;
    return number + 1;
  }

  /// Slots for `values`, one after the other.
  uint32_t define(ValueRange values) {
    uint32_t first = code.constants.size();
    for (Value value : values) {
      slots[value] = code.constants.size();
      code.constants.push_back(0);
    }
    return first;
  }

  Slots list(ValueRange values) {
    Slots list{static_cast<uint32_t>(code.lists.size()),
               static_cast<uint32_t>(values.size())};
    for (Value value : values)
      code.lists.push_back(slots.lookup(value));
    return list;
  }

  void fill(uint32_t number, Region &region) {
    if (region.empty())
      return; // the `else` that is not there
    mlir::Block &source = region.front();
    code.blocks[number].argument = define(source.getArguments());
    std::vector<Instruction> instructions;
    for (Operation &op : source.without_terminator())
      add(op, instructions);
    Slots yields = list(source.getTerminator()->getOperands());
    code.blocks[number].instructions = std::move(instructions);
    code.blocks[number].yields = yields;
  }

  void add(Operation &op, std::vector<Instruction> &instructions) {
    Instruction instruction;
    instruction.result = define(op.getResults());
    if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
      code.constants[instruction.result] = bitsOf(constant.getValue());
      return;
    }
    describe(op, instruction);
    Select select = find(op.getName().getStringRef());
    instruction.run = select ? select(&op, instruction, code) : nullptr;
    replaceFunction(op, instruction);
    if (!instruction.run && !unknown)
      unknown = &op;
    addRegions(op, instruction);
    instructions.push_back(instruction);
  }

  void describe(Operation &op, Instruction &instruction) {
    instruction.operands = list(op.getOperands());
    instruction.results = op.getNumResults();
    instruction.place = isa<ir::StoreOp>(op) ? placeOfStore(op) : placeOf(op);
    if (op.getNumOperands())
      instruction.operandWidth = widthOf(op.getOperands().back().getType());
    if (op.getNumResults())
      instruction.resultWidth = widthOf(op.getResult(0).getType());
    instruction.watched = llvm::any_of(op.getOperands(), [&](Value operand) {
      return writtenHere.contains(operand);
    });
  }

  void replaceFunction(Operation &op, Instruction &instruction) {
    if (!functions || op.getNumResults() != 1)
      return;
    Type type = op.getResult(0).getType();
    if (!isa<FloatType>(type))
      return;
    instruction.function = functions(op.getName().getStringRef(), type.isF64());
    if (instruction.function)
      instruction.run = callOf(type, op.getNumOperands());
  }

  void addRegions(Operation &op, Instruction &instruction) {
    instruction.block = code.blocks.size();
    code.blocks.resize(code.blocks.size() + op.getNumRegions());
    if (isa<ir::RangeOp>(op))
      writtenHere = arraysWrittenIn(&op);
    for (Region &region : op.getRegions())
      fill(instruction.block + region.getRegionNumber(), region);
    if (isa<ir::RangeOp>(op))
      writtenHere.clear();
  }

  /// A function that is called twice stores one value at one place.
  uint32_t placeOfStore(Operation &op) {
    auto [known, isNew] =
        stores.try_emplace({op.getLoc(), op.getOperand(0)}, 0);
    if (isNew)
      known->second = placeOf(op);
    return known->second;
  }

  uint32_t placeOf(Operation &op) {
    Place place;
    place.operation = op.getName().getStringRef().str();
    if (FileLineColLoc source = ir::sourceOf(op.getLoc())) {
      place.file = fileNumber(source.getFilename());
      place.line = source.getLine();
    }
    code.places.push_back(std::move(place));
    return code.places.size() - 1;
  }

  int fileNumber(StringRef name) {
    auto known = llvm::find(code.files, name);
    if (known == code.files.end())
      known = code.files.insert(known, name.str());
    return known - code.files.begin();
  }

  Failure refuse(Operation *op) {
    return {ErrorCode::BadKernel, code.describe(placeOf(*op)) +
                                      ": the interpreter does not know `" +
                                      op->getName().getStringRef().str() + "`"};
  }

  Functions functions;
  Code code;
  llvm::DenseMap<Value, uint32_t> slots;
  llvm::SmallPtrSet<Value, 8> writtenHere; ///< arrays, in the range around
  llvm::DenseMap<std::pair<Location, Value>, uint32_t> stores;
  Operation *unknown = nullptr;
};

} // namespace

/// Functions are run as parts of the kernel.
Result<Code> translate(ir::KernelOp kernel, Functions functions) {
  if (!ir::contains<func::CallOp>(kernel))
    return Translator(functions).translate(kernel);
  OpBuilder b(kernel);
  auto inlined = cast<ir::KernelOp>(b.clone(*kernel));
  inlineCalls(inlined);
  Result<Code> code = Translator(functions).translate(inlined);
  inlined.erase();
  return code;
}

} // namespace costate::interpreter
