// RUN: costate-opt %s --place-tapes --canonicalize --cse | FileCheck %s

// A loop with checkpoints takes, of the rows that all iterations need, those of so many states
// and of one segment; it asks for no more.
// CHECK-LABEL: costate.kernel @five
// CHECK-DAG:     %[[FIVE:.*]] = arith.constant 5 : i64
// CHECK:         %[[LENGTH:.*]] = arith.divui %{{.*}}, %[[FIVE]] : i64
// CHECK:         arith.maxui
// CHECK:         %[[NEED:.*]] = arith.minui
// CHECK:         %[[ALL:.*]] = arith.addi %[[NEED]], %{{.*}} : i64
// CHECK:         tape.expect %[[ALL]]
// CHECK:           %[[ROWS:.*]] = tape.rows
// CHECK:           %[[MOST:.*]] = tape.warp_max
// CHECK:           arith.divui %{{.*}}, %[[FIVE]] : i64
// CHECK:           %[[MINE:.*]] = arith.minui %[[ROWS]], %{{.*}} : i32
// CHECK:           tape.kept %[[MOST]], %{{.*}}, %{{.*}}, %[[MINE]]
// CHECK-NOT:       tape.push
costate.kernel @five(%x: !costate.array<f64, 1>, %m: i64) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  costate.range (%i) in (%n) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %w = scf.for %t = %zero to %m step %one iter_args(%s = %v) -> f64 : i64 {
      %u = costate.cos %s : f64
      tape.push record(0) %s : f64
      scf.yield %u : f64
    } {costate.checkpoints = 5 : i64, tape.pair = 0 : i64}
    tape.pivot
    scf.for %t = %zero to %m step %one : i64 {
      %s = tape.pop record(0) : f64
      costate.atomic_add %s, %x[%i] : !costate.array<f64, 1>
    } {tape.pair = 0 : i64}
  }
}
