// RUN: costate-opt %s | FileCheck %s
// RUN: costate-opt %s | costate-opt | FileCheck %s
// RUN: costate-opt %s --mlir-print-op-generic | costate-opt | FileCheck %s
// RUN: costate-opt %s --canonicalize --cse | FileCheck %s

// The adjoint of a loop that squares a value: a record per iteration, taken off in
// the opposite order. No clean-up drops or merges an access to the tape.

// CHECK-LABEL: costate.kernel @square.grad(
costate.kernel @square.grad(%x: !costate.array<f64, 1>, %n: i64,
                            %dx: !costate.array<f64, 1> {costate.adjoint_of = 0 : i64}) {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %two = arith.constant 2.0 : f64
  %extent = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%extent) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    // CHECK: scf.for
    %w = scf.for unsigned %k = %c0 to %n step %c1 iter_args(%u = %v) -> f64 : i64 {
      %more = arith.cmpf olt, %u, %two : f64
      // CHECK: tape.push record(7) %{{.*}}, %{{.*}} : f64, i1
      tape.push record(7) %u, %more : f64, i1
      %square = arith.mulf %u, %u : f64
      scf.yield %square : f64
    }
    // CHECK: tape.pivot
    tape.pivot
    // CHECK: scf.for
    %dw = scf.for unsigned %k = %c0 to %n step %c1 iter_args(%du = %two) -> f64 : i64 {
      // CHECK: %{{.*}}:2 = tape.pop record(7) : f64, i1
      %u, %more = tape.pop record(7) : f64, i1
      %factor = arith.mulf %two, %u : f64
      %next = costate.strong_mul %du, %factor : f64
      scf.yield %next : f64
    }
    costate.atomic_add %dw, %dx[%i] : !costate.array<f64, 1>
  }
}

// CHECK-LABEL: costate.kernel @every_type(
costate.kernel @every_type(%a: i1, %b: i32, %c: i64, %d: f32, %e: f64) {
  // CHECK: tape.push %{{.*}} : i1, i32, i64, f32, f64
  tape.push %a, %b, %c, %d, %e : i1, i32, i64, f32, f64
  // CHECK-NEXT: tape.pivot
  tape.pivot
  // CHECK-NEXT: tape.pop : i1, i32, i64, f32, f64
  %0:5 = tape.pop : i1, i32, i64, f32, f64
}
