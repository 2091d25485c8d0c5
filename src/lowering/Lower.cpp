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
  return FunctionType::get(context, inputs, {});
}

Lowering::Lowering(const Kernel &kernel, ModuleOp module)
    : kernel(kernel), module(module), analysis(kernel),
      b(OpBuilder::atBlockEnd(module.getBody())), values(kernel.values.size()),
      locals(kernel.locals.size()), current(analysis.numVariables()),
      position(kernel.values.size()) {}

ir::KernelOp Lowering::run() {
  auto op = ir::KernelOp::create(b, at(kernel.loc), kernel.name,
                                 signatureOf(kernel, b.getContext()));
  for (size_t k = 0; k < kernel.arguments.size(); ++k)
    if (std::string name = syntax::argumentText(kernel.arguments, k);
        name != "argument " + std::to_string(k + 1))
      op.setArgAttr(k, ir::nameAttr, b.getStringAttr(name));
  llvm::append_range(arguments, op.getBody()->getArguments());
  b.setInsertionPointToStart(op.getBody());
  lowerSerial(kernel.body);
  return op;
}

Result<ir::KernelOp> lower(const Kernel &kernel, ModuleOp module) {
  std::string complaints;
  ScopedDiagnosticHandler handler(module.getContext(), [&](Diagnostic &one) {
    complaints += one.str() + "\n";
  });
  Kernel promoted = promoteLocals(kernel);
  ir::KernelOp op = Lowering(promoted, module).run();
  if (succeeded(verify(op)))
    return op;
  op.erase();
  return Failure{ErrorCode::Internal,
                 "kernel `" + kernel.name +
                     "` lowers to wrong kernel IR: " + complaints};
}

} // namespace costate::lowering
