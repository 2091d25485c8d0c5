// RUN: costate-opt %s --place-tapes --canonicalize --cse | FileCheck %s

// A nest: iterations that are deeper than all rows are left to the drain, where each
// is a work item of its own, whose loop is cut as well. A sine is expensive to run
// again, but in short loops only where there are few rows on the chip.
// CHECK-LABEL: costate.kernel @nest
// CHECK:         attributes {costate.expensive, {{.*}}costate.moderately_expensive,
// CHECK:         %[[DRAINS:.*]] = tape.drains
// CHECK:         scf.if
// CHECK:           scf.for
// CHECK:             tape.kept
// CHECK:         tape.report
// CHECK:         scf.for
// CHECK:           tape.fence
// CHECK:           scf.if
// CHECK:             scf.for
// CHECK:               tape.write
// CHECK:             scf.for
// CHECK:               tape.fence
// CHECK:               tape.kept
// CHECK:               tape.fence
// CHECK:           else
costate.kernel @nest(%x: !costate.array<f32, 1>, %n: !costate.array<i64, 1>, %g: !costate.array<f32, 1>) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %f1 = arith.constant 1.0 : f32
  %e = costate.extent %x[0] : !costate.array<f32, 1>
  costate.range (%i) in (%e) {
    %v = costate.load %x[%i] : !costate.array<f32, 1>
    %t = costate.load %n[%i] : !costate.array<i64, 1>
    %r = scf.for %k = %zero to %t step %one iter_args(%a = %v) -> (f32) : i64 {
      %q = scf.for %j = %zero to %k step %one iter_args(%c = %a) -> (f32) : i64 {
        %d = costate.sin %c : f32
        tape.push record(0) %c : f32
        scf.yield %d : f32
      } {tape.pair = 1 : i64}
      scf.yield %q : f32
    } {tape.pair = 0 : i64}
    tape.pivot
    %last = arith.subi %t, %one : i64
    %s = scf.for %k = %zero to %t step %one iter_args(%h = %f1) -> (f32) : i64 {
      %inner = arith.subi %last, %k : i64
      %u = scf.for %j = %zero to %inner step %one iter_args(%w = %h) -> (f32) : i64 {
        %c = tape.pop record(0) : f32
        %d = costate.cos %c : f32
        %m = costate.strong_mul %w, %d : f32
        scf.yield %m : f32
      } {tape.pair = 1 : i64}
      scf.yield %u : f32
    } {tape.pair = 0 : i64}
    costate.atomic_add exclusive %s, %g[%i] : !costate.array<f32, 1>
  }
}

// One loop needs no such code.
// CHECK-LABEL: costate.kernel @leaf
// CHECK-NOT:     costate.moderately_expensive
// CHECK-NOT:     tape.drains
// CHECK:         costate.return
costate.kernel @leaf(%x: !costate.array<f32, 1>, %n: !costate.array<i64, 1>, %g: !costate.array<f32, 1>) {
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
