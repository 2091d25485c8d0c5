// RUN: costate-opt %s --name-operations --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

// CHECK: costate.load {{.*}} loc("a.cpp":1:1)
// CHECK: math.sqrt {{.*}} {costate.own} : f64 loc("sqrt"("a.cpp":2:1))
// CHECK: arith.divf {{.*}} {costate.own} : f64 loc("/"("a.cpp":3:1))
// CHECK: costate.powf {{.*}} {costate.own} : f64 loc("pow"("a.cpp":4:1))
// CHECK: costate.sin {{.*}} loc("a.cpp":5:1)
costate.kernel @named(%x: !costate.array<f64, 0>) {
  %a = costate.load %x[] : !costate.array<f64, 0> loc("a.cpp":1:1)
  %b = math.sqrt %a : f64 loc("a.cpp":2:1)
  %c = arith.divf %b, %a : f64 loc("a.cpp":3:1)
  %d = costate.powf %c, %b : f64 loc("a.cpp":4:1)
  %e = costate.sin %d : f64 loc("a.cpp":5:1)
  costate.store %e, %x[] : !costate.array<f64, 0> loc("a.cpp":6:1)
}
