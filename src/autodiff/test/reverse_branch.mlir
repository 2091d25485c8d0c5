// RUN: costate-opt %s --differentiate-reverse --canonicalize --cse | FileCheck %s

// Outside of loops the reverse of a branch gets what it needs as results of the
// forward branch; the two sides share them. There is no tape.
// CHECK-LABEL: costate.kernel @direct.grad
// CHECK-NOT:     tape.push
// CHECK:         %[[KEPT:.*]] = scf.if %[[C:.*]] -> (f64) {
// CHECK-NEXT:      %[[E:.*]] = costate.exp
// CHECK-NEXT:      scf.yield %[[E]]
// CHECK-NEXT:    } else {
// CHECK-NEXT:      %[[S:.*]] = math.sqrt
// CHECK:           %[[T:.*]] = costate.exp %[[S]]
// CHECK-NEXT:      scf.yield %[[T]]
// CHECK:         tape.pivot
// CHECK:         scf.if %[[C]]
costate.kernel @direct(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>) {
  %e = costate.extent %x[0] : !costate.array<f64, 1>
  %f0 = arith.constant 0.0 : f64
  costate.range (%i) in (%e) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %c = arith.cmpf ogt, %v, %f0 : f64
    scf.if %c {
      %w = costate.exp %v : f64
      costate.store %w, %y[%i] : !costate.array<f64, 1>
    } else {
      %s = math.sqrt %v : f64
      %t = costate.exp %s : f64
      costate.store %t, %y[%i] : !costate.array<f64, 1>
    }
  }
}

// What the inner branch yields is needed after it, and it gets another result.
// CHECK-LABEL: costate.kernel @nested.grad
// CHECK-NOT:     tape.push
// CHECK:         %[[KEPT:[0-9]+]]:{{[0-9]+}} = scf.if
// CHECK:           %[[INNER:[0-9]+]]:{{[0-9]+}} = scf.if
// CHECK:           scf.yield %{{.*}}, %[[INNER]]#0
// CHECK:         tape.pivot
// CHECK:         costate.cos %[[KEPT]]#
costate.kernel @nested(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>) {
  %e = costate.extent %x[0] : !costate.array<f64, 1>
  %f0 = arith.constant 0.0 : f64
  %f1 = arith.constant 1.0 : f64
  costate.range (%i) in (%e) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %c = arith.cmpf ogt, %v, %f0 : f64
    scf.if %c {
      %d = arith.cmpf ogt, %v, %f1 : f64
      %r = scf.if %d -> (f64) {
        %w = costate.exp %v : f64
        %t = costate.exp %w : f64
        scf.yield %t : f64
      } else {
        scf.yield %v : f64
      }
      %s = costate.sin %r : f64
      costate.store %s, %y[%i] : !costate.array<f64, 1>
    }
  }
}

// RULE: records
// In a loop each execution of a side that saves something has a record.
// CHECK-LABEL: costate.kernel @in_a_loop.grad
// CHECK:         scf.for
// CHECK:           scf.if
// CHECK:             tape.push record({{[0-9]+}}) %{{.*}} : f64{{$}}
// CHECK:           tape.push record({{[0-9]+}}) %{{.*}} : f64, i1
// CHECK:         tape.pivot
// CHECK:         scf.for
// CHECK-NEXT:      tape.pop record({{[0-9]+}}) : f64, i1
// CHECK:           scf.if
// CHECK:             tape.pop record({{[0-9]+}}) : f64
costate.kernel @in_a_loop(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>) {
  %e = costate.extent %x[0] : !costate.array<f64, 1>
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %f0 = arith.constant 0.0 : f64
  costate.range (%i) in (%e) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %r = scf.for %k = %zero to %e step %one iter_args(%a = %v) -> (f64) : i64 {
      %c = arith.cmpf ogt, %a, %f0 : f64
      %b = scf.if %c -> (f64) {
        %w = costate.exp %a : f64
        scf.yield %w : f64
      } else {
        scf.yield %a : f64
      }
      %d = arith.mulf %b, %a : f64
      scf.yield %d : f64
    }
    costate.store %r, %y[%i] : !costate.array<f64, 1>
  }
}
