#include "sizing/Plan.h"

#include "ir/Kernel.h"
#include "ir/Plan.h"
#include "sizing/ParsedTest.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace costate::sizing {
namespace {

/// The values of one block, by their names in the text.
class Plans : public Parsed {
protected:
  Plans()
      : Parsed(R"(
      costate.kernel @k(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>,
                        %at: !costate.array<i64, 1>) {
        %n = costate.extent %x[0] : !costate.array<f64, 1>
        %two = arith.constant 2 : i64
        %zero = arith.constant 0.0 : f64
        costate.range (%i) in (%n) {
          %load = costate.load %x[%i] : !costate.array<f64, 1>
          %index = costate.load %at[%i] : !costate.array<i64, 1>
          %double = arith.muli %index, %two : i64
          %sum = arith.addf %load, %load : f64
          %sine = costate.sin %sum : f64
          %steers = arith.cmpf ogt, %load, %zero : f64
          %rounded = costate.to_int %load : f64 to i64
          %branch = scf.if %steers -> f64 {
            scf.yield %sum : f64
          } else {
            scf.yield %sine : f64
          }
          %product = arith.mulf %branch, %load : f64
          costate.store %product, %y[%i] : !costate.array<f64, 1>
        }
      }
    )") {
    module->walk([&](ir::RangeOp range) { body = range.getBody(); });
    const char *names[] = {"load",   "index",   "double", "sum",    "sine",
                           "steers", "rounded", "branch", "product"};
    unsigned next = 0;
    for (Operation &op : *body)
      if (op.getNumResults())
        values[names[next++]] = op.getResult(0);
  }

  Value operator[](const char *name) const { return values.lookup(name); }

  SmallVector<Value> all(std::initializer_list<const char *> names) const {
    return llvm::map_to_vector(names,
                               [&](const char *name) { return (*this)[name]; });
  }

  SaveProblem problem(llvm::ArrayRef<Value> needed) const {
    return {needed, timesOf};
  }

  SmallVector<Value> saved(std::initializer_list<const char *> needed,
                           Policy policy = {}) const {
    SmallVector<Value> values = all(needed);
    return inOrder(Planner(policy).plan(problem(values)));
  }

  SmallVector<Value> inOrder(const SavePlan &plan) const {
    SmallVector<Value> saved(plan.saved.begin(), plan.saved.end());
    llvm::sort(saved, [](Value a, Value b) {
      return a.getDefiningOp()->isBeforeInBlock(b.getDefiningOp());
    });
    return saved;
  }

  static SavePlan planOf(llvm::ArrayRef<Value> saved) {
    return {llvm::DenseSet<Value>(saved.begin(), saved.end())};
  }

  bool accepts(std::initializer_list<const char *> saved,
               std::initializer_list<const char *> needed) const {
    SmallVector<Value> values = all(needed);
    return verifyPlan(problem(values), planOf(all(saved)));
  }

  /// What the values `saved`, and computing the other ones, cost.
  static int64_t costOf(const SaveProblem &problem, llvm::ArrayRef<Value> saved,
                        Target target) {
    Costs costs(target);
    llvm::DenseSet<Value> seen;
    SmallVector<Value> pending(problem.needed);
    int64_t sum = 0;
    while (!pending.empty()) {
      Value value = pending.pop_back_val();
      if (timesOf(value) == 0 || !seen.insert(value).second)
        continue;
      if (llvm::is_contained(saved, value)) {
        sum += costs.ofSaving(value.getType());
        continue;
      }
      sum += costs.of(value.getDefiningOp());
      llvm::append_range(pending, value.getDefiningOp()->getOperands());
    }
    return sum;
  }

  /// Serial values and the indices of the range are there.
  static constexpr auto timesOf = [](Value value) {
    bool isThere = isa<BlockArgument>(value) ||
                   isa<ir::KernelOp>(value.getParentBlock()->getParentOp());
    return isThere ? 0.0 : 1.0;
  };

  Block *body = nullptr;
  llvm::StringMap<Value> values;
};

// RULE: recomputation
TEST_F(Plans, PureOperationsAndLoadsAreRecomputed) {
  for (const char *name : {"load", "index", "double", "sum", "sine", "product"})
    EXPECT_TRUE(tape::isRecomputable((*this)[name])) << name;
}

/// A load from memory that the forward sweep writes again finds another value
/// in the reverse sweep.
// RULE: initial-state
TEST_F(Plans, LoadsFromMemoryThatChangesAreSaved) {
  Operation *load = (*this)["load"].getDefiningOp();
  load->setAttr(ir::replayedAttr, Builder(&context).getI64IntegerAttr(1));
  EXPECT_FALSE(tape::isRecomputable((*this)["load"]));
  EXPECT_FALSE(accepts({}, {"sum"}));
  EXPECT_TRUE(accepts({"load"}, {"sum"}));
}

