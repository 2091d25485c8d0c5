// RUN: costate-opt %s --erase-overwritten | FileCheck %s

// CHECK-LABEL: @straight(
// CHECK-COUNT-1: costate.store
// CHECK-NOT:   costate.store
costate.kernel @straight(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%n) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %e = costate.exp %v : f64
    costate.store %e, %y[%i] : !costate.array<f64, 1>
    %s = costate.sin %v : f64
    costate.store %s, %y[%i] : !costate.array<f64, 1>
  }
}

// Both branches overwrite the element, one of them in a branch of its own that
// stores something else, too; in front of it stands a loop over nothing but
// another store.
// CHECK-LABEL: @branches(
// CHECK-NOT:   costate.store %arg2
// CHECK:       costate.store %arg3
costate.kernel @branches(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>, %a: f64, %b: f64, %c: i1) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  costate.range (%i) in (%n) {
    costate.store %a, %y[%i] : !costate.array<f64, 1>
    scf.for %k = %c0 to %n step %c1 : i64 {
      costate.store %a, %y[%i] : !costate.array<f64, 1>
    }
    scf.if %c {
      costate.store %b, %y[%i] : !costate.array<f64, 1>
    } else {
      scf.if %c {
        costate.store %b, %x[%i] : !costate.array<f64, 1>
      }
      costate.store %b, %y[%i] : !costate.array<f64, 1>
    }
  }
}

// One branch, another element, or a use in between: a load, an update, in a
// branch, in a loop.
// CHECK-LABEL: @seen(
// CHECK-COUNT-6: costate.store %arg2
costate.kernel @seen(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>, %a: f64, %b: f64, %c: i1, %at: !costate.array<i64, 1>) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  costate.range (%i) in (%n) {
    %j = costate.load %at[%i] : !costate.array<i64, 1>
    costate.store %a, %y[%i] : !costate.array<f64, 1>
    scf.if %c {
      costate.store %b, %y[%i] : !costate.array<f64, 1>
    }
    %v = costate.load %y[%j] : !costate.array<f64, 1>
    costate.store %a, %y[%i] : !costate.array<f64, 1>
    costate.atomic_add %b, %y[%i] : !costate.array<f64, 1>
    costate.store %a, %y[%i] : !costate.array<f64, 1>
    scf.if %c {
      %w = costate.load %y[%i] : !costate.array<f64, 1>
      costate.store %w, %x[%i] : !costate.array<f64, 1>
    } else {
      costate.store %b, %y[%i] : !costate.array<f64, 1>
    }
    costate.store %a, %y[%j] : !costate.array<f64, 1>
    costate.store %a, %y[%i] : !costate.array<f64, 1>
    scf.for %k = %c0 to %n step %c1 : i64 {
      %w = costate.load %y[%k] : !costate.array<f64, 1>
      costate.store %w, %x[%k] : !costate.array<f64, 1>
    }
    costate.store %a, %y[%i] : !costate.array<f64, 1>
  }
}

// In a loop, the next iteration may use it, if any does; what comes after the
// loop overwrites the rest.
// CHECK-LABEL: @loops(
// CHECK:       scf.for
// CHECK:         costate.store %arg2
// CHECK:       scf.for
// CHECK-NOT:     costate.store %arg2
// CHECK:       costate.store %arg3
costate.kernel @loops(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>, %a: f64, %b: f64) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  costate.range (%i) in (%n) {
    %j = arith.addi %i, %c1 : i64
    scf.for %k = %c0 to %n step %c1 : i64 {
      %v = costate.load %x[%j] : !costate.array<f64, 1>
      costate.store %a, %x[%i] : !costate.array<f64, 1>
    }
    scf.for %k = %c0 to %n step %c1 : i64 {
      costate.store %a, %y[%i] : !costate.array<f64, 1>
    }
    costate.store %b, %y[%i] : !costate.array<f64, 1>
    costate.store %b, %x[%i] : !costate.array<f64, 1>
  }
}

// A function that is called in a branch or loop may use it as well.
// CHECK-LABEL: @called(
// CHECK:         costate.store %{{.*}}, %arg0
// CHECK:         scf.if
// CHECK:           costate.store %{{.*}}, %arg0
// CHECK:         scf.for
// CHECK:           costate.store %{{.*}}, %arg0
// CHECK:         costate.store %{{.*}}, %arg0
func.func @first(%x: !costate.array<f64, 1>, %i: i64) -> f64 {
  %v = costate.load %x[%i] : !costate.array<f64, 1>
  return %v : f64
}
costate.kernel @called(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>, %a: f64, %c: i1, %n: i64) {
  %m = costate.extent %x[0] : !costate.array<f64, 1>
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  costate.range (%i) in (%m) {
    costate.store %a, %x[%i] : !costate.array<f64, 1>
    scf.if %c {
      %r = func.call @first(%x, %i) : (!costate.array<f64, 1>, i64) -> f64
      costate.store %r, %x[%i] : !costate.array<f64, 1>
    }
    scf.for %k = %zero to %n step %one : i64 {
      %r = func.call @first(%x, %i) : (!costate.array<f64, 1>, i64) -> f64
      costate.store %r, %x[%i] : !costate.array<f64, 1>
    }
    costate.store %a, %x[%i] : !costate.array<f64, 1>
  }
}
