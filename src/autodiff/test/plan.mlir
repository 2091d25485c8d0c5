// RUN: costate-opt %s --differentiate-reverse='plan=1' | FileCheck %s
// RUN: costate-opt %s --differentiate-reverse='plan=1' | costate-opt | FileCheck %s
// RUN: costate-opt %s --differentiate-reverse='plan=1 save-all=1' | FileCheck %s --check-prefix=ALL
// RUN: costate-opt %s --differentiate-reverse | FileCheck %s --check-prefix=DONE

// A plan has been carried out where a gradient is there.
// DONE-NOT: tape.plan

// How many iterations an inner loop makes follows from the iteration of the outer one,
// which the reverse sweep counts as well; loads are made again, at indices that both
// loops count.
// CHECK-LABEL: costate.kernel @nest.grad
// CHECK:         scf.for %[[K:.*]] = {{.*}} iter_args(%[[A:.*]] =
// CHECK:           %[[T:.*]] = arith.andi %[[K]]
// CHECK:           scf.for %[[J:.*]] = {{.*}} iter_args(%[[B:.*]] =
// CHECK:             %[[AT:.*]] = arith.addi %[[J]], %[[K]]
// CHECK:             %[[W:.*]] = costate.load %{{.*}}[%[[AT]]]
// CHECK:             %[[P:.*]] = arith.mulf %[[B]], %[[W]]
// CHECK:             %[[E:.*]] = costate.exp %[[P]]
// CHECK:             tape.push record(0) %[[B]], %[[E]] : f64, f64
// CHECK-NEXT:        tape.plan saved(%[[B]], %[[E]] : f64, f64) recomputed(%[[AT]] : i64) loaded(%[[W]] : f64) inverted(%[[J]] : i64)
// CHECK:           tape.push record(1) %[[A]] : f64
// CHECK-NEXT:      tape.plan saved(%[[A]] : f64) recomputed(%[[T]] : i64) inverted(%[[K]] : i64)
// ALL-LABEL: costate.kernel @nest.grad
// ALL:             tape.push record(0) %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : f64, i64, f64, f64
// ALL:           tape.push record(1) %{{.*}}, %{{.*}} : f64, i64
costate.kernel @nest(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>, %m: i64) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %c3 = arith.constant 3 : i64
  costate.range (%i) in (%n) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %r = scf.for %k = %c0 to %m step %c1 iter_args(%a = %v) -> (f64) : i64 {
      %s = costate.sin %a : f64
      %t = arith.andi %k, %c3 : i64
      %q = scf.for %j = %c0 to %t step %c1 iter_args(%b = %s) -> (f64) : i64 {
        %jj = arith.addi %j, %k : i64
        %w = costate.load %x[%jj] : !costate.array<f64, 1>
        %p = arith.mulf %b, %w : f64
        %e = costate.exp %p : f64
        scf.yield %e : f64
      }
      scf.yield %q : f64
    }
    costate.store %r, %y[%i] : !costate.array<f64, 1>
  }
}

// Of values that are computed from one expression, that one is saved.
// CHECK-LABEL: costate.kernel @shared.grad
// CHECK:         %[[E:.*]] = costate.exp
// CHECK:         tape.push record(0) %{{.*}}, %[[E]] : f64, f64
// CHECK-NEXT:    tape.plan saved(%{{.*}}, %[[E]] : f64, f64) recomputed(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : f64, f64, f64, f64)
costate.kernel @shared(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>, %m: i64) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %two = arith.constant 2.0 : f64
  %three = arith.constant 3.0 : f64
  costate.range (%i) in (%n) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %r = scf.for %k = %c0 to %m step %c1 iter_args(%a = %v) -> (f64) : i64 {
      %e = costate.exp %a : f64
      %p = arith.addf %e, %two : f64
      %q = arith.addf %e, %three : f64
      %s = arith.mulf %p, %a : f64
      %t = arith.mulf %q, %a : f64
      %u = arith.mulf %s, %t : f64
      scf.yield %u : f64
    }
    costate.store %r, %y[%i] : !costate.array<f64, 1>
  }
}

// What costs a function once in each iteration of the outer loop is not saved in each
// iteration of the inner one: the reverse of the outer loop has it.
// CHECK-LABEL: costate.kernel @outer.grad
// CHECK:           %[[S:.*]] = costate.sin
// CHECK:             %[[P:.*]] = arith.mulf %{{.*}}, %[[S]]
// CHECK:             tape.plan {{.*}}recomputed({{.*}}%[[P]]
// CHECK:           tape.plan saved({{.*}}%[[S]] : f64
costate.kernel @outer(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>, %m: i64) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  costate.range (%i) in (%n) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %r = scf.for %k = %c0 to %m step %c1 iter_args(%a = %v) -> (f64) : i64 {
      %s = costate.sin %a : f64
      %q = scf.for %j = %c0 to %m step %c1 iter_args(%b = %a) -> (f64) : i64 {
        %w = costate.load %x[%j] : !costate.array<f64, 1>
        %p = arith.mulf %w, %s : f64
        %e = arith.mulf %p, %b : f64
        scf.yield %e : f64
      }
      scf.yield %q : f64
    }
    costate.store %r, %y[%i] : !costate.array<f64, 1>
  }
}

// Both sides of a branch need the sum: it is saved once, in front of them, instead of
// what each of them makes of it.
// CHECK-LABEL: costate.kernel @sides.grad
// CHECK:           %[[S:.*]] = arith.addf
// CHECK:           scf.if
// CHECK-NOT:         tape.push
// CHECK:           else
// CHECK-NOT:         tape.push
// CHECK:           tape.push record({{[0-9]+}}) {{.*}}%[[S]]
costate.kernel @sides(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>, %m: i64) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %one = arith.constant 1.0 : f64
  costate.range (%i) in (%n) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %r = scf.for %k = %c0 to %m step %c1 iter_args(%a = %v) -> (f64) : i64 {
      %e = costate.exp %a : f64
      %s = arith.addf %e, %a : f64
      %c = arith.cmpi eq, %k, %c1 : i64
      %b = scf.if %c -> (f64) {
        %q = math.sqrt %s : f64
        scf.yield %q : f64
      } else {
        %q = arith.divf %one, %s : f64
        scf.yield %q : f64
      }
      scf.yield %b : f64
    }
    costate.store %r, %y[%i] : !costate.array<f64, 1>
  }
}
