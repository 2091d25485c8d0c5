// RUN: costate-opt %s --pass-pipeline='builtin.module(costate.kernel(inline-loops-that-run-once))' | FileCheck %s

// As a function is that returns 0 early.
// CHECK-LABEL: costate.kernel @once
// CHECK-NOT:     scf.while
// CHECK:         %[[V:.*]] = scf.if %{{.*}} -> (f64)
// CHECK:         costate.store %[[V]]
costate.kernel @once(%x: !costate.array<f64, 1>, %leaves: i1) {
  %zero = arith.constant 0.0 : f64
  %first = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %false = arith.constant false
  %true = arith.constant true
  %r:2 = scf.while (%t = %first, %v = %zero, %has = %false) : (i64, f64, i1) -> (i64, f64) {
    %below = arith.cmpi ult, %t, %one : i64
    %stays = arith.xori %has, %true : i1
    %goes = arith.andi %stays, %below : i1
    scf.condition(%goes) %t, %v : i64, f64
  } do {
  ^bb0(%t: i64, %v: f64):
    %w = scf.if %leaves -> (f64) {
      scf.yield %zero : f64
    } else {
      %u = costate.load %x[%t] : !costate.array<f64, 1>
      scf.yield %u : f64
    }
    %next = arith.addi %t, %one : i64
    scf.yield %next, %w, %true : i64, f64, i1
  }
  costate.store %r#1, %x[%first] : !costate.array<f64, 1>
  costate.return
}

// Twice; and as often as a number says.
// CHECK-LABEL: costate.kernel @more
// CHECK-COUNT-2: scf.while
costate.kernel @more(%x: !costate.array<f64, 0>, %n: i64) {
  %first = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %two = arith.constant 2 : i64
  %v = arith.constant 1.0 : f64
  %r = scf.while (%t = %first) : (i64) -> i64 {
    %goes = arith.cmpi slt, %t, %two : i64
    scf.condition(%goes) %t : i64
  } do {
  ^bb0(%t: i64):
    costate.atomic_add %v, %x[] : !costate.array<f64, 0>
    %next = arith.addi %t, %one : i64
    scf.yield %next : i64
  }
  %s = scf.while (%t = %first) : (i64) -> i64 {
    %goes = arith.cmpi slt, %t, %n : i64
    scf.condition(%goes) %t : i64
  } do {
  ^bb0(%t: i64):
    costate.atomic_add %v, %x[] : !costate.array<f64, 0>
    %next = arith.addi %t, %one : i64
    scf.yield %next : i64
  }
  costate.return
}

// What is left after the iteration is what the last test gives.
// CHECK-LABEL: costate.kernel @last
// CHECK-NOT:     scf.while
// CHECK:         %[[ONE:.*]] = arith.constant 1 : i64
// CHECK:         costate.store %[[ONE]]
costate.kernel @last(%y: !costate.array<i64, 0>) {
  %first = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %r = scf.while (%t = %first) : (i64) -> i64 {
    %goes = arith.cmpi slt, %t, %one : i64
    scf.condition(%goes) %t : i64
  } do {
  ^bb0(%t: i64):
    %next = arith.addi %t, %one : i64
    scf.yield %next : i64
  }
  costate.store %r, %y[] : !costate.array<i64, 0>
  costate.return
}
