/// Loops whose condition block computes values that it passes on: the language
/// never records them, but kernel IR may have them.

#include "conformance/Gradients.h"

using namespace costate;
using namespace costate::test;

namespace {

// RULE: conditions
TEST(WhileGradient, ConditionBlockComputes) {
  Kernel k = Kernel::from_ir(R"(
    costate.kernel @k(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>) {
      %n = costate.extent %x[0] : !costate.array<f64, 1>
      %c0 = arith.constant 0 : i64
      %c1 = arith.constant 1 : i64
      %half = arith.constant 0.5 : f64
      costate.range (%i) in (%n) {
        %v = costate.load %x[%i] : !costate.array<f64, 1>
        %r:2 = scf.while (%k = %c0, %a = %v) : (i64, f64) -> (i64, f64) {
          %s = costate.sin %a : f64
          %b = arith.mulf %s, %v : f64
          %e = arith.addf %b, %half : f64
          %w = costate.load %x[%k] : !costate.array<f64, 1>
          %f = arith.mulf %e, %w : f64
          %go = arith.cmpi slt, %k, %i : i64
          scf.condition(%go) %k, %f : i64, f64
        } do {
        ^bb0(%k: i64, %f: f64):
          %next = arith.addi %k, %c1 : i64
          %c = costate.cos %f : f64
          %g = arith.mulf %c, %v : f64
          scf.yield %next, %g : i64, f64
        }
        costate.store %r#1, %y[%i] : !costate.array<f64, 1>
      }
    }
  )");
  auto x = active<double>({0.7, -1.2, 1.6, 0.4}),
       y = active<double>({0, 0, 0, 0});
  expectGradients({x}, {y}, k, x, y);
}

/// The loop runs until a value of the condition block is small; results change
/// places on the way.
// RULE: conditions
TEST(WhileGradient, ConditionBlockSwapsItsResults) {
  Kernel k = Kernel::from_ir(R"(
    costate.kernel @k(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>) {
      %n = costate.extent %x[0] : !costate.array<f64, 1>
      %tenth = arith.constant 0.1 : f64
      %most = arith.constant 0.8 : f64
      costate.range (%i) in (%n) {
        %v = costate.load %x[%i] : !costate.array<f64, 1>
        %r:2 = scf.while (%a = %v, %b = %most) : (f64, f64) -> (f64, f64) {
          %p = arith.mulf %a, %b : f64
          %go = arith.cmpf ogt, %p, %tenth : f64
          scf.condition(%go) %b, %p : f64, f64
        } do {
        ^bb0(%b: f64, %p: f64):
          %s = costate.sin %p : f64
          scf.yield %b, %s : f64, f64
        }
        %t = arith.mulf %r#0, %v : f64
        %u = arith.addf %t, %r#1 : f64
        costate.store %u, %y[%i] : !costate.array<f64, 1>
      }
    }
  )");
  auto x = active<double>({0.7, 1.2, 0.05}), y = active<double>({0, 0, 0});
  expectGradients({x}, {y}, k, x, y);
}

} // namespace
