#include "compiler/Calls.h"

#include "ir/Functions.h"
#include "ir/Kernel.h"

using namespace mlir;

namespace costate::compiler {
namespace {

/// Loops of kernels above this number of operations are not vectorised anyway
/// (see Target.cpp); below it, a call costs more than it saves.
constexpr uint64_t largestInlined = 1500;

/// Operations that calls of one function must save together.
constexpr uint64_t leastSaved = 500;

class Choice {
public:
  Choice(ModuleOp module, ir::KernelOp inlined, bool all) {
    inlined.walk([&](ir::ElementAccess access) {
      if (ir::writesElement(access))
        written.insert(cast<BlockArgument>(access.getArray()).getArgNumber());
    });
    module.walk(
        [&](func::CallOp call) { calls[ir::calleeOf(call)].push_back(call); });
    for (auto function : module.getOps<func::FuncOp>())
      if (function.getNumResults() && ir::onlyComputes(function) &&
          !usesWritten(function) && (all || pays(function)))
        kept.insert(function);
  }

  bool isKept(func::FuncOp function) const { return kept.contains(function); }

private:
  /// What the analyses of updates say of an array holds for all its accesses.
  bool usesWritten(func::FuncOp function) {
    auto isWritten = [&](Value operand) {
      auto array = dyn_cast<BlockArgument>(operand);
      return array && isa<ir::ArrayType>(array.getType()) && isWrittenAt(array);
    };
    auto [place, isNew] = reads.try_emplace(function, false);
    if (isNew)
      reads[function] = llvm::any_of(calls[function], [&](func::CallOp call) {
        return llvm::any_of(call.getOperands(), isWritten);
      });
    return reads[function];
  }

  bool isWrittenAt(BlockArgument array) {
    Operation *owner = array.getOwner()->getParentOp();
    if (auto caller = dyn_cast<func::FuncOp>(owner))
      return usesWritten(caller);
    return written.contains(array.getArgNumber());
  }

  bool pays(func::FuncOp function) {
    uint64_t count = countOf(function);
    return count > 1 && (count - 1) * ir::flatSize(function) >= leastSaved;
  }

  /// How often it stands in the kernel with all others inlined.
  uint64_t countOf(func::FuncOp function) {
    auto [place, isNew] = counts.try_emplace(function, 0);
    if (!isNew)
      return place->second;
    uint64_t count = 0;
    for (func::CallOp call : calls[function]) {
      auto caller = call->getParentOfType<func::FuncOp>();
      count += caller ? countOf(caller) : 1;
    }
    return counts[function] = count;
  }

  llvm::DenseSet<unsigned> written; ///< arguments of the kernel
  llvm::DenseMap<Operation *, SmallVector<func::CallOp>> calls;
  llvm::DenseMap<Operation *, uint64_t> counts;
  llvm::DenseMap<Operation *, bool> reads; ///< arrays that are written
  llvm::DenseSet<Operation *> kept;
};

} // namespace

bool keepCalls(ModuleOp module, ir::KernelOp inlined, Calls calls) {
  if (calls == Calls::None ||
      (calls == Calls::Large && ir::flatSize(inlined) <= largestInlined))
    return false;
  Choice choice(module, inlined, calls == Calls::All);
  ir::inlineCalls(
      module, [&](func::FuncOp function) { return !choice.isKept(function); });
  ir::eraseUncalled(module);
  return !module.getOps<func::FuncOp>().empty();
}

} // namespace costate::compiler
