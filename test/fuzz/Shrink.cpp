#include "fuzz/Shrink.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/Verifier.h"

using namespace mlir;

namespace costate::fuzz {

Case copyOf(const Case &original) {
  Case copy;
  copy.module = OwningOpRef<ModuleOp>(original.module.get().clone());
  copy.kernel = kernelOf(*copy.module);
  copy.memory = original.memory;
  copy.isSingular = original.isSingular;
  return copy;
}

namespace {

Value constant(OpBuilder &b, Location loc, Type type, int64_t value) {
  if (isa<FloatType>(type))
    return arith::ConstantOp::create(b, loc,
                                     b.getFloatAttr(type, double(value)));
  return arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, value));
}

bool isConstant(Value value) {
  return value.getDefiningOp() && matchPattern(value, m_Constant());
}

/// Puts the operations of `block` in front of `op`, for the given arguments.
void inlineBefore(Operation *op, Block &block, ValueRange arguments) {
  for (auto [argument, value] : llvm::zip(block.getArguments(), arguments))
    argument.replaceAllUsesWith(value);
  for (Operation &inner :
       llvm::make_early_inc_range(block.without_terminator()))
    inner.moveBefore(op);
}

/// What can be done to operation `op`: edit number `number`. False if there are
/// not so many edits.
class Edits {
public:
  Edits(Operation *op, bool keepValues)
      : op(op), keepValues(keepValues), b(op) {}

  bool apply(int number) {
    for (auto kind : {&Edits::erase, &Edits::inlineSide, &Edits::unroll})
      if ((this->*kind)(number))
        return true;
    if (keepValues)
      return false;
    for (auto kind :
         {&Edits::useOperand, &Edits::useConstant, &Edits::setOperand})
      if ((this->*kind)(number))
        return true;
    return false;
  }

private:
  /// Whether `number` is one of `count`; makes it relative to the next ones if
  /// it is not.
  static bool isAmong(int &number, int count) {
    number -= count;
    return number < 0;
  }

  bool erase(int &number) {
    if (!op->use_empty() || !isAmong(number, 1))
      return false;
    op->erase();
    return true;
  }

  bool inlineSide(int &number) {
    auto branch = dyn_cast<scf::IfOp>(op);
    if (!branch || !isAmong(number, branch.elseBlock() ? 2 : 1))
      return false;
    Block &side = number == -1 ? *branch.thenBlock() : *branch.elseBlock();
    inlineBefore(op, side, {});
    op->replaceAllUsesWith(side.getTerminator()->getOperands());
    op->erase();
    return true;
  }

  /// One iteration of a `for`, none of a `while`.
  bool unroll(int &number) {
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      if (!isAmong(number, 1))
        return false;
      SmallVector<Value> arguments{loop.getLowerBound()};
      llvm::append_range(arguments, loop.getInitArgs());
      inlineBefore(op, *loop.getBody(), arguments);
      op->replaceAllUsesWith(loop.getBody()->getTerminator()->getOperands());
    } else if (auto loop = dyn_cast<scf::WhileOp>(op)) {
      if (!isAmong(number, 1))
        return false;
      SmallVector<Value> inits(loop.getInits());
      inlineBefore(op, *loop.getBeforeBody(), inits);
      op->replaceAllUsesWith(loop.getConditionOp().getArgs());
    } else {
      return false;
    }
    op->erase();
    return true;
  }

  /// An operand instead of a result of the same type.
  bool useOperand(int &number) {
    for (Value result : op->getResults())
      for (Value operand : op->getOperands()) {
        if (result.use_empty() || operand.getType() != result.getType() ||
            !isAmong(number, 1))
          continue;
        result.replaceAllUsesWith(operand);
        return true;
      }
    return false;
  }

  bool useConstant(int &number) {
    if (op->hasTrait<OpTrait::ConstantLike>())
      return false;
    for (Value result : op->getResults()) {
      if (result.use_empty() || isa<ir::LocalType>(result.getType()) ||
          !isAmong(number, 2))
        continue;
      b.setInsertionPointAfter(op);
      Value value = constant(b, op->getLoc(), result.getType(), number + 2);
      result.replaceAllUsesWith(value);
      return true;
    }
    return false;
  }

  bool setOperand(int &number) {
    for (OpOperand &operand : op->getOpOperands()) {
      Type type = operand.get().getType();
      if (isa<ir::ArrayType, ir::LocalType>(type) ||
          isConstant(operand.get()) || !isAmong(number, 3))
        continue;
      int64_t value = type.isInteger(1) ? number & 1 : number + 3;
      operand.set(constant(b, op->getLoc(), type, value));
      return true;
    }
    return false;
  }

  Operation *op;
  bool keepValues;
  OpBuilder b;
};

