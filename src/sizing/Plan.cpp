#include "sizing/Plan.h"

#include "ir/LoopPairs.h"
#include "ir/Plan.h"
#include "sizing/MinimalCut.h"
#include "sizing/Narrow.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/ADT/DenseMap.h"

using namespace mlir;

namespace costate::sizing {
namespace {

using Node = MinimalCut::Node;

bool isConstant(Value value) {
  return value.getDefiningOp() && matchPattern(value, m_Constant());
}

/// A value costs what saving it does if the reverse sweep needs it and does not
/// run its operation again; an operation that runs again costs its time, and
/// needs its operands. The cheapest choice is a minimal cut: what the source
/// does not reach any more is needed, and runs again.
class Choice {
public:
  Choice(const SaveProblem &problem, const Costs &costs)
      : problem(problem), costs(costs) {
    for (Value value : problem.needed)
      if (std::optional<Node> node = nodeOf(value))
        cut.addEdge(*node, MinimalCut::sink, MinimalCut::unlimited);
    while (!pending.empty())
      addOperands(pending.pop_back_val());
    cut.solve();
  }

  bool saves(Value value) const {
    return cut.isAtSource(operations.lookup(value.getDefiningOp()));
  }

private:
  /// None: the reverse sweep has it anyway.
  std::optional<Node> nodeOf(Value value) {
    if (auto known = values.find(value); known != values.end())
      return known->second;
    double times = isConstant(value) ? 0 : problem.timesOf(value);
    if (times == 0)
      return std::nullopt;
    Node node = values[value] = cut.addNode();
    Node from = tape::isRecomputable(value)
                    ? operationNode(value.getDefiningOp(), times)
                    : MinimalCut::source;
    double price = static_cast<double>(costs.ofSaving(storedType(value)));
    cut.addEdge(from, node, times * price);
    return node;
  }

  Node operationNode(Operation *op, double times) {
    auto [place, isNew] = operations.try_emplace(op, 0);
    if (!isNew)
      return place->second;
    Node node = place->second = cut.addNode();
    bool hasTwin = problem.hasTwin && problem.hasTwin(op);
    int64_t cost = hasTwin ? costs.ofTwin(op) : costs.of(op);
    cut.addEdge(MinimalCut::source, node, times * static_cast<double>(cost));
    pending.push_back(op);
    return node;
  }

  void addOperands(Operation *op) {
    Node node = operations.lookup(op);
    for (Value operand : op->getOperands())
      if (std::optional<Node> needed = nodeOf(operand))
        cut.addEdge(*needed, node, MinimalCut::unlimited);
  }

  const SaveProblem &problem;
  const Costs &costs;
  MinimalCut cut;
  llvm::DenseMap<Value, Node> values;           ///< reached: not needed
  llvm::DenseMap<Operation *, Node> operations; ///< reached: do not run again
  SmallVector<Operation *> pending;
};

/// Saves what cannot be recomputed, and of the rest what `saves` says.
SavePlan planBy(const SaveProblem &problem, function_ref<bool(Value)> saves) {
  SavePlan plan;
  llvm::DenseSet<Value> seen;
  SmallVector<Value> pending(problem.needed);
  while (!pending.empty()) {
    Value value = pending.pop_back_val();
    if (problem.timesOf(value) == 0 || !seen.insert(value).second)
      continue;
    if (!tape::isRecomputable(value) || (!isConstant(value) && saves(value)))
      plan.saved.insert(value);
    else
      llvm::append_range(pending, value.getDefiningOp()->getOperands());
  }
  return plan;
}

} // namespace

bool Planner::chooses() {
  return policy.choice == Policy::Choice::SaveAll || random() % 2;
}

SavePlan Planner::plan(const SaveProblem &problem) {
  if (policy.choice != Policy::Choice::Cheapest)
    return planBy(problem, [&](Value) { return chooses(); });
  Choice cheapest(problem, policy.costs);
  return planBy(problem, [&](Value value) { return cheapest.saves(value); });
}

bool verifyPlan(const SaveProblem &problem, const SavePlan &plan) {
  llvm::DenseSet<Value> known = plan.saved;
  SmallVector<Value> pending(problem.needed);
  while (!pending.empty()) {
    Value value = pending.pop_back_val();
    if (problem.timesOf(value) == 0 || !known.insert(value).second)
      continue;
    if (!tape::isRecomputable(value))
      return false;
    llvm::append_range(pending, value.getDefiningOp()->getOperands());
  }
  return true;
}

int64_t timesOf(Operation *op) {
  if (!isa<LoopLikeOpInterface>(op))
    return 1;
  std::optional<int64_t> count = tape::constantCount(op);
  return count ? std::max<int64_t>(*count, 1) : guessedTripCount;
}

} // namespace costate::sizing
