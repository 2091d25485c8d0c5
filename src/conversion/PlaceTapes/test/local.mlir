// RUN: costate-opt %s --place-tapes --canonicalize --cse | FileCheck %s

// A checkpoint holds what the loop carries in a private array, and a segment that
// runs again puts it back.
// CHECK-LABEL: costate.kernel @state
// CHECK:         costate.range {{.*}} costate.tiles
// CHECK:           costate.local : !costate.local<f64, 4>
// CHECK:           tape.write %{{[0-9]+}} at
// CHECK:           %[[E0:.*]] = costate.local_load
// CHECK:           %[[E1:.*]] = costate.local_load
// CHECK:           %[[E2:.*]] = costate.local_load
// CHECK:           %[[E3:.*]] = costate.local_load
// CHECK:           tape.write %[[E0]], %[[E1]], %[[E2]], %[[E3]] at
// CHECK:           tape.report
// CHECK:           %[[R:.*]]:4 = tape.read
// CHECK:           costate.local_store %[[R]]#0
// CHECK:           costate.local_store %[[R]]#1
// CHECK:           costate.local_store %[[R]]#2
// CHECK:           costate.local_store %[[R]]#3
// CHECK-NOT:       tape.pop
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
    } {tape.pair = 0 : i64}
    tape.pivot
    scf.for %t = %zero to %m step %one : i64 {
      %w = tape.pop record(0) : f64
      costate.atomic_add %w, %x[%i] : !costate.array<f64, 1>
    } {tape.pair = 0 : i64}
  }
}

// One that is filled before the loop is there whenever that runs again.
// CHECK-LABEL: costate.kernel @filled
// CHECK:         costate.range {{.*}} costate.tiles
// CHECK:           costate.local_store
// CHECK-NOT:       costate.local_store
costate.kernel @filled(%x: !costate.array<f64, 1>, %m: i64) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  costate.range (%i) in (%n) {
    %a = costate.local : !costate.local<f64, 4>
    %first = costate.load %x[%i] : !costate.array<f64, 1>
    costate.local_store %first, %a[%one] : !costate.local<f64, 4>
    %end = scf.for %t = %zero to %m step %one iter_args(%s = %first) -> f64 : i64 {
      %v = costate.local_load %a[%one] : !costate.local<f64, 4>
      %u = arith.addf %v, %s : f64
      %w = costate.cos %u : f64
      tape.push record(0) %w : f64
      scf.yield %w : f64
    } {tape.pair = 0 : i64}
    tape.pivot
    scf.for %t = %zero to %m step %one : i64 {
      %w = tape.pop record(0) : f64
      costate.atomic_add %w, %x[%i] : !costate.array<f64, 1>
    } {tape.pair = 0 : i64}
  }
}

// A large one is not in checkpoints.
// CHECK-LABEL: costate.kernel @large
// CHECK:         costate.range {{.*}} attributes {costate.tape_obstacle = "its private arrays are large"}
// CHECK:           tape.push record(0)
costate.kernel @large(%x: !costate.array<f64, 1>, %m: i64) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  costate.range (%i) in (%n) {
    %a = costate.local : !costate.local<f64, 40>
    scf.for %t = %zero to %m step %one : i64 {
      %v = costate.local_load %a[%zero] : !costate.local<f64, 40>
      %w = costate.cos %v : f64
      costate.local_store %w, %a[%zero] : !costate.local<f64, 40>
      tape.push record(0) %w : f64
    } {tape.pair = 0 : i64}
    tape.pivot
    scf.for %t = %zero to %m step %one : i64 {
      %w = tape.pop record(0) : f64
      costate.atomic_add %w, %x[%i] : !costate.array<f64, 1>
    } {tape.pair = 0 : i64}
  }
}
