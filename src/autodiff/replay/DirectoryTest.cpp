/// What passes may take for granted of directories, and of no other arrays.

#include "autodiff/replay/Fetches.h"
#include "autodiff/replay/Replay.h"
#include "sizing/ParsedTest.h"

#include <gtest/gtest.h>

#include <string>

using namespace mlir;

namespace costate::autodiff {
namespace {

/// A kernel that looks a row up and sets it, in `d`.
class Rows : public sizing::Parsed {
public:
  explicit Rows(const std::string &attribute)
      : Parsed("costate.kernel @k(%y: !costate.array<f64, 1>, "
               "%d: !costate.array<i64, 1>" +
               attribute + R"(, %n: i64) {
        %zero = arith.constant 0 : i64
        %one = arith.constant 1.0 : f64
        costate.range (%i) in (%n) {
          %known = costate.load %d[%i] : !costate.array<i64, 1>
          %row = costate.compare_exchange %n if %zero, %d[%zero] : !costate.array<i64, 1>
          costate.atomic_add %one, %y[%row] : !costate.array<f64, 1>
        }
      })") {}

  ir::KernelOp kernel() { return *module->getOps<ir::KernelOp>().begin(); }

  bool isWritten() { return writesOf(kernel()).size() > 1; }
  bool isOrderFree() {
    Refusal refusal;
    return succeeded(checkOrderFree(kernel(), {true, false, false}, refusal));
  }
  bool isFound() {
    forgetFetches(kernel());
    Refusal refusal;
    return succeeded(checkForgotten(kernel(), refusal));
  }
  bool isWatched() {
    watchAccesses(kernel());
    return module
        ->walk([](ir::LoadOp load) {
          return load->hasAttr(ir::watchedAttr) ? WalkResult::interrupt()
                                                : WalkResult::advance();
        })
        .wasInterrupted();
  }

private:
  void TestBody() override {}

  ScopedDiagnosticHandler quiet{module->getContext(),
                                [](Diagnostic &) { return success(); }};
};

const char *const directory = " {costate.directory}";

TEST(Directories, NothingOfThemIsOverwritten) {
  EXPECT_FALSE(Rows(directory).isWritten());
  EXPECT_TRUE(Rows("").isWritten());
}

TEST(Directories, WhatAtomicsReturnIsThereLater) {
  EXPECT_TRUE(Rows(directory).isFound());
  EXPECT_FALSE(Rows("").isFound());
}

TEST(Directories, LoadsMaySeeWhatOtherWorkItemsSet) {
  EXPECT_TRUE(Rows(directory).isOrderFree());
  EXPECT_FALSE(Rows("").isOrderFree());
  EXPECT_FALSE(Rows(directory).isWatched());
  EXPECT_TRUE(Rows("").isWatched());
}

} // namespace
} // namespace costate::autodiff
