#include "ir/Registration.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;

namespace {

/// A loop of which all but the last iterations run again, on a private array.
constexpr char segments[] = R"(
costate.kernel @k(%v: f64, %n: i64, %count: i64, %length: i64) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %covered = arith.muli %count, %length : i64
  %rest = arith.subi %n, %covered : i64
  %p = costate.local : !costate.local<f64, 4>
  tape.schedule segments(%count of %length) rest(%rest) in(%n)
  %s = scf.for %k = %zero to %count step %one iter_args(%a = %v) -> (f64) : i64 {
    scf.for %e = %zero to %one step %one : i64 {
      %held = costate.local_load %p[%e] : !costate.local<f64, 4>
      tape.push record(0) %held : f64
    }
    %t = scf.for %j = %zero to %length step %one iter_args(%b = %a) -> (f64) : i64 {
      %q = costate.local_load %p[%zero] : !costate.local<f64, 4>
      %u = arith.mulf %b, %q : f64
      costate.local_store %u, %p[%zero] : !costate.local<f64, 4>
      tape.plan behind(%b, %q : f64, f64)
      scf.yield %u : f64
    } {costate.segment}
    tape.push record(1) %a : f64
    tape.plan saved(%a : f64)
    scf.yield %t : f64
  } {costate.rerun, tape.pair = 0 : i64}
  tape.schedule keep
  %r = scf.for %k = %zero to %rest step %one iter_args(%a = %s) -> (f64) : i64 {
    %u = arith.mulf %a, %a : f64
    tape.push record(2) %a : f64
    tape.plan saved(%a : f64)
    scf.yield %u : f64
  } {costate.rest, tape.pair = 1 : i64}
  tape.pivot
}
)";

/// What the verifier says of a plan, after one change of the text.
std::string errorsOf(const std::string &from, const std::string &to) {
  std::string text = segments, errors;
  text.replace(text.find(from), from.size(), to);
  DialectRegistry registry;
  costate::ir::registerDialects(registry);
  MLIRContext context(registry);
  context.loadAllAvailableDialects();
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    errors += diagnostic.str() + "\n";
    return success();
  });
  auto module = parseSourceString<ModuleOp>(text, &context);
  return errors;
}

void expectError(const char *from, const char *to, const char *error) {
  std::string errors = errorsOf(from, to);
  EXPECT_NE(errors.find(error), std::string::npos) << to << "\n" << errors;
}

} // namespace

TEST(Schedules, AreRightAsTheyAre) {
  EXPECT_EQ(errorsOf("tape.pivot", "tape.pivot"), "");
}

TEST(Schedules, SegmentsAndRestMakeUpAllIterations) {
  expectError("in(%n)", "in(%count)", "do not make up the iterations");
  expectError("arith.muli %count, %length", "arith.muli %count, %count",
              "do not make up the iterations");
  expectError("to %count step", "to %length step",
              "another number of segments");
  expectError("(%a = %s)", "(%a = %v)", "does not go on behind the segments");
}

// RULE: checkpoints
TEST(Schedules, AnIterationThatRunsAgainFindsWhatItBeganWith) {
  expectError("tape.plan saved(%a : f64)", "", "nobody gives what it takes");
  expectError("      tape.push record(0) %held : f64\n", "",
              "nobody gives what the private array held");
  expectError("      scf.yield %u",
              "      tape.push record(3) %q : f64\n      scf.yield %u",
              "saves in an iteration that runs again");
}
