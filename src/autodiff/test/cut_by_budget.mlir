// RUN: costate-opt %s --differentiate-reverse=by-budget --canonicalize --cse | FileCheck %s

// What an iteration saves (16 bytes) and what a segment begins with (8) are
// known when the gradient is there. Where all fits there are no segments.
// CHECK-LABEL: costate.kernel @iterate.grad
// CHECK-DAG:     %[[NONE:.*]] = arith.constant 0.000000e+00 : f64
// CHECK-DAG:     %[[STATE:.*]] = arith.constant 8.000000e+00 : f64
// CHECK-DAG:     %[[RECORD:.*]] = arith.constant 1.600000e+01 : f64
// CHECK:         costate.range
// CHECK:           %[[BUDGET:.*]] = tape.budget
// CHECK:           %[[BYTES:.*]] = arith.sitofp %[[BUDGET]]
// CHECK:           %[[NEED:.*]] = arith.mulf %{{.*}}, %[[RECORD]]
// CHECK-NEXT:      %[[EXCESS:.*]] = arith.subf %[[NEED]], %[[BYTES]]
// CHECK-NEXT:      arith.subf %[[BYTES]], %[[STATE]]
// CHECK:           %[[FITS:.*]] = arith.cmpf ogt, %[[EXCESS]], %[[NONE]]
// CHECK-NEXT:      %[[KEPT:.*]] = arith.select %[[FITS]], %{{.*}}, %{{.*}}
// CHECK:           %[[REST:.*]] = costate.to_int %[[KEPT]]

// The forward sweep has segments in segments in segments, but only the
// outermost ones begin with a record.
// CHECK:           scf.for %{{.*}} to %[[SEGMENTS:.*]] step
// CHECK:             scf.for %{{.*}} to %[[SECOND:.*]] step
// CHECK-NOT:           tape.push
// CHECK:               scf.for %{{.*}} to %[[THIRD:.*]] step
// CHECK-NOT:             tape.push
// CHECK:               } {costate.rerun, costate.segment}
// CHECK-NOT:           tape.push
// CHECK:             } {costate.rerun, costate.segment}
// CHECK:             tape.push
// CHECK:           } {costate.rerun, tape.pair = [[FIRST:[0-9]+]] : i64}
// CHECK:           scf.for %{{.*}} to %[[REST]] step
// CHECK:           } {costate.rest, tape.pair = {{[0-9]+}} : i64}

// The reverse sweep takes the states of a segment one level after the other;
// what the last one of the smaller segments leaves is not computed.
// CHECK:         tape.pivot
// CHECK:           } {costate.rest, tape.pair = {{[0-9]+}} : i64}
// CHECK:           scf.for %{{.*}} to %[[SEGMENTS]] step
// CHECK:             tape.pop
// CHECK:             scf.for %[[K:.*]] = %{{.*}} to %[[SECOND]] step
// CHECK:               %[[MORE:.*]] = arith.cmpi ne, %[[K]], %{{.*}} : i64
// CHECK-NEXT:          %[[SOME:.*]] = arith.select %[[MORE]], %[[THIRD]], %{{.*}} : i64
// CHECK-NEXT:          scf.for %{{.*}} to %[[SOME]] step
// CHECK:               tape.push
// CHECK:             } {costate.rerun, costate.segment, tape.pair = [[PAIR:[0-9]+]] : i64}
// CHECK:             scf.for %{{.*}} to %[[SECOND]] step
// CHECK:               tape.pop
// CHECK:             } {costate.rerun, costate.segment, tape.pair = [[PAIR]] : i64}
// CHECK:           } {costate.rerun, tape.pair = [[FIRST]] : i64}
costate.kernel @iterate(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>, %n: i64) {
  %e = costate.extent %x[0] : !costate.array<f64, 1>
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  costate.range (%i) in (%e) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %r = scf.for %k = %zero to %n step %one iter_args(%a = %v) -> (f64) : i64 {
      %q = costate.sin %a : f64
      %p = arith.mulf %a, %q : f64
      scf.yield %p : f64
    }
    costate.store %r, %y[%i] : !costate.array<f64, 1>
  }
}

// A short loop is not cut, nor one that overwrites what it reads.
// CHECK-LABEL: costate.kernel @short.grad
// CHECK-NOT:     tape.budget
// CHECK:         costate.return
costate.kernel @short(%x: !costate.array<f64, 1>, %n: i64) {
  %e = costate.extent %x[0] : !costate.array<f64, 1>
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %few = arith.constant 8 : i64
  costate.range (%i) in (%e) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %r = scf.for %k = %zero to %few step %one iter_args(%a = %v) -> (f64) : i64 {
      %q = costate.sin %a : f64
      scf.yield %q : f64
    }
    costate.store %r, %x[%i] : !costate.array<f64, 1>
    scf.for %k = %zero to %n step %one : i64 {
      %u = costate.load %x[%i] : !costate.array<f64, 1>
      %w = costate.sin %u : f64
      costate.store %w, %x[%i] : !costate.array<f64, 1>
    }
  }
}
