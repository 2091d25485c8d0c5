// RUN: costate-opt %s --place-tapes --canonicalize --cse | FileCheck %s

// A tile that does not fit runs no turn where nothing behind the loop reads what
// it results in.
// CHECK-LABEL: costate.kernel @unread
// CHECK:         %[[PLAN:.*]]:3 = scf.if
// CHECK:           tape.kept
// CHECK:         %[[FITS:.*]] = arith.cmpi ne, %[[PLAN]]#0, %c-1_i32
// CHECK:         %[[SEGMENTS:.*]] = arith.select %[[FITS]], %[[PLAN]]#2, %c0_i32
// CHECK:         %[[END:.*]] = arith.addi %[[SEGMENTS]], %c1_i32
// CHECK:         scf.for %{{.*}} = %c0_i32 to %[[END]]
costate.kernel @unread(%x: !costate.array<f32, 1>, %n: !costate.array<i64, 1>, %g: !costate.array<f32, 1>) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %f1 = arith.constant 1.0 : f32
  %e = costate.extent %x[0] : !costate.array<f32, 1>
  costate.range (%i) in (%e) {
    %v = costate.load %x[%i] : !costate.array<f32, 1>
    %t = costate.load %n[%i] : !costate.array<i64, 1>
    %r = scf.for %k = %zero to %t step %one iter_args(%a = %v) -> (f32) : i64 {
      %q = costate.sin %a : f32
      tape.push record(0) %a : f32
      scf.yield %q : f32
    }
    tape.turn
    %s = scf.for %k = %zero to %t step %one iter_args(%h = %f1) -> (f32) : i64 {
      %a = tape.pop record(0) : f32
      %c = costate.cos %a : f32
      %w = costate.strong_mul %h, %c : f32
      scf.yield %w : f32
    }
    costate.atomic_add exclusive %s, %g[%i] : !costate.array<f32, 1>
  }
}

// What reads it may be the index of a load.
// CHECK-LABEL: costate.kernel @read
// CHECK:         %[[PLAN:.*]]:3 = scf.if
// CHECK:           tape.kept
// CHECK:         %[[END:.*]] = arith.addi %[[PLAN]]#2, %c1_i32
// CHECK:         scf.for %{{.*}} = %c0_i32 to %[[END]]
costate.kernel @read(%x: !costate.array<f32, 1>, %n: !costate.array<i64, 1>, %g: !costate.array<f32, 1>) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %e = costate.extent %x[0] : !costate.array<f32, 1>
  costate.range (%i) in (%e) {
    %v = costate.load %x[%i] : !costate.array<f32, 1>
    %t = costate.load %n[%i] : !costate.array<i64, 1>
    %r = scf.for %k = %zero to %t step %one iter_args(%a = %v) -> (f32) : i64 {
      %q = costate.sin %a : f32
      tape.push record(0) %a : f32
      scf.yield %q : f32
    }
    tape.push record(1) %r : f32
    tape.turn
    %last = tape.pop record(1) : f32
    %s = scf.for %k = %zero to %t step %one iter_args(%h = %last) -> (f32) : i64 {
      %a = tape.pop record(0) : f32
      %c = costate.cos %a : f32
      %w = costate.strong_mul %h, %c : f32
      scf.yield %w : f32
    }
    costate.atomic_add exclusive %s, %g[%i] : !costate.array<f32, 1>
  }
}
