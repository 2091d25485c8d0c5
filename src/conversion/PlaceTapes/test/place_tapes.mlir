// RUN: costate-opt %s --place-tapes --canonicalize --cse | FileCheck %s

// One loop: its depth is known before it runs. What fits is kept, the rest runs
// from checkpoint to checkpoint, and once more when it is undone. The last piece
// is kept as well, until then. What does not fit runs no iteration: nothing after the
// loop reads what it results in.
// CHECK-LABEL: costate.kernel @one
// CHECK:         costate.range (%[[I:.*]]) in {{.*}} attributes {costate.expensive, costate.iteration_rows = 1 : i64, costate.tiles}
// CHECK:           %[[ACTIVE:.*]] = tape.active
// CHECK:           %[[T:.*]] = arith.select %[[ACTIVE]]
// CHECK:           %[[MOST:.*]] = tape.warp_max %[[T]]
// CHECK:           %[[PLAN:.*]]:3 = scf.if
// CHECK:             tape.kept %[[MOST]]
// CHECK:           %[[FITS:.*]] = arith.cmpi ne, %[[PLAN]]#0, %c-1_i32
// CHECK:           %[[SEGMENTS:.*]] = arith.select %[[FITS]], %[[PLAN]]#2, %c0_i32
// CHECK:           %[[END:.*]] = arith.addi %[[SEGMENTS]], %c1_i32
// CHECK:           scf.for %{{.*}} = %c0_i32 to %[[END]]
// CHECK:             scf.if
// CHECK:               scf.for
// CHECK:                 tape.write %{{.*}} at %{{.*}} : f32
// CHECK:             else
// CHECK:               tape.write
// CHECK:               scf.for
// CHECK-NOT:             tape.write
// CHECK:           tape.report
// CHECK:           scf.for
// CHECK:             scf.if
// CHECK:             else
// CHECK:               tape.read
// CHECK:               scf.for
// CHECK:                 tape.write
// Batches of one, two and four iterations: an iteration runs where one difference is larger
// than minus its place.
// CHECK:             scf.if
// CHECK-COUNT-1:       tape.read
// CHECK-NOT:           tape.ahead
// CHECK:               arith.select
// CHECK:             scf.if
// CHECK-COUNT-2:       tape.read
// CHECK:               tape.ahead
// CHECK-COUNT-2:       arith.select
// CHECK:             scf.while
// CHECK-COUNT-4:       tape.read
// CHECK:               tape.ahead
// CHECK:               %[[MORE:.*]] = arith.subi
// CHECK:               arith.cmpi sgt, %[[MORE]], %c-1_i32
// CHECK:               arith.select
// CHECK:               arith.cmpi sgt, %[[MORE]], %c-2_i32
// CHECK:               arith.select
// CHECK:               arith.cmpi sgt, %[[MORE]], %c-3_i32
// CHECK:               arith.select
// CHECK:               arith.cmpi sgt, %[[MORE]], %c-4_i32
// CHECK:               arith.select
// CHECK-NOT:     tape.push
// CHECK-NOT:     tape.pop
costate.kernel @one(%x: !costate.array<f32, 1>, %n: !costate.array<i64, 1>, %g: !costate.array<f32, 1>) {
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
    } {tape.pair = 0 : i64}
    tape.pivot
    %s = scf.for %k = %zero to %t step %one iter_args(%h = %f1) -> (f32) : i64 {
      %a = tape.pop record(0) : f32
      %c = costate.cos %a : f32
      %m = costate.strong_mul %h, %c : f32
      scf.yield %m : f32
    } {tape.pair = 0 : i64}
    costate.atomic_add exclusive %s, %g[%i] : !costate.array<f32, 1>
  }
}

// A `while` counts as it runs, and writes what has room.
// CHECK-LABEL: costate.kernel @open
// CHECK:         scf.while
// CHECK:           scf.condition
// CHECK:           scf.if
// CHECK:             tape.write
// CHECK:         tape.warp_max
// CHECK:         tape.report
costate.kernel @open(%x: !costate.array<f64, 1>, %g: !costate.array<f64, 1>) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %f1 = arith.constant 1.0 : f64
  %e = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%e) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %r:2 = scf.while (%a = %v, %k = %zero) : (f64, i64) -> (f64, i64) {
      %c = arith.cmpf olt, %a, %f1 : f64
      scf.condition(%c) %a, %k : f64, i64
    } do {
    ^bb0(%a: f64, %k: i64):
      %q = costate.exp %a : f64
      %next = arith.addi %k, %one : i64
      tape.push record(0) %q : f64
      scf.yield %q, %next : f64, i64
    } attributes {tape.pair = 0 : i64}
    tape.pivot
    %s = scf.for %k = %zero to %r#1 step %one iter_args(%h = %f1) -> (f64) : i64 {
      %q = tape.pop record(0) : f64
      %m = costate.strong_mul %h, %q : f64
      scf.yield %m : f64
    } {tape.pair = 0 : i64}
    costate.atomic_add exclusive %s, %g[%i] : !costate.array<f64, 1>
  }
}

// Without loops records are values in scope.
// CHECK-LABEL: costate.kernel @branch
// CHECK-NOT:     costate.tiles
// CHECK-NOT:     tape.
// CHECK:         costate.return
costate.kernel @branch(%x: !costate.array<f64, 1>, %g: !costate.array<f64, 1>) {
  %f0 = arith.constant 0.0 : f64
  %e = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%e) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %c = arith.cmpf ogt, %v, %f0 : f64
    scf.if %c {
      %q = costate.exp %v : f64
      tape.push record(0) %q : f64
    }
    tape.pivot
    scf.if %c {
      %q = tape.pop record(0) : f64
      costate.atomic_add exclusive %q, %g[%i] : !costate.array<f64, 1>
    }
  }
}

// A forward sweep that writes memory cannot run twice.
// CHECK-LABEL: costate.kernel @writes
// CHECK-NOT:     costate.tiles
// CHECK:         tape.push
costate.kernel @writes(%x: !costate.array<f64, 1>, %g: !costate.array<f64, 1>, %n: i64) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %e = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%e) {
    scf.for %k = %zero to %n step %one : i64 {
      %v = costate.load %x[%i] : !costate.array<f64, 1>
      %q = costate.exp %v : f64
      costate.store %q, %x[%i] : !costate.array<f64, 1>
      tape.push record(0) %q : f64
    } {tape.pair = 0 : i64}
    tape.pivot
    scf.for %k = %zero to %n step %one : i64 {
      %q = tape.pop record(0) : f64
      costate.atomic_add exclusive %q, %g[%i] : !costate.array<f64, 1>
    } {tape.pair = 0 : i64}
  }
}
