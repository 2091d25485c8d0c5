/// Branches, loops and calls.

#include "conversion/LLVMToMetal/Emission.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace costate::conversion {
namespace {

//===-- Branches ----------------------------------------------------------===//

/// Variables for what an operation results in; none if one has no counterpart.
FailureOr<SmallVector<std::string>> declareResults(Emission &e, Operation *op) {
  SmallVector<std::string> variables;
  for (Value result : op->getResults()) {
    if (metalType(result.getType()).empty())
      return op->emitError("carries a value without a counterpart in Metal");
    variables.push_back(e.declare(result.getType()));
    e.names[result] = variables.back();
  }
  return variables;
}

/// The statements of `from`, and what it yields.
LogicalResult fill(Emission &e, Region &from, ArrayRef<std::string> variables) {
  if (from.empty())
    return success();
  if (failed(emitBlock(e, from.front())))
    return failure();
  for (auto [variable, value] :
       llvm::zip(variables, from.front().getTerminator()->getOperands()))
    e.line(variable + " = " + e.get(value) + ";");
  return success();
}

LogicalResult branch(Emission &e, scf::IfOp op) {
  auto variables = declareResults(e, op);
  if (failed(variables))
    return failure();
  e.open("if (" + e.get(op.getCondition()) + ")");
  if (failed(fill(e, op.getThenRegion(), *variables)))
    return failure();
  e.close();
  if (op.getElseRegion().empty())
    return success();
  e.open("else");
  if (failed(fill(e, op.getElseRegion(), *variables)))
    return failure();
  e.close();
  return success();
}

LogicalResult branchByCase(Emission &e, scf::IndexSwitchOp op) {
  auto variables = declareResults(e, op);
  if (failed(variables))
    return failure();
  for (auto [number, region] : llvm::zip(op.getCases(), op.getCaseRegions())) {
    e.open("if (" + e.get(op.getArg()) + " == " + Twine(number) + "u)");
    if (failed(fill(e, region, *variables)))
      return failure();
    e.close(" else");
  }
  e.open("");
  if (failed(fill(e, op.getDefaultRegion(), *variables)))
    return failure();
  e.close();
  return success();
}

//===-- Loops -------------------------------------------------------------===//

/// A loop of the form that liftControlFlow leaves: all is in front of the
/// condition.
LogicalResult loop(Emission &e, scf::WhileOp op) {
  auto results = declareResults(e, op);
  if (failed(results))
    return failure();
  SmallVector<std::string> carried;
  for (auto [argument, init] :
       llvm::zip(op.getBeforeArguments(), op.getInits())) {
    carried.push_back(e.declare(argument.getType()));
    e.names[argument] = carried.back();
    e.line(carried.back() + " = " + e.get(init) + ";");
  }
  e.open("while (true)");
  if (failed(emitBlock(e, op.getBefore().front())))
    return failure();
  scf::ConditionOp condition = op.getConditionOp();
  for (auto [result, value] : llvm::zip(*results, condition.getArgs()))
    e.line(result + " = " + e.get(value) + ";");
  e.line("if (!(" + e.get(condition.getCondition()) + "))");
  e.line("  break;");
  for (auto [variable, result] : llvm::zip(carried, *results))
    e.line(variable + " = " + result + ";");
  e.close();
  return success();
}

//===-- Calls and ends ----------------------------------------------------===//

/// `i1 (i1)`: what it is given, and nobody may know.
constexpr StringRef opaque = "costate_device_opaque";

LogicalResult callFunction(Emission &e, LLVM::CallOp op) {
  std::optional<StringRef> callee = op.getCallee();
  if (!callee)
    return e.none(op);
  SmallVector<std::string> arguments = llvm::map_to_vector(
      op.getArgOperands(), [&](Value value) { return e.get(value); });
  if (*callee == opaque) // no grid is without blocks
    return e.set(op, arguments.front() + " || blocks == 0u");
  auto function = SymbolTable::lookupNearestSymbolFrom<LLVM::LLVMFuncOp>(
      op, op.getCalleeAttr());
  if (!function || function.isExternal())
    return e.none(op);
  std::string expression = call(*callee, arguments);
  if (op.getNumResults())
    return e.set(op, expression);
  e.line(expression + ";");
  return success();
}

LogicalResult leave(Emission &e, LLVM::ReturnOp op) {
  e.line(op->getNumOperands() ? "return " + e.operand(op, 0) + ";"
                              : std::string("return;"));
  return success();
}

/// Their operands are taken where the region ends.
LogicalResult end(Emission &, Operation *) { return success(); }

} // namespace

llvm::ArrayRef<EmittedOperation> emittedControl() {
  static const EmittedOperation all[] = {
      emitted<scf::IfOp, branch>(),
      emitted<scf::IndexSwitchOp, branchByCase>(),
      emitted<scf::WhileOp, loop>(),
      emitted<scf::YieldOp, end>(),
      emitted<scf::ConditionOp, end>(),
      emitted<LLVM::CallOp, callFunction>(),
      emitted<LLVM::ReturnOp, leave>(),
  };
  return all;
}

} // namespace costate::conversion
