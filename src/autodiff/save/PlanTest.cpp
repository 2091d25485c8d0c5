#include "autodiff/save/Plan.h"

#include "ir/Kernel.h"
#include "ir/Registration.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/STLExtras.h"

#include <gtest/gtest.h>

using namespace mlir;

namespace costate::autodiff {
namespace {

/// The values of one block, by their names in the text.
class Plans : public testing::Test {
protected:
  Plans() {
    DialectRegistry registry;
    ir::registerDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    module = parseSourceString<ModuleOp>(R"(
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
    )",
                                         &context);
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

  SaveProblem problem(ArrayRef<Value> needed) const {
    return {*body, needed, isAvailable};
  }

  bool accepts(std::initializer_list<const char *> saved,
               std::initializer_list<const char *> needed) const {
    SmallVector<Value> values = all(needed);
    return verifyPlan(problem(values), SavePlan{all(saved)});
  }

  /// Serial values and the indices of the range.
  static constexpr auto isAvailable = [](Value value) {
    return isa<BlockArgument>(value) ||
           isa<ir::KernelOp>(value.getParentBlock()->getParentOp());
  };

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  Block *body = nullptr;
  llvm::StringMap<Value> values;
};

TEST_F(Plans, PureOperationsAndLoadsAreRecomputed) {
  for (const char *name : {"load", "index", "double", "sum", "sine", "product"})
    EXPECT_TRUE(isRecomputable((*this)[name])) << name;
}

/// A load from memory that the forward sweep writes again finds another value
/// in the reverse sweep.
TEST_F(Plans, LoadsFromMemoryThatChangesAreSaved) {
  Operation *load = (*this)["load"].getDefiningOp();
  load->setAttr(ir::replayedAttr, Builder(&context).getI64IntegerAttr(1));
  EXPECT_FALSE(isRecomputable((*this)["load"]));
  EXPECT_FALSE(accepts({}, {"sum"}));
  EXPECT_TRUE(accepts({"load"}, {"sum"}));
}

TEST_F(Plans, WhatSteersIsNeverRecomputedFromFloats) {
  for (const char *name : {"steers", "rounded"})
    EXPECT_FALSE(isRecomputable((*this)[name])) << name;
  EXPECT_FALSE(accepts({"load"}, {"steers"}));
  EXPECT_FALSE(accepts({"load", "steers"}, {"rounded"}));
  EXPECT_TRUE(accepts({"rounded", "steers"}, {"rounded", "steers"}));
}

TEST_F(Plans, ResultsOfRegionsAreSaved) {
  EXPECT_FALSE(isRecomputable((*this)["branch"]));
  EXPECT_FALSE(accepts({"load"}, {"product"}));
  EXPECT_TRUE(accepts({"branch"}, {"product"}));
}

TEST_F(Plans, NothingIsSavedOfWhatMemoryAndArithmeticGiveBack) {
  EXPECT_TRUE(accepts({}, {"load", "double", "sum", "sine"}));
  EXPECT_TRUE(planSaves(problem(all({"load", "double", "sum"}))).saved.empty());
}

TEST_F(Plans, WhatIsExpensiveToComputeIsSaved) {
  EXPECT_EQ(planSaves(problem(all({"load", "sine"}))).saved, all({"sine"}));
}

TEST_F(Plans, EveryPlanProvidesWhatIsNeeded) {
  const char *names[] = {"load",   "index",   "double", "sum",    "sine",
                         "steers", "rounded", "branch", "product"};
  for (unsigned chosen = 0; chosen < 1u << std::size(names); ++chosen) {
    SmallVector<Value> needed;
    for (unsigned bit = 0; bit < std::size(names); ++bit)
      if (chosen >> bit & 1)
        needed.push_back((*this)[names[bit]]);
    SavePlan plan = planSaves(problem(needed));
    EXPECT_TRUE(verifyPlan(problem(needed), plan))
        << "needed: bits of " << chosen;
    EXPECT_TRUE(verifyPlan(problem(needed), SavePlan{needed})) << "save all";
    EXPECT_LE(plan.saved.size(), needed.size());
    EXPECT_TRUE(llvm::is_sorted(plan.saved, [](Value a, Value b) {
      return a.getDefiningOp()->isBeforeInBlock(b.getDefiningOp());
    }));
  }
}

} // namespace
} // namespace costate::autodiff
