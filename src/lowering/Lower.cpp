#include "lowering/Lower.h"

#include "lowering/Lowering.h"
#include "lowering/Operations.h"
#include "lowering/Promote.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"

using namespace mlir;

namespace costate::lowering {

static FunctionType signatureOf(const Kernel &kernel, MLIRContext *context) {
  SmallVector<Type> inputs;
  for (const syntax::Argument &argument : kernel.arguments) {
    if (argument.isArray())
      inputs.push_back(ir::ArrayType::get(
          context, elementTypeOf(context, argument.type), argument.rank));
    else
      inputs.push_back(typeOf(context, argument.type));
  }
  SmallVector<Type> results;
  for (ValueId parameter : kernel.parameters)
    inputs.push_back(typeOf(context, kernel.values[parameter]));
  for (ValueId result : kernel.results)
    results.push_back(typeOf(context, kernel.values[result]));
  return FunctionType::get(context, inputs, results);
}

Lowering::Lowering(const Kernel &kernel, ModuleOp module,
                   llvm::ArrayRef<func::FuncOp> functions, bool debug)
    : kernel(kernel), module(module), functions(functions), debug(debug),
      analysis(kernel), b(OpBuilder::atBlockEnd(module.getBody())),
      values(kernel.values.size()), locals(kernel.locals.size()),
      current(analysis.numVariables()), position(kernel.values.size()) {}

ir::KernelOp Lowering::run() {
  auto op = ir::KernelOp::create(b, at(kernel.loc), kernel.name,
                                 signatureOf(kernel, b.getContext()));
  for (size_t k = 0; k < kernel.arguments.size(); ++k) {
    if (std::string name = syntax::argumentText(kernel.arguments, k);
        name != "argument " + std::to_string(k + 1))
      op.setArgAttr(k, ir::nameAttr, b.getStringAttr(name));
    if (kernel.arguments[k].form.name == syntax::directoryForm)
      op.setArgAttr(k, ir::directoryAttr, b.getUnitAttr());
    if (!kernel.arguments[k].extents.empty())
      op.setArgAttr(k, ir::extentsAttr,
                    b.getDenseI64ArrayAttr(kernel.arguments[k].extents));
  }
  llvm::append_range(arguments, op.getBody()->getArguments());
  b.setInsertionPointToStart(op.getBody());
  lowerSerial(kernel.body);
  return op;
}

/// Arrays come first, then values.
func::FuncOp Lowering::runFunction(llvm::StringRef name) {
  auto op = func::FuncOp::create(b, at(kernel.loc), name,
                                 signatureOf(kernel, b.getContext()));
  op.setPrivate();
  mlir::Block *body = op.addEntryBlock();
  ValueRange all = body->getArguments();
  llvm::append_range(arguments, all.take_front(kernel.arguments.size()));
  for (auto [parameter, value] : llvm::zip_equal(
           kernel.parameters, all.drop_front(kernel.arguments.size())))
    values[parameter] = value;
  b.setInsertionPointToStart(body);
  lower(kernel.body);
  func::ReturnOp::create(b, at(kernel.loc), valuesOf(kernel.results));
  return op;
}

namespace {

/// A kernel and the functions that it calls.
struct Lowered {
  ir::KernelOp kernel;
  SmallVector<func::FuncOp> functions;

  Lowered(const Kernel &source, ModuleOp module, bool debug) {
    llvm::StringMap<unsigned> count{{source.name, 1}};
    for (const Kernel &function : source.functions) {
      unsigned number = count[function.name]++;
      std::string name = function.name;
      if (number)
        name += "." + std::to_string(number);
      Kernel promoted = promoteLocals(function);
      functions.push_back(
          Lowering(promoted, module, functions).runFunction(name));
    }
    Kernel promoted = promoteLocals(source);
    kernel = Lowering(promoted, module, functions, debug).run();
  }

  LogicalResult check() {
    for (func::FuncOp function : functions)
      if (failed(verify(function)))
        return failure();
    return verify(kernel);
  }

  void erase() {
    kernel.erase();
    for (func::FuncOp function : llvm::reverse(functions))
      function.erase();
  }
};

} // namespace

Result<ir::KernelOp> lower(const Kernel &kernel, ModuleOp module, bool debug) {
  std::string complaints;
  ScopedDiagnosticHandler handler(module.getContext(), [&](Diagnostic &one) {
    complaints += one.str() + "\n";
  });
  Lowered lowered(kernel, module, debug);
  if (succeeded(lowered.check()))
    return lowered.kernel;
  lowered.erase();
  return Failure{ErrorCode::Internal,
                 "kernel `" + kernel.name +
                     "` lowers to wrong kernel IR: " + complaints};
}

} // namespace costate::lowering
