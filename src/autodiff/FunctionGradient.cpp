#include "autodiff/FunctionGradient.h"

#include "autodiff/Differentiate.h"
#include "ir/Tape.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;

namespace costate::autodiff {
namespace {

bool isFloat(Type type) { return isa<FloatType>(type); }

/// The way there: a kernel whose arguments are arrays of one element each, for
/// what the function takes and then for what it returns; its gradient; and
/// that gradient with values in the place of the arrays.
class FunctionReverser {
public:
  explicit FunctionReverser(func::FuncOp function)
      : function(function), module(function->getParentOfType<ModuleOp>()),
        taken(function.getNumArguments()) {}

  func::FuncOp run() {
    ir::KernelOp kernel = makeKernel();
    ir::KernelOp gradient = differentiate(kernel);
    func::FuncOp result = gradient ? makeFunction(gradient) : nullptr;
    for (ir::KernelOp op : {kernel, gradient})
      if (op)
        op.erase();
    return result;
  }

private:
  ir::KernelOp makeKernel() {
    auto b =
        ImplicitLocOpBuilder::atBlockEnd(function.getLoc(), module.getBody());
    SmallVector<Type> arrays;
    for (TypeRange types : {TypeRange(function.getArgumentTypes()),
                            TypeRange(function.getResultTypes())})
      for (Type type : types)
        arrays.push_back(ir::ArrayType::get(b.getContext(), type, 0));
    std::string name = (function.getName() + ".kernel").str();
    auto kernel = ir::KernelOp::create(b, name, b.getFunctionType(arrays, {}));
    b.setInsertionPointToStart(kernel.getBody());
    SmallVector<Value> operands;
    for (auto [type, array] : llvm::zip(function.getArgumentTypes(),
                                        kernel.getBody()->getArguments()))
      operands.push_back(ir::LoadOp::create(b, type, array, ValueRange()));
    auto call = func::CallOp::create(b, function, operands);
    for (auto [k, result] : llvm::enumerate(call.getResults()))
      ir::StoreOp::create(b, result, kernel.getArgument(taken + k),
                          ValueRange());
    return kernel;
  }

  ir::KernelOp differentiate(ir::KernelOp kernel) {
    SmallVector<bool> active;
    for (Type type : kernel.getArgumentTypes())
      active.push_back(cast<ir::ArrayType>(type).isFloat());
    ir::inlineCalls(kernel);
    ScopedDiagnosticHandler quiet(kernel.getContext(),
                                  [](Diagnostic &) { return success(); });
    Refusal refusal;
    auto gradient = differentiateReverse(kernel, active, refusal);
    return succeeded(gradient) ? gradient->kernel : nullptr;
  }

  func::FuncOp makeFunction(ir::KernelOp gradient) {
    SmallVector<Type> takes, returns;
    unsigned all = taken + function.getNumResults();
    for (unsigned k = 0; k < gradient.getNumArguments(); ++k) {
      Type type = cast<ir::ArrayType>(gradient.getArgument(k).getType())
                      .getElementType();
      bool isAdjoint = k >= all;
      unsigned of = isAdjoint ? originOf(gradient, k) : k;
      if (of >= taken ? isAdjoint : !isAdjoint)
        takes.push_back(type);
      else if (isAdjoint)
        returns.push_back(type);
    }
    auto b =
        ImplicitLocOpBuilder::atBlockEnd(function.getLoc(), module.getBody());
    auto result = func::FuncOp::create(b, (function.getName() + ".grad").str(),
                                       b.getFunctionType(takes, returns));
    result.setPrivate();
    Block *body = result.addEntryBlock();
    b.setInsertionPointToEnd(body);
    func::ReturnOp::create(b);
    if (succeeded(fill(result, gradient)))
      return result;
    result.erase();
    return nullptr;
  }

  static unsigned originOf(ir::KernelOp gradient, unsigned argument) {
    return gradient.getArgAttrOfType<IntegerAttr>(argument, ir::adjointOfAttr)
        .getInt();
  }

