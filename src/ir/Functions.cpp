#include "ir/Functions.h"

#include "ir/Kernel.h"
#include "ir/Tape.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace costate::ir {

func::FuncOp calleeOf(func::CallOp call) {
  return SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
      call, call.getCalleeAttr());
}

//===-- What is refused ---------------------------------------------------===//

namespace {

class FunctionVerifier {
public:
  LogicalResult verify(func::FuncOp function) {
    auto [place, isNew] = sizes.try_emplace(function, open);
    if (!isNew && place->second == open)
      return function.emitError("function `" + function.getName() +
                                "` calls itself; write a loop");
    if (!isNew)
      return success();
    if (failed(verifyForm(function)))
      return failure();
    FailureOr<uint64_t> size = sizeOf(function);
    if (failed(size))
      return failure();
    sizes[function] = *size;
    return success();
  }

  /// Operations, with those of functions.
  FailureOr<uint64_t> sizeOf(Operation *root) {
    uint64_t size = 0;
    WalkResult result = root->walk([&](Operation *op) {
      ++size;
      auto call = dyn_cast<func::CallOp>(op);
      if (!call)
        return WalkResult::advance();
      func::FuncOp callee = calleeOf(call);
      if (failed(verify(callee)))
        return WalkResult::interrupt();
      size = llvm::SaturatingAdd(size, sizes.lookup(callee));
      if (size <= largest)
        return WalkResult::advance();
      call.emitError("so many calls are more than a kernel can hold");
      return WalkResult::interrupt();
    });
    if (result.wasInterrupted())
      return failure();
    return size;
  }

private:
  static LogicalResult verifyForm(func::FuncOp function) {
    auto isArgument = [](Type type) {
      return isScalar(type) || isa<ArrayType>(type);
    };
    if (!function.getBody().hasOneBlock())
      return function.emitError("a function has one block");
    if (!llvm::all_of(function.getArgumentTypes(), isArgument) ||
        !llvm::all_of(function.getResultTypes(), isScalar))
      return function.emitError(
          "a function takes arrays and scalars and returns scalars");
    WalkResult result = function.walk([](Operation *op) {
      bool isPart =
          isa<RangeOp, SerialOp, CopyOp>(op) ||
          (isa<func::FuncOp>(op->getParentOp()) && isa<tape::PivotOp>(op));
      if (!isPart)
        return WalkResult::advance();
      op->emitError("stands in a function, but is a part of a kernel");
      return WalkResult::interrupt();
    });
    return failure(result.wasInterrupted());
  }

  static constexpr uint64_t open = UINT64_MAX, largest = uint64_t(1) << 20;
  llvm::DenseMap<Operation *, uint64_t> sizes;
};

} // namespace

LogicalResult verifyFunctions(ModuleOp module) {
  FunctionVerifier verifier;
  for (auto function : module.getOps<func::FuncOp>())
    if (failed(verifier.verify(function)))
      return failure();
  return failure(failed(verifier.sizeOf(module)));
}

//===-- Effects -----------------------------------------------------------===//

static bool hasOwnEffect(Operation *op) {
  auto count = dyn_cast<TripCountOp>(op);
  return writesElement(op) || isa<PrintOp, AssertOp>(op) ||
         isa<tape::TapeDialect>(op->getDialect()) ||
         (count && !count.cannotFail());
}

bool onlyComputes(func::FuncOp function) {
  WalkResult result = function.walk([&](Operation *op) {
    auto call = dyn_cast<func::CallOp>(op);
    func::FuncOp callee = call ? calleeOf(call) : nullptr;
    bool stays = call ? callee && onlyComputes(callee) : !hasOwnEffect(op);
    return stays ? WalkResult::advance() : WalkResult::interrupt();
  });
  return !result.wasInterrupted();
}

namespace {

struct CallEffects
    : MemoryEffectOpInterface::ExternalModel<CallEffects, func::CallOp> {
  void
  getEffects(Operation *op,
             SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
                 &effects) const {
    auto callee = calleeOf(cast<func::CallOp>(op));
    for (OpOperand &operand : op->getOpOperands())
      if (isa<ArrayType>(operand.get().getType()))
        effects.emplace_back(MemoryEffects::Read::get(), &operand);
    if (!callee || !onlyComputes(callee))
      effects.emplace_back(MemoryEffects::Write::get());
  }
};

} // namespace

void registerCallEffects(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, func::FuncDialect *) {
    func::CallOp::attachInterface<CallEffects>(*context);
  });
}

//===-- Calls -------------------------------------------------------------===//

static bool isCounted(Operation *op) {
  return !op->hasTrait<mlir::OpTrait::ConstantLike>() &&
         !op->hasTrait<mlir::OpTrait::IsTerminator>();
}

uint64_t flatSize(Operation *root) {
  uint64_t size = 0;
  root->walk([&](Operation *op) {
    if (auto call = dyn_cast<func::CallOp>(op))
      size += flatSize(calleeOf(call));
    else
      size += isCounted(op);
  });
  return size;
}

static void findCalls(Operation *root, FunctionTest isInlined,
                      SmallVectorImpl<func::CallOp> &calls) {
  root->walk([&](func::CallOp call) {
    if (isInlined(calleeOf(call)))
      calls.push_back(call);
  });
}

void inlineCalls(Operation *root, FunctionTest isInlined) {
  SmallVector<func::CallOp> calls;
  findCalls(root, isInlined, calls);
  while (!calls.empty()) {
    func::CallOp call = calls.pop_back_val();
    Block &body = calleeOf(call).getBody().front();
    IRMapping known;
    known.map(body.getArguments(), call.getOperands());
    OpBuilder b(call);
    for (Operation &op : body.without_terminator())
      findCalls(b.clone(op, known), isInlined, calls);
    for (auto [result, value] : llvm::zip_equal(
             call.getResults(), body.getTerminator()->getOperands()))
      result.replaceAllUsesWith(known.lookupOrDefault(value));
    call.erase();
  }
}

void eraseUncalled(ModuleOp module) {
  bool changed = true;
  while (changed) {
    llvm::DenseSet<Operation *> called;
    module.walk([&](func::CallOp call) { called.insert(calleeOf(call)); });
    changed = false;
    for (auto function :
         llvm::make_early_inc_range(module.getOps<func::FuncOp>()))
      if (!called.contains(function)) {
        function.erase();
        changed = true;
      }
  }
}

} // namespace costate::ir