class Shrinker {
public:
  Shrinker(Session &session, Case subject,
           llvm::function_ref<bool(const Case &)> fails, bool keepValues)
      : session(session), subject(std::move(subject)), fails(fails),
        keepValues(keepValues) {}

  Case run() {
    for (bool changed = true; changed;) {
      changed = simplify();
      changed |= clean();
      changed |= dropArguments();
      changed |= !keepValues && roundValues();
    }
    return std::move(subject);
  }

private:
  bool accept(Case candidate) {
    if (failed(verify(*candidate.module)) || !fails(candidate))
      return false;
    subject = std::move(candidate);
    return true;
  }

  /// Not those of functions with partial derivatives, which would not be their
  /// derivatives any more.
  static SmallVector<Operation *> operationsOf(ir::KernelOp kernel) {
    SmallVector<Operation *> ops;
    kernel.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (op != kernel.getOperation() &&
          !op->hasTrait<OpTrait::IsTerminator>() &&
          !op->getParentOfType<ir::CustomOp>())
        ops.push_back(op);
    });
    return ops;
  }

  bool simplify() {
    bool changed = false;
    for (size_t at = operationsOf(subject.kernel).size(); at-- > 0;)
      for (int number = 0; at < operationsOf(subject.kernel).size(); ++number) {
        Case candidate = copyOf(subject);
        if (!Edits(operationsOf(candidate.kernel)[at], keepValues)
                 .apply(number))
          break;
        if (!accept(std::move(candidate)))
          continue;
        changed = true;
        number = -1;
      }
    return changed;
  }

  bool clean() {
    size_t count = operationsOf(subject.kernel).size();
    for (Session::Change &change : session.changes()) {
      Case candidate = copyOf(subject);
      if (failed(change.passes->run(*candidate.module)))
        continue;
      candidate.kernel = kernelOf(*candidate.module);
      if (operationsOf(candidate.kernel).size() <
          operationsOf(subject.kernel).size())
        accept(std::move(candidate));
    }
    return operationsOf(subject.kernel).size() < count;
  }

  bool dropArguments() {
    bool changed = false;
    for (unsigned k = subject.kernel.getNumArguments(); k-- > 0;) {
      if (!subject.kernel.getArgument(k).use_empty())
        continue;
      Case candidate = copyOf(subject);
      (void)candidate.kernel.eraseArgument(k);
      candidate.memory.arrays.erase(candidate.memory.arrays.begin() + k);
      candidate.memory.scalars.erase(candidate.memory.scalars.begin() + k);
      changed |= accept(std::move(candidate));
    }
    return changed;
  }

  /// Numbers with few digits.
  bool roundValues() {
    bool changed = false;
    for (unsigned k = 0; k < subject.kernel.getNumArguments(); ++k) {
      if (!isFloatArray(subject.kernel, k))
        continue;
      Case candidate = copyOf(subject);
      auto type = cast<ir::ArrayType>(subject.kernel.getArgumentTypes()[k]);
      Type element = type.getElementType();
      interpreter::HostArray &array = candidate.memory.arrays[k];
      for (size_t at = 0; at < sizeOf(array); ++at)
        set(array, element, at, std::round(get(array, element, at) * 4) / 4);
      if (array.bytes != subject.memory.arrays[k].bytes)
        changed |= accept(std::move(candidate));
    }
    return changed;
  }

  Session &session;
  Case subject;
  llvm::function_ref<bool(const Case &)> fails;
  bool keepValues;
};

} // namespace

Case shrink(Session &session, Case subject,
            llvm::function_ref<bool(const Case &)> fails, bool keepValues) {
  ScopedDiagnosticHandler quiet(&session.context(),
                                [](Diagnostic &) { return success(); });
  return Shrinker(session, std::move(subject), fails, keepValues).run();
}

} // namespace costate::fuzz
