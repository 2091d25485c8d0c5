/// Reverse mode of `depth` nested loops around one product:
///
///     for -> for -> ... -> v = v * sin(v)
///
/// The time should grow with the number of loops, so a falling loops-per-second
/// rate means that something became quadratic.

#include "autodiff/Differentiate.h"
#include "ir/Registration.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"

#include <benchmark/benchmark.h>

namespace costate::autodiff {
namespace {

std::string nest(int64_t depth) {
  std::string text = "costate.kernel @nest(%x: !costate.array<f64, 1>, "
                     "%y: !costate.array<f64, 1>) {\n"
                     "%n = costate.extent %x[0] : !costate.array<f64, 1>\n"
                     "%zero = arith.constant 0 : i64\n"
                     "%one = arith.constant 1 : i64\n"
                     "costate.range (%i) in (%n) {\n"
                     "%v0 = costate.load %x[%i] : !costate.array<f64, 1>\n";
  for (int64_t d = 1; d <= depth; ++d) {
    std::string inner = std::to_string(d), outer = std::to_string(d - 1);
    text += "%r" + inner + " = scf.for %k" + inner +
            " = %zero to %n step %one iter_args(%v" + inner + " = %v" + outer +
            ") -> (f64) : i64 {\n";
  }
  std::string last = std::to_string(depth);
  text += "%s = costate.sin %v" + last + " : f64\n%p = arith.mulf %v" + last +
          ", %s : f64\n";
  for (int64_t d = depth; d > 0; --d)
    text += "scf.yield " +
            (d == depth ? std::string("%p") : "%r" + std::to_string(d + 1)) +
            " : f64\n}\n";
  return text + "costate.store %r1, %y[%i] : !costate.array<f64, 1>\n}\n}\n";
}

void reverseLoopNest(benchmark::State &state) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  mlir::DialectRegistry registry;
  ir::registerDialects(registry);
  context.appendDialectRegistry(registry);
  context.loadAllAvailableDialects();
  auto module =
      mlir::parseSourceString<mlir::ModuleOp>(nest(state.range(0)), &context);
  auto primal = *module->getOps<ir::KernelOp>().begin();
  for (auto _ : state) {
    Refusal refusal;
    auto gradient = differentiateReverse(primal, {true, true}, refusal);
    gradient->kernel.erase();
  }
  state.counters["loops"] =
      benchmark::Counter(static_cast<double>(state.range(0)),
                         benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(reverseLoopNest)->RangeMultiplier(4)->Range(1, 256);

} // namespace
} // namespace costate::autodiff