  /// Moves the operations of `gradient` into `result`.
  LogicalResult fill(func::FuncOp result, ir::KernelOp gradient) {
    Block &body = result.getBody().front();
    Operation *end = body.getTerminator();
    Block &source = gradient.getBodyRegion().front();
    unsigned all = taken + function.getNumResults(), next = taken;
    SmallVector<BlockArgument> sums;
    for (BlockArgument array : source.getArguments()) {
      unsigned number = array.getArgNumber();
      bool isAdjoint = number >= all;
      bool isTaken = (isAdjoint ? originOf(gradient, number) : number) < taken;
      if (isTaken && isAdjoint) {
        sums.push_back(array);
        continue;
      }
      Value known = isTaken     ? body.getArgument(number)
                    : isAdjoint ? body.getArgument(next++)
                                : Value();
      if (failed(replaceLoads(array, known)))
        return failure();
    }
    SmallVector<Value> adjoints;
    for (BlockArgument array : sums) {
      FailureOr<Value> adjoint = takeAdjoint(array, end);
      if (failed(adjoint))
        return failure();
      adjoints.push_back(*adjoint);
    }
    for (Operation &op :
         llvm::make_early_inc_range(source.without_terminator()))
      if (isa<tape::PivotOp>(op))
        op.erase();
      else
        op.moveBefore(end);
    OpBuilder b(end);
    func::ReturnOp::create(b, end->getLoc(), adjoints);
    end->erase();
    return success(isPure(result));
  }

  /// What the gradient adds to the adjoint of an argument.
  static FailureOr<Value> takeAdjoint(BlockArgument array, Operation *end) {
    if (array.use_empty()) {
      OpBuilder b(end);
      Type type = cast<ir::ArrayType>(array.getType()).getElementType();
      return Value(
          arith::ConstantOp::create(b, end->getLoc(), b.getFloatAttr(type, 0)));
    }
    if (!array.hasOneUse())
      return failure();
    auto update = dyn_cast<ir::AtomicAddOp>(*array.user_begin());
    if (!update || update->getBlock() != array.getOwner())
      return failure();
    Value adjoint = update.getValue();
    update.erase();
    return adjoint;
  }

  /// Stores clear what has been read.
  static LogicalResult replaceLoads(BlockArgument array, Value value) {
    for (Operation *user : llvm::make_early_inc_range(array.getUsers())) {
      bool isLoad = isa<ir::LoadOp>(user) && value;
      if (!isLoad && !isa<ir::StoreOp>(user))
        return failure();
      if (isLoad)
        user->getResult(0).replaceAllUsesWith(value);
      user->erase();
    }
    return success();
  }

  static bool isPure(func::FuncOp function) {
    return !ir::contains(function, [](Operation *op) {
      return isa<tape::TapeDialect>(op->getDialect()) ||
             isa<ir::ElementAccess>(op);
    });
  }

  func::FuncOp function;
  ModuleOp module;
  unsigned taken;
};

bool mayHaveGradient(func::FuncOp function) {
  auto isArray = [](Type type) { return isa<ir::ArrayType>(type); };
  if (llvm::any_of(function.getArgumentTypes(), isArray) ||
      llvm::none_of(function.getArgumentTypes(), isFloat) ||
      llvm::none_of(function.getResultTypes(), isFloat))
    return false;
  return !ir::contains(function, [](Operation *op) {
    auto call = dyn_cast<func::CallOp>(op);
    return isa<ir::ByOrderOp>(op) || ir::writesElement(op) ||
           (call && !mayHaveGradient(ir::calleeOf(call)));
  });
}

} // namespace

func::FuncOp gradientOf(func::FuncOp function) {
  auto module = function->getParentOfType<ModuleOp>();
  std::string name = (function.getName() + ".grad").str();
  if (auto known = module.lookupSymbol<func::FuncOp>(name))
    return known;
  return mayHaveGradient(function) ? FunctionReverser(function).run() : nullptr;
}

} // namespace costate::autodiff
