// RUN: costate-opt %s --sum-in-loops | FileCheck %s

// The adjoint of an element that all iterations read is carried by the loop, and by
// those around it.
// CHECK-LABEL: costate.kernel @nest
// CHECK:         %[[S:.*]] = scf.for {{.*}} iter_args(%[[A:.*]] = %{{.*}}) -> (f64)
// CHECK:           %[[T:.*]] = scf.for {{.*}} iter_args(%[[B:.*]] = %{{.*}}) -> (f64)
// CHECK-NOT:         costate.atomic_add
// CHECK:             %[[IF:.*]] = scf.if
// CHECK:               scf.yield %{{.*}} : f64
// CHECK:             } else {
// CHECK:               scf.yield %{{.*}} : f64
// CHECK:             %[[C:.*]] = arith.addf %[[B]], %[[IF]]
// CHECK:             scf.yield %[[C]]
// CHECK:           arith.cmpf une, %[[T]]
// CHECK:           %[[U:.*]] = scf.if
// CHECK:             scf.yield %[[T]]
// CHECK:           arith.addf %[[A]], %[[U]]
// CHECK:         %[[ANY:.*]] = arith.cmpf une, %[[S]]
// CHECK:         scf.if %[[ANY]] {
// CHECK:           costate.atomic_add exclusive %[[S]], %arg1[
costate.kernel @nest(%x: !costate.array<f64, 1>, %g: !costate.array<f64, 1> {costate.adjoint_of = 0 : i64}, %n: i64) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %limit = arith.constant 0.0 : f64
  %e = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%e) {
    scf.for %k = %zero to %n step %one : i64 {
      scf.for %l = %zero to %n step %one : i64 {
        %v = costate.load %x[%l] : !costate.array<f64, 1>
        %c = arith.cmpf ogt, %v, %limit : f64
        scf.if %c {
          costate.atomic_add exclusive %v, %g[%i] : !costate.array<f64, 1>
        }
      }
    }
  }
}

// An iteration reads what others have added; another element in each iteration; the primal.
// CHECK-LABEL: costate.kernel @stays
// CHECK-NOT:     iter_args
// CHECK:         costate.return
costate.kernel @stays(%x: !costate.array<f64, 1>, %g: !costate.array<f64, 1> {costate.adjoint_of = 0 : i64}, %h: !costate.array<f64, 1> {costate.adjoint_of = 0 : i64}, %n: i64) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %e = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%e) {
    scf.for %k = %zero to %n step %one : i64 {
      %v = costate.load %g[%i] : !costate.array<f64, 1>
      costate.atomic_add exclusive %v, %g[%i] : !costate.array<f64, 1>
      costate.atomic_add %v, %h[%k] : !costate.array<f64, 1>
      costate.atomic_add exclusive %v, %x[%i] : !costate.array<f64, 1>
    }
  }
}

// The parts of a loop that has been cut add up one sum, in their order.
// CHECK-LABEL: costate.kernel @parts
// CHECK:         %[[REST:.*]] = scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}) -> (f64)
// CHECK-NOT:     costate.atomic_add
// CHECK:         %[[ALL:.*]] = scf.for {{.*}} iter_args(%[[A:.*]] = %[[REST]]) -> (f64)
// CHECK-NEXT:      %[[SEGMENT:.*]] = scf.for {{.*}} iter_args(%[[B:.*]] = %[[A]]) -> (f64)
// CHECK:             arith.addf %[[B]]
// CHECK:           } {costate.segment}
// CHECK:           scf.yield %[[SEGMENT]]
// CHECK:         } {costate.rerun}
// CHECK:         costate.atomic_add exclusive %[[ALL]]
costate.kernel @parts(%x: !costate.array<f64, 1>, %g: !costate.array<f64, 1> {costate.adjoint_of = 0 : i64}, %n: i64) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %e = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%e) {
    scf.for %k = %zero to %n step %one : i64 {
      %v = costate.load %x[%k] : !costate.array<f64, 1>
      costate.atomic_add exclusive %v, %g[%i] : !costate.array<f64, 1>
    } {costate.rest}
    scf.for %s = %zero to %n step %one : i64 {
      scf.for %k = %zero to %n step %one : i64 {
        %v = costate.load %x[%k] : !costate.array<f64, 1>
        costate.atomic_add exclusive %v, %g[%i] : !costate.array<f64, 1>
      } {costate.segment}
    } {costate.rerun}
  }
}

// So do those of two elements.
// CHECK-LABEL: costate.kernel @two_in_parts
// CHECK:         %[[RESTS:.*]]:2 = scf.for {{.*}} -> (f64, f64)
// CHECK-NOT:     costate.atomic_add
// CHECK:         scf.for {{.*}} iter_args(%{{.*}} = %[[RESTS]]#0, %{{.*}} = %[[RESTS]]#1) -> (f64, f64)
costate.kernel @two_in_parts(%x: !costate.array<f64, 1>, %g: !costate.array<f64, 1> {costate.adjoint_of = 0 : i64}, %h: !costate.array<f64, 1> {costate.adjoint_of = 0 : i64}, %n: i64) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %e = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%e) {
    scf.for %k = %zero to %n step %one : i64 {
      %v = costate.load %x[%k] : !costate.array<f64, 1>
      costate.atomic_add exclusive %v, %g[%i] : !costate.array<f64, 1>
      costate.atomic_add exclusive %v, %h[%i] : !costate.array<f64, 1>
    } {costate.rest}
    scf.for %s = %zero to %n step %one : i64 {
      scf.for %k = %zero to %n step %one : i64 {
        %v = costate.load %x[%k] : !costate.array<f64, 1>
        costate.atomic_add exclusive %v, %g[%i] : !costate.array<f64, 1>
        costate.atomic_add exclusive %v, %h[%i] : !costate.array<f64, 1>
      } {costate.segment}
    } {costate.rerun}
  }
}