// RULE: recomputation
TEST_F(Plans, WhatSteersIsNeverRecomputedFromFloats) {
  for (const char *name : {"steers", "rounded"})
    EXPECT_FALSE(tape::isRecomputable((*this)[name])) << name;
  EXPECT_FALSE(accepts({"load"}, {"steers"}));
  EXPECT_FALSE(accepts({"load", "steers"}, {"rounded"}));
  EXPECT_TRUE(accepts({"rounded", "steers"}, {"rounded", "steers"}));
}

// RULE: recomputation
TEST_F(Plans, ResultsOfRegionsAreSaved) {
  EXPECT_FALSE(tape::isRecomputable((*this)["branch"]));
  EXPECT_FALSE(accepts({"load"}, {"product"}));
  EXPECT_TRUE(accepts({"branch"}, {"product"}));
}

TEST_F(Plans, NothingIsSavedOfWhatMemoryAndArithmeticGiveBack) {
  EXPECT_TRUE(accepts({}, {"load", "double", "sum", "sine"}));
  EXPECT_TRUE(saved({"load", "double", "sum"}).empty());
}

TEST_F(Plans, WhatIsExpensiveToComputeIsSaved) {
  EXPECT_EQ(saved({"load", "sine"}), all({"sine"}));
}

// RULE: recomputation
TEST_F(Plans, EveryPlanProvidesWhatIsNeeded) {
  const char *names[] = {"load",   "index",   "double", "sum",    "sine",
                         "steers", "rounded", "branch", "product"};
  for (unsigned chosen = 0; chosen < 1u << std::size(names); ++chosen) {
    SmallVector<Value> needed;
    for (unsigned bit = 0; bit < std::size(names); ++bit)
      if (chosen >> bit & 1)
        needed.push_back((*this)[names[bit]]);
    for (auto choice : {Policy::Choice::Cheapest, Policy::Choice::SaveAll,
                        Policy::Choice::Random}) {
      SavePlan plan = Planner({.choice = choice}).plan(problem(needed));
      EXPECT_TRUE(verifyPlan(problem(needed), plan))
          << "needed: bits of " << chosen;
    }
  }
}

/// Of all plans none costs less, whatever is needed.
TEST_F(Plans, NoPlanIsCheaper) {
  const char *names[] = {"load",   "index",   "double", "sum",    "sine",
                         "steers", "rounded", "branch", "product"};
  SmallVector<Value> values;
  for (const char *name : names)
    values.push_back((*this)[name]);
  auto subset = [&](unsigned bits) {
    SmallVector<Value> chosen;
    for (unsigned bit = 0; bit < std::size(names); ++bit)
      if (bits >> bit & 1)
        chosen.push_back(values[bit]);
    return chosen;
  };
  for (Target target : {Target::Cpu, Target::Gpu, Target::GpuFastMath})
    for (unsigned bits = 1; bits < 1u << std::size(names); bits += 5) {
      SmallVector<Value> needed = subset(bits);
      SaveProblem whole = problem(needed);
      Planner planner({.costs = Costs(target)});
      int64_t found = costOf(whole, inOrder(planner.plan(whole)), target);
      int64_t least = INT64_MAX;
      for (unsigned saved = 0; saved < 1u << std::size(names); ++saved)
        if (SavePlan plan = planOf(subset(saved)); verifyPlan(whole, plan))
          least = std::min(least, costOf(whole, inOrder(plan), target));
      EXPECT_EQ(found, least) << "needed: bits of " << bits;
    }
}

/// What an enclosing block computes once is used in each iteration; what that
/// would have to save in each of its own is not.
TEST_F(Plans, ValuesOfEnclosingBlocksCostWhatTheyCostThere) {
  SmallVector<Value> needed = all({"double"});
  double times = 0;
  auto timesOf = [&](Value value) {
    return value == (*this)["index"] ? times : Plans::timesOf(value);
  };
  (*this)["index"].getDefiningOp()->setAttr(
      ir::replayedAttr, Builder(&context).getI64IntegerAttr(1));
  SaveProblem cheap{needed, timesOf};
  times = 0.125;
  EXPECT_EQ(inOrder(Planner({}).plan(cheap)), all({"index"}));
  times = 3;
  EXPECT_EQ(inOrder(Planner({}).plan(cheap)), all({"double"}));
}

TEST_F(Plans, ACheckerRefusesWhatIsNotSaved) {
  OpBuilder b(body->getTerminator());
  Value sine = (*this)["sine"];
  Location loc = sine.getLoc();
  tape::PushOp::create(b, loc, all({"load"}), IntegerAttr());
  auto plan = tape::PlanOp::create(b, loc, all({"load"}), all({"sum", "sine"}),
                                   ValueRange(), ValueRange(), ValueRange());
  EXPECT_TRUE(succeeded(plan.verify()));
  ScopedDiagnosticHandler quiet(&context,
                                [](Diagnostic &) { return success(); });
  plan.getSavedMutable().append(sine);
  EXPECT_TRUE(failed(plan.verify()));
}

} // namespace
} // namespace costate::sizing
