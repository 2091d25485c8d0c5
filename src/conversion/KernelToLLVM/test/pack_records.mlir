// RUN: costate-opt %s --pass-pipeline='builtin.module(costate.kernel(pack-records))' | FileCheck %s

// What comes from narrow numbers lies on the tape as such, also where a loop carries it.
// CHECK-LABEL: costate.kernel @narrow
// CHECK:           iter_args(%[[A:.*]] =
// CHECK:             %[[H:.*]] = arith.truncf %{{.*}} : f32 to f16
// CHECK:             %[[HB:.*]] = arith.bitcast %[[H]] : f16 to i16
// CHECK:             %[[CB:.*]] = arith.bitcast %{{.*}} : f16 to i16
// CHECK:             %[[S:.*]] = arith.trunci %{{.*}} : i32 to i8
// CHECK:             %[[U:.*]] = arith.trunci %{{.*}} : i32 to i16
// CHECK:             tape.push record(0) %[[HB]], %[[CB]], %[[S]], %[[U]], %{{.*}} : i16, i16, i8, i16, f32
// CHECK:           %[[P:.*]]:5 = tape.pop record(0) : i16, i16, i8, i16, f32
// CHECK:           %[[F:.*]] = arith.bitcast %[[P]]#0 : i16 to f16
// CHECK:           arith.extf %[[F]] : f16 to f32
// CHECK:           arith.extsi %[[P]]#2 : i8 to i32
// CHECK:           arith.extui %[[P]]#3 : i16 to i32
costate.kernel @narrow(%h: !costate.array<f16, 1>, %s: !costate.array<i8, 1>, %u: !costate.array<ui16, 1>, %g: !costate.array<f32, 1>, %n: i64) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %half = arith.constant 0.5 : f32
  costate.range (%i) in (%n) {
    %r = scf.for %k = %zero to %n step %one iter_args(%c = %half) -> (f32) : i64 {
      %a = costate.load %h[%k] : !costate.array<f16, 1>
      %b = costate.load %s[%k] : !costate.array<i8, 1>
      %d = costate.load %u[%k] : !costate.array<ui16, 1>
      %p = arith.mulf %a, %c : f32
      %q = costate.narrow %p to f16 : f32
      tape.push record(0) %a, %c, %b, %d, %p : f32, f32, i32, i32, f32
      scf.yield %q : f32
    }
    tape.pivot
    scf.for %k = %zero to %n step %one : i64 {
      %a, %c, %b, %d, %p = tape.pop record(0) : f32, f32, i32, i32, f32
      %e = arith.addf %a, %c : f32
      %m = arith.addf %e, %p : f32
      %x = arith.addi %b, %d : i32
      %y = arith.sitofp %x : i32 to f32
      %z = arith.addf %m, %y : f32
      costate.atomic_add %z, %g[%k] : !costate.array<f32, 1>
    }
  }
}

// Iterations of a loop of few are few bits; what has no bound stays as it is.
// CHECK-LABEL: costate.kernel @bounded
// CHECK:         tape.push record(0) %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : i8, i16, i64, i64
// CHECK:         %[[P:.*]]:4 = tape.pop record(0) : i8, i16, i64, i64
// CHECK-NEXT:    arith.extui %[[P]]#0 : i8 to i64
// CHECK-NEXT:    arith.extui %[[P]]#1 : i16 to i64
costate.kernel @bounded(%g: !costate.array<i64, 1>, %n: i64) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %many = arith.constant 1000 : i64
  %most = arith.constant 255 : i64
  %minus = arith.constant -5 : i64
  costate.range (%i) in (%n) {
    scf.for %k = %zero to %n step %one : i64 {
      %a = arith.andi %k, %most : i64
      %least = arith.minsi %k, %many : i64
      %b = costate.trip_count %zero to %least by %one
      %c = arith.minsi %k, %many : i64
      %d = arith.maxsi %k, %minus : i64
      tape.push record(0) %a, %b, %c, %d : i64, i64, i64, i64
    }
    tape.pivot
    scf.for %k = %zero to %n step %one : i64 {
      %v:4 = tape.pop record(0) : i64, i64, i64, i64
      %s = arith.addi %v#0, %v#1 : i64
      %t = arith.addi %s, %v#2 : i64
      %u = arith.addi %t, %v#3 : i64
      costate.store %u, %g[%k] : !costate.array<i64, 1>
    }
  }
}
