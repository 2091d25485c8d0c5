// RUN: costate-opt %s --differentiate-reverse='target=gpu' | FileCheck %s
// RUN: costate-opt %s --differentiate-reverse='target=gpu-fast-math' | FileCheck %s --check-prefix=FAST
// RUN: costate-opt %s --differentiate-reverse='target=cpu' | FileCheck %s --check-prefix=CPU

// The power of a saved value costs less than a word of the tape where it is a few
// instructions of the hardware, and more where it is not.
// CHECK-LABEL: costate.kernel @power.grad
// CHECK:         tape.push record(0) %{{.*}}, %{{.*}} : f32, f32
// FAST-LABEL:  costate.kernel @power.grad
// FAST:          tape.push record(0) %{{[a-z0-9]+}} : f32
// CPU-LABEL:   costate.kernel @power.grad
// CPU:           tape.push record(0) %{{.*}}, %{{.*}} : f32, f32
costate.kernel @power(%x: !costate.array<f32, 1>, %n: i64, %y: !costate.array<f32, 1>) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %e = costate.extent %x[0] : !costate.array<f32, 1>
  costate.range (%i) in (%e) {
    %v = costate.load %x[%i] : !costate.array<f32, 1>
    %r = scf.for %k = %zero to %n step %one iter_args(%a = %v) -> (f32) : i64 {
      %q = costate.exp2 %a : f32
      %m = arith.mulf %q, %a : f32
      scf.yield %m : f32
    }
    costate.store %r, %y[%i] : !costate.array<f32, 1>
  }
}

// A sine is not saved where the reverse sweep computes the cosine of that value, with
// which it has nearly all instructions in common on a GPU.
// CHECK-LABEL: costate.kernel @sine_beside_cosine.grad
// CHECK:         tape.push record(0) %{{[a-z0-9]+}} : f32
// CHECK:         tape.pop record(0) : f32
// CHECK-NEXT:    costate.sin
// CPU-LABEL:   costate.kernel @sine_beside_cosine.grad
// CPU:           tape.push record(0) %{{.*}}, %{{.*}} : f32, f32
costate.kernel @sine_beside_cosine(%x: !costate.array<f32, 1>, %n: i64, %y: !costate.array<f32, 1>) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %e = costate.extent %x[0] : !costate.array<f32, 1>
  costate.range (%i) in (%e) {
    %v = costate.load %x[%i] : !costate.array<f32, 1>
    %r = scf.for %k = %zero to %n step %one iter_args(%a = %v) -> (f32) : i64 {
      %q = costate.sin %a : f32
      %m = arith.mulf %q, %a : f32
      scf.yield %m : f32
    }
    costate.store %r, %y[%i] : !costate.array<f32, 1>
  }
}
