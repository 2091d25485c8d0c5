// RUN: costate-opt %s --place-tapes=fast-math --canonicalize --cse | FileCheck %s
// RUN: costate-opt %s --place-tapes --canonicalize --cse | FileCheck %s --check-prefix=EXACT
// RUN: costate-opt %s --place-tapes=inlines --canonicalize --cse | FileCheck %s --check-prefix=INLINES
// RUN: sed s/f32/f64/g %s | costate-opt --place-tapes=inlines --canonicalize --cse | FileCheck %s --check-prefix=LARGE
// RUN: sed s/costate.cos/costate.tan/ %s | costate-opt --place-tapes=inlines --canonicalize --cse | FileCheck %s --check-prefix=OTHER
// RUN: costate-opt %s --place-tapes="inlines fast-math" --canonicalize --cse | FileCheck %s --check-prefix=HARDWARE

// From iteration to iteration of the reverse sweep there is one product, not two.
// CHECK:         scf.while
// CHECK:         ^bb0(%[[H:[a-z0-9]*]]: f32
// CHECK:           %[[F:.*]] = arith.mulf %{{.*}}, %{{.*}} : f32
// CHECK:           costate.strong_mul %[[H]], %[[F]] : f32
// EXACT:         scf.while
// EXACT:         ^bb0(%[[H:[a-z0-9]*]]: f32
// EXACT:           %[[G:.*]] = arith.mulf %[[H]], %{{.*}} : f32
// EXACT:           costate.strong_mul %[[G]], %{{.*}} : f32

// Where each call becomes the code of the function, iterations with much of it are
// undone one at a time.
// INLINES-COUNT-7: costate.cos
// LARGE-COUNT-1:   costate.cos
// LARGE-NOT:       costate.cos
// OTHER-COUNT-1:   costate.tan
// OTHER-NOT:       costate.tan
// HARDWARE-COUNT-7: costate.cos
costate.kernel @scaled(%x: !costate.array<f32, 1>, %n: i64, %g: !costate.array<f32, 1>) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %f1 = arith.constant 1.0 : f32
  %scale = arith.constant 0.9 : f32
  %e = costate.extent %x[0] : !costate.array<f32, 1>
  costate.range (%i) in (%e) {
    %v = costate.load %x[%i] : !costate.array<f32, 1>
    %r = scf.for %k = %zero to %n step %one iter_args(%a = %v) -> (f32) : i64 {
      %q = costate.sin %a : f32
      %m = arith.mulf %q, %scale : f32
      tape.push record(0) %a : f32
      scf.yield %m : f32
    } {tape.pair = 0 : i64}
    tape.pivot
    %s = scf.for %k = %zero to %n step %one iter_args(%h = %f1) -> (f32) : i64 {
      %a = tape.pop record(0) : f32
      %m = arith.mulf %h, %scale : f32
      %c = costate.cos %a : f32
      %p = costate.strong_mul %m, %c : f32
      scf.yield %p : f32
    } {tape.pair = 0 : i64}
    costate.atomic_add exclusive %s, %g[%i] : !costate.array<f32, 1>
  }
}
