// RUN: costate-opt %s --differentiate-reverse=active=0,1 | FileCheck %s
// RUN: costate-opt %s --differentiate-forward=active=0,1 | FileCheck %s --check-prefix=JVP

// What the reverse sweep does not need is not fetched again.
// CHECK-LABEL: costate.kernel @counted.grad
// CHECK-NOT:     costate.atomic_fetch
// CHECK-NOT:     costate.compare_exchange
// CHECK:         costate.atomic_add exclusive %{{.*}}, %arg4[
// JVP-LABEL:   costate.kernel @counted.jvp
// JVP:           costate.atomic_fetch "add"
// JVP:           costate.compare_exchange
costate.kernel @counted(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>, %c: !costate.array<i64, 1>, %one: i64) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  %zero = arith.constant 0 : i64
  costate.range (%i) in (%n) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %w = arith.mulf %v, %v : f64
    costate.store %w, %y[%i] : !costate.array<f64, 1>
    %a = costate.atomic_fetch "add" %one, %c[%zero] : !costate.array<i64, 1>
    %b = costate.compare_exchange %a if %one, %c[%one] : !costate.array<i64, 1>
  }
}

// A count of serial code is found again: in a version of its array.
// CHECK-LABEL: costate.kernel @serial.grad
// CHECK-SAME:    costate.scratch_of
// CHECK:         costate.load
// CHECK:         costate.atomic_add
// CHECK:         costate.load
// CHECK:         costate.range
costate.kernel @serial(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>, %c: !costate.array<i64, 0>, %one: i64) {
  %a = costate.atomic_fetch "add" %one, %c[] : !costate.array<i64, 0>
  %b = costate.atomic_fetch "add" %one, %c[] : !costate.array<i64, 0>
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%n) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %j = arith.addi %i, %b : i64
    costate.store %v, %y[%j] : !costate.array<f64, 1>
  }
}
