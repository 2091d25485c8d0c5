// RUN: costate-opt %s --place-tapes | FileCheck %s

// Segments that run again would need what private arrays held in front of them:
// such a range is measured and keeps its tape.
// CHECK-LABEL: costate.kernel @state
// CHECK-NOT:     costate.tiles
// CHECK:         tape.push record(0)
// CHECK:         tape.pop record(0)
costate.kernel @state(%x: !costate.array<f64, 1>, %m: i64) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  costate.range (%i) in (%n) {
    %a = costate.local : !costate.local<f64, 4>
    scf.for %t = %zero to %m step %one : i64 {
      %v = costate.local_load %a[%zero] : !costate.local<f64, 4>
      %w = costate.cos %v : f64
      costate.local_store %w, %a[%zero] : !costate.local<f64, 4>
      tape.push record(0) %w : f64
    }
    tape.pivot
    scf.for %t = %zero to %m step %one : i64 {
      %w = tape.pop record(0) : f64
      costate.atomic_add %w, %x[%i] : !costate.array<f64, 1>
    }
  }
}
