// RUN: costate-opt %s --find-nan | FileCheck %s

// Results and what loads find are checked, with the operands that explain them;
// what stays finite is not. After an update its element is read again.
// CHECK-LABEL: costate.kernel @checked
// CHECK:         %[[V:.*]] = costate.load
// CHECK-NEXT:    costate.check_element "@ holds %#;{{.*}}" %[[V]], %arg0[%[[I:.*]]] : f64, !costate.array<f64, 1>
// CHECK-NEXT:    %[[L:.*]] = costate.log %[[V]]
// CHECK-NEXT:    costate.check_finite "log(%) gives %#;{{.*}}" %[[L]] from %[[V]] : (f64) -> f64
// CHECK-NEXT:    costate.sin
// CHECK-NEXT:    %[[F:.*]] = math.fma %[[S:.*]], %[[V]], %[[L]]
// CHECK-NEXT:    costate.check_finite "% * % + % gives %#;{{.*}}" %[[F]] from %[[S]], %[[V]], %[[L]]
// CHECK-NEXT:    costate.atomic_add %[[F]], %arg1[]
// CHECK-NEXT:    costate.check_element added "adding % to @ gives %#;{{.*}}" %[[F]], %arg1[] : f64, !costate.array<f64, 0>
// CHECK:         costate.check_finite "the sum over all work items{{.*}}" %{{.*}} : () -> f64
costate.kernel @checked(%x: !costate.array<f64, 1>, %s: !costate.array<f64, 0>) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  %sum = costate.range (%i) in (%n) -> f64 {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %l = costate.log %v : f64
    %t = costate.sin %l : f64
    %f = math.fma %t, %v, %l : f64
    costate.atomic_add %f, %s[] : !costate.array<f64, 0>
    costate.yield %t : f64
  }
  costate.store %sum, %s[] : !costate.array<f64, 0>
}

// A result that reaches the side of a select only counts if the select takes
// it; the check waits for the select. One that is also stored always counts.
// CHECK-LABEL: costate.kernel @selected
// CHECK:         %[[L:.*]] = costate.log
// CHECK-NEXT:    %[[P:.*]] = arith.mulf %[[L]]
// CHECK-NEXT:    arith.select %arg1, %[[P]]
// CHECK-DAG:     costate.check_finite "log(%){{.*}}" %[[L]] if %arg1
// CHECK-DAG:     costate.check_finite "% * %{{.*}}" %[[P]] if %arg1
// CHECK:         %[[R:.*]] = math.sqrt
// CHECK-NEXT:    costate.check_finite "sqrt(%){{.*}}" %[[R]] from
// CHECK-NEXT:    arith.select %arg1, %{{.*}}, %[[R]]
costate.kernel @selected(%x: f64, %c: i1, %s: !costate.array<f64, 0>) {
  %l = costate.log %x : f64
  %p = arith.mulf %l, %x : f64
  %y = arith.select %c, %p, %x : f64
  costate.store %y, %s[] : !costate.array<f64, 0>
  %r = math.sqrt %x : f64
  %z = arith.select %c, %x, %r : f64
  costate.store %r, %s[] : !costate.array<f64, 0>
  costate.store %z, %s[] : !costate.array<f64, 0>
}

// A factor of a strong product counts unless the adjoint is 0. The adjoint
// always counts.
// CHECK-LABEL: costate.kernel @strong
// CHECK:         %[[R:.*]] = arith.divf
// CHECK-NEXT:    %[[D:.*]] = costate.strong_mul %arg1, %[[R]]
// CHECK-DAG:     %[[COUNTS:.*]] = arith.cmpf une, %arg1
// CHECK-DAG:     costate.check_finite "% / %{{.*}}" %[[R]] if %[[COUNTS]] from
// CHECK-DAG:     costate.check_finite "% * %{{.*}}" %[[D]] from %arg1, %[[R]]
costate.kernel @strong(%x: f64, %g: f64, %s: !costate.array<f64, 0>) {
  %half = arith.constant 0.5 : f64
  %r = arith.divf %half, %x : f64
  %d = costate.strong_mul %g, %r : f64
  costate.store %d, %s[] : !costate.array<f64, 0>
}

// A result that one loop or branch uses is checked there.
// CHECK-LABEL: costate.kernel @hoisted
// CHECK:         %[[R:.*]] = arith.divf
// CHECK-NOT:     costate.check_finite
// CHECK:         scf.for
// CHECK-NEXT:      costate.check_finite "% / %{{.*}}" %[[R]]
costate.kernel @hoisted(%x: f64, %n: i64, %s: !costate.array<f64, 0>) {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %r = arith.divf %x, %x : f64
  scf.for %k = %c0 to %n step %c1 : i64 {
    costate.store %r, %s[] : !costate.array<f64, 0>
  }
}

// The text says in which sweep of a gradient an operation stands. A value that
// is saved for a factor only is checked after the pop.
// CHECK-LABEL: costate.kernel @sweeps
// CHECK:         %[[L:.*]] = costate.log
// CHECK-NEXT:    costate.check_finite "in the forward sweep of the gradient, log(%){{.*}}" %[[L]]
// CHECK:         %[[F:.*]] = costate.exp
// CHECK-NOT:     %[[F]] from
// CHECK:         tape.pivot
// CHECK:         %[[OUT:.*]]:2 = tape.pop record(0)
// CHECK:         costate.strong_mul %[[OUT]]#0, %[[OUT]]#1
// CHECK:         %[[COUNTS:.*]] = arith.cmpf une, %[[OUT]]#0
// CHECK:         costate.check_finite "in the reverse sweep of the gradient, a value that the forward sweep saved is %#;{{.*}}" %[[OUT]]#1 if %[[COUNTS]] : () -> f64
costate.kernel @sweeps(%x: f64, %s: !costate.array<f64, 0>) {
  %l = costate.log %x : f64
  %f = costate.exp %x : f64
  tape.push record(0) %l, %f : f64, f64
  tape.pivot
  %p:2 = tape.pop record(0) : f64, f64
  %d = costate.strong_mul %p#0, %p#1 : f64
  costate.store %d, %s[] : !costate.array<f64, 0>
}

// What an element held counts like a load, and an addition that tells it like
// one that does not.
// CHECK-LABEL: costate.kernel @fetched
// CHECK:         %[[OLD:.*]] = costate.atomic_fetch "add" %arg1, %arg0[]
// CHECK-DAG:     costate.check_element added "adding % to @ gives %#;{{.*}}" %arg1, %arg0[] : f64
// CHECK-DAG:     costate.check_element "@ held %#;{{.*}}" %[[OLD]], %arg0[] : f64
// CHECK:         %[[SEEN:.*]] = costate.compare_exchange
// CHECK-NEXT:    costate.check_element "@ held %#;{{.*}}" %[[SEEN]], %arg0[] : f64
costate.kernel @fetched(%s: !costate.array<f64, 0>, %x: f64, %y: !costate.array<f64, 0>) {
  %old = costate.atomic_fetch "add" %x, %s[] : !costate.array<f64, 0>
  costate.store %old, %y[] : !costate.array<f64, 0>
  %seen = costate.compare_exchange %x if %old, %s[] : !costate.array<f64, 0>
  costate.store %seen, %y[] : !costate.array<f64, 0>
}
