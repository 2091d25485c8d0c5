#include "conversion/LLVMToSPIRV/Translation.h"

#include "conversion/LLVMToSPIRV/Lanes.h"
#include "conversion/LLVMToSPIRV/LoopLimit.h"
#include "conversion/LLVMToSPIRV/Operations.h"

using namespace mlir;
namespace spv = mlir::spirv;

namespace costate::conversion {

Translation::Translation(SpirvModule &module, const SharedLayout &shared,
                         LLVM::LLVMFuncOp from)
    : shared(shared), from(from), b(module, from.getLoc()),
      layout(from->getParentOfType<ModuleOp>()), memory(b, layout) {}

LogicalResult Translation::set(Operation *op, Value value) {
  values[op->getResult(0)] = value;
  return success();
}

void Translation::set(ValueRange old, ValueRange made) {
  for (auto [key, value] : llvm::zip(old, made))
    values[key] = value;
}

LogicalResult Translation::none(Operation *op) {
  return op->emitError("has no counterpart in SPIR-V: ") << *op;
}

//===-- Operations --------------------------------------------------------===//

static Handler find(StringRef name) {
  static const llvm::StringMap<Handler> known = [] {
    llvm::StringMap<Handler> map;
    for (auto table :
         {integerOperations(), floatOperations(), conversionOperations(),
          valueOperations(), addressOperations(), memoryOperations(),
          atomicOperations(), threadOperations(), controlOperations()})
      for (const KnownOperation &operation : table)
        map[operation.name] = operation.translate;
    return map;
  }();
  return known.lookup(name);
}

LogicalResult translateBlock(Translation &t, Block &block) {
  for (Operation &op : block) {
    t.b.setLoc(op.getLoc());
    Handler translate = find(op.getName().getStringRef());
    if (failed(translate ? translate(t, &op) : t.none(&op)))
      return failure();
  }
  return success();
}

//===-- Functions ---------------------------------------------------------===//

static FunctionType typeOf(Translation &t) {
  SmallVector<Type> parameters, results;
  if (!isKernel(t.from))
    for (Type type : t.from.getArgumentTypes())
      parameters.push_back(t.b.typeOf(type));
  Type result = t.from.getFunctionType().getReturnType();
  if (!isa<LLVM::LLVMVoidType>(result))
    results.push_back(t.b.typeOf(result));
  if (llvm::is_contained(parameters, Type()) ||
      llvm::is_contained(results, Type()))
    return {};
  return t.b.getFunctionType(parameters, results);
}

LogicalResult translateFunction(SpirvModule &module, const SharedLayout &shared,
                                LLVM::LLVMFuncOp from) {
  Translation t(module, shared, from);
  FunctionType type = typeOf(t);
  if (!type)
    return from.emitError("has parameters without a counterpart in SPIR-V");
  OpBuilder end = module.atEnd();
  auto to = spv::FuncOp::create(end, from.getLoc(), from.getName(), type);
  Block *first = to.addEntryBlock();
  t.b.setInsertionPointToStart(first);
  if (isKernel(from)) {
    t.values[from.getArgument(0)] = launchWord(t.b, WordsOfLaunch);
    module.addEntryPoint(to);
    startPasses(t);
  } else {
    t.set(from.getArguments(), first->getArguments());
  }
  t.memory.prepare(from);
  return translateBlock(t, from.getBody().front());
}

} // namespace costate::conversion
