// RUN: costate-opt %s --compose-iterations | FileCheck %s

// CHECK-LABEL: costate.kernel @decay(
// CHECK-SAME: %[[X:.*]]: f64, %[[N:.*]]: i64, %[[Y:.*]]: !costate.array
costate.kernel @decay(%x: f64, %n: i64, %y: !costate.array<f64, 0>) {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %half = arith.constant 0.5 : f64
  %one = arith.constant 1.0 : f64
  // CHECK: %[[COUNT:.*]] = arith.maxsi %[[N]], %{{.*}} : i64
  // CHECK: arith.andi %[[COUNT]]
  // CHECK: %[[TERM:.*]] = arith.constant 1.000000e+00 : f64
  // CHECK: %[[ONE:.*]] = math.fma %[[X]], %{{.*}}, %[[TERM]] : f64
  // CHECK: arith.select %{{.*}}, %[[ONE]], %[[X]] : f64
  // CHECK: arith.constant 2.500000e-01 : f64
  // CHECK: arith.constant 1.500000e+00 : f64
  // CHECK: arith.constant 6.250000e-02 : f64
  // CHECK: arith.constant 1.875000e+00 : f64
  // CHECK: arith.constant 3.906250e-03 : f64
  // CHECK: arith.constant 1.9921875 : f64
  // CHECK: arith.constant 16 : i64
  // CHECK: %[[REST:.*]] = arith.select
  // CHECK: %[[FIVE:.*]] = arith.constant 5 : i64
  // CHECK: %[[ROUNDS:.*]] = arith.shrui %[[COUNT]], %[[FIVE]] : i64
  // CHECK: scf.for %{{.*}} = %{{.*}} to %[[ROUNDS]] {{.*}} iter_args(%[[V:.*]] = %[[REST]]
  // CHECK-NEXT: %[[A:.*]] = arith.constant 2.3283064365386963E-10 : f64
  // CHECK-NEXT: %[[B:.*]] = arith.constant 1.9999999995343387 : f64
  // CHECK-NEXT: %[[W:.*]] = math.fma %[[V]], %[[A]], %[[B]] : f64
  // CHECK-NEXT: scf.yield %[[W]] : f64
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%v = %x) -> f64 : i64 {
    %w = math.fma %v, %half, %one : f64
    scf.yield %w : f64
  }
  costate.store %r, %y[] : !costate.array<f64, 0>
}

// `1 - v` twice is `v`.
// CHECK-LABEL: costate.kernel @swapped(
// CHECK: scf.for
// CHECK-NEXT: arith.constant 1.000000e+00 : f32
// CHECK-NEXT: arith.constant 0.000000e+00 : f32
// CHECK-NEXT: math.fma
// CHECK-NEXT: arith.constant 1.000000e+00 : f32
// CHECK-NEXT: arith.constant 9.600000e+01 : f32
costate.kernel @swapped(%x: f32, %n: i64, %y: !costate.array<f32, 0>) {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %one = arith.constant 1.0 : f32
  %two = arith.constant 2.0 : f32
  %r:2 = scf.for %k = %c0 to %n step %c1 iter_args(%v = %x, %t = %x) -> (f32, f32) : i64 {
    %w = arith.subf %one, %v : f32
    %u = arith.addf %t, %two : f32
    %s = arith.addf %u, %one : f32
    scf.yield %w, %s : f32, f32
  }
  costate.store %r#0, %y[] : !costate.array<f32, 0>
  costate.store %r#1, %y[] : !costate.array<f32, 0>
}

// 32 and 16 of the first would leave the numbers, those of the second grow by
// too much; 8 do not.
// CHECK-LABEL: costate.kernel @fewer(
// CHECK: %[[THREE:.*]] = arith.constant 3 : i64
// CHECK: arith.shrui %{{.*}}, %[[THREE]] : i64
// CHECK: %[[THREE:.*]] = arith.constant 3 : i64
// CHECK: arith.shrui %{{.*}}, %[[THREE]] : i64
costate.kernel @fewer(%x: f64, %n: i64, %y: !costate.array<f64, 0>) {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %a = arith.constant 1.0e-3 : f64
  %b = arith.constant 1.5 : f64
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%v = %x) -> f64 : i64 {
    %w = arith.mulf %v, %a : f64
    scf.yield %w : f64
  }
  costate.store %r, %y[] : !costate.array<f64, 0>
  %s = scf.for %k = %c0 to %n step %c1 iter_args(%v = %x) -> f64 : i64 {
    %w = arith.mulf %v, %b : f64
    scf.yield %w : f64
  }
  costate.store %s, %y[] : !costate.array<f64, 0>
}

// What depends on the iteration, on another value, on what is not known, or
// twice on itself; a factor that may overflow; one that leaves the numbers.
// CHECK-LABEL: costate.kernel @kept(
// CHECK-NOT: arith.shrui
costate.kernel @kept(%x: f64, %a: f64, %n: i64, %y: !costate.array<f64, 0>) {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %three = arith.constant 3.0 : f64
  %tiny = arith.constant 1.0e-9 : f64
  %none = arith.constant 0.0 : f64
  %r:2 = scf.for %k = %c0 to %n step %c1 iter_args(%v = %x, %w = %a) -> (f64, f64) : i64 {
    scf.yield %w, %v : f64, f64
  }
  costate.store %r#0, %y[] : !costate.array<f64, 0>
  %s = scf.for %k = %c0 to %n step %c1 iter_args(%v = %x) -> f64 : i64 {
    %w = arith.mulf %v, %a : f64
    scf.yield %w : f64
  }
  costate.store %s, %y[] : !costate.array<f64, 0>
  %t = scf.for %k = %c0 to %n step %c1 iter_args(%v = %x) -> f64 : i64 {
    %w = arith.mulf %v, %v : f64
    scf.yield %w : f64
  }
  costate.store %t, %y[] : !costate.array<f64, 0>
  %u = scf.for %k = %c0 to %n step %c1 iter_args(%v = %x) -> f64 : i64 {
    %w = arith.mulf %v, %three : f64
    scf.yield %w : f64
  }
  costate.store %u, %y[] : !costate.array<f64, 0>
  %q = scf.for %k = %c0 to %n step %c1 iter_args(%v = %x) -> f64 : i64 {
    %w = arith.mulf %v, %tiny : f64
    scf.yield %w : f64
  }
  costate.store %q, %y[] : !costate.array<f64, 0>
  %z = scf.for %k = %c0 to %n step %c1 iter_args(%v = %x) -> f64 : i64 {
    %w = arith.mulf %v, %none : f64
    scf.yield %w : f64
  }
  costate.store %z, %y[] : !costate.array<f64, 0>
  %p = scf.for %k = %c1 to %n step %c1 iter_args(%v = %x) -> f64 : i64 {
    %w = arith.addf %v, %three : f64
    scf.yield %w : f64
  }
  costate.store %p, %y[] : !costate.array<f64, 0>
  %o = scf.for %k = %c0 to %n step %c1 iter_args(%v = %x) -> f64 : i64 {
    costate.store %v, %y[] : !costate.array<f64, 0>
    %w = arith.addf %v, %three : f64
    scf.yield %w : f64
  }
  costate.store %o, %y[] : !costate.array<f64, 0>
}
