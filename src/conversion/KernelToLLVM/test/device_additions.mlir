// RUN: costate-opt %s --device | FileCheck %s

// A GPU does not add adjoints of 0; what a primal adds it adds in any case.
// CHECK-LABEL: llvm.func internal @adjoints.device0.body(
// CHECK: %[[ZERO:.*]] = llvm.mlir.constant(0.000000e+00 : f64)
// CHECK: %[[IS_ZERO:.*]] = llvm.fcmp "oeq" %[[V:.*]], %[[ZERO]] : f64
// CHECK-NEXT: llvm.cond_br %[[IS_ZERO]], ^[[END:.*]], ^[[ADD:[^ ]*]]
// CHECK: ^[[ADD]]:
// CHECK-NEXT: llvm.atomicrmw fadd %{{.*}}, %[[V]] monotonic
// CHECK-NEXT: llvm.br ^[[END]]
// CHECK-NOT: llvm.fcmp
// CHECK: llvm.atomicrmw fadd
costate.kernel @adjoints(%x: !costate.array<f64, 1>, %at: !costate.array<i64, 1>, %gx: !costate.array<f64, 1> {costate.adjoint_of = 0 : i64}, %n: i64) {
  costate.range (%i) in (%n) {
    %j = costate.load %at[%i] : !costate.array<i64, 1>
    %v = arith.sitofp %j : i64 to f64
    costate.atomic_add %v, %gx[%j] : !costate.array<f64, 1>
    costate.atomic_add %v, %x[%j] : !costate.array<f64, 1>
  }
}

// Nor does it run a loop that would add nothing else.
// CHECK-LABEL: llvm.func internal @loop.device0.body(
// CHECK: llvm.fcmp "une"
// CHECK: llvm.cond_br
// CHECK: llvm.fcmp "oeq"
// CHECK: llvm.atomicrmw fadd
costate.kernel @loop(%x: !costate.array<f64, 1>, %at: !costate.array<i64, 1>, %gx: !costate.array<f64, 1> {costate.adjoint_of = 0 : i64}, %gy: !costate.array<f64, 1> {costate.adjoint_of = 0 : i64}, %n: i64) {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  costate.range (%i) in (%n) {
    tape.pivot
    %g = costate.load %gy[%i] : !costate.array<f64, 1>
    scf.for %k = %c0 to %n step %c1 : i64 {
      %m = arith.addi %i, %k : i64
      %j = costate.load %at[%m] : !costate.array<i64, 1>
      %v = costate.load %x[%j] : !costate.array<f64, 1>
      %h = costate.strong_mul %g, %v : f64
      costate.atomic_add %h, %gx[%j] : !costate.array<f64, 1>
    }
  }
}
