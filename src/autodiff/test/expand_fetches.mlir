// RUN: costate-opt %s --expand-fetches | FileCheck %s

// In serial code nobody interrupts; nor in a range whose work items have
// elements of their own.
// CHECK-LABEL: costate.kernel @alone
// CHECK-SAME:    %[[X:.*]]: !costate.array<f64, 1>, %[[C:.*]]: !costate.array<i64, 0>, %[[ONE:.*]]: i64, %[[V:.*]]: f64)
// CHECK:         %[[OLD:.*]] = costate.load %[[C]][] : !costate.array<i64, 0>
// CHECK-NEXT:    costate.atomic_add %[[ONE]], %[[C]][] : !costate.array<i64, 0>
// CHECK-NEXT:    costate.load %[[C]][]
// CHECK-NEXT:    costate.atomic_max %[[OLD]], %[[C]][]
// CHECK-NEXT:    %[[B:.*]] = costate.load %[[C]][]
// CHECK-NEXT:    %[[D:.*]] = arith.xori %[[B]], %[[ONE]] : i64
// CHECK-NEXT:    costate.store %[[D]], %[[C]][]
// CHECK:         costate.range (%[[I:.*]]) in
// CHECK-NEXT:      %[[E:.*]] = costate.load %[[X]][%[[I]]]
// CHECK-NEXT:      costate.store %[[V]], %[[X]][%[[I]]]
// CHECK-NEXT:      %[[F:.*]] = costate.load %[[X]][%[[I]]]
// CHECK-NEXT:      %[[F0:.*]] = costate.stop_gradient %[[F]] : f64
// CHECK-NEXT:      %[[G:.*]] = arith.bitcast %[[F0]] : f64 to i64
// CHECK-NEXT:      %[[E0:.*]] = costate.stop_gradient %[[E]] : f64
// CHECK-NEXT:      %[[H:.*]] = arith.bitcast %[[E0]] : f64 to i64
// CHECK-NEXT:      %[[J:.*]] = arith.cmpi eq, %[[G]], %[[H]] : i64
// CHECK-NEXT:      %[[K:.*]] = arith.select %[[J]], %[[V]], %[[F]] : f64
// CHECK-NEXT:      costate.store %[[K]], %[[X]][%[[I]]]
costate.kernel @alone(%x: !costate.array<f64, 1>, %c: !costate.array<i64, 0>, %one: i64, %v: f64) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  %a = costate.atomic_fetch "add" %one, %c[] : !costate.array<i64, 0>
  %b = costate.atomic_fetch "max" %a, %c[] : !costate.array<i64, 0>
  %d = costate.atomic_fetch "xor" %one, %c[] : !costate.array<i64, 0>
  costate.range (%i) in (%n) {
    %e = costate.atomic_fetch "exchange" %v, %x[%i] : !costate.array<f64, 1>
    %f = costate.compare_exchange %v if %e, %x[%i] : !costate.array<f64, 1>
  }
}

// Here they may.
// CHECK-LABEL: costate.kernel @shared
// CHECK-NOT:     costate.load
// CHECK:         costate.atomic_fetch "add"
// CHECK:         costate.compare_exchange
costate.kernel @shared(%x: !costate.array<f64, 1>, %c: !costate.array<i64, 0>, %one: i64, %v: f64) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%n) {
    %a = costate.atomic_fetch "add" %one, %c[] : !costate.array<i64, 0>
    %f = costate.compare_exchange %v if %v, %x[%a] : !costate.array<f64, 1>
  }
}

// Of floats the derivative of a minimum goes where the value comes from: NaN is
// no minimum, and -0 is less than 0. So are minima that the element takes
// which the work item uses otherwise.
// CHECK-LABEL: costate.kernel @extrema
// CHECK-SAME:    (%[[M:.*]]: !costate.array<f64, 1>, %[[P:.*]]: !costate.array<f64, 1>, %[[Q:.*]]: !costate.array<f64, 1>, %[[V:.*]]: f64)
// CHECK:         costate.range (%[[I:.*]]) in
// CHECK-NEXT:      %[[OLD:.*]] = costate.load %[[M]][%[[I]]]
// CHECK-NEXT:      %[[NUMBER:.*]] = arith.cmpf oeq, %[[V]], %[[V]]
// CHECK-NEXT:      %[[BEATS:.*]] = arith.cmpf ult, %[[V]], %[[OLD]]
// CHECK-NEXT:      %[[EQUAL:.*]] = arith.cmpf oeq, %[[V]], %[[OLD]]
// CHECK:           %[[SIGN:.*]] = arith.cmpi slt, %{{.*}}, %{{.*}} : i64
// CHECK-NEXT:      %[[TIE:.*]] = arith.andi %[[EQUAL]], %[[SIGN]]
// CHECK-NEXT:      %[[EITHER:.*]] = arith.ori %[[BEATS]], %[[TIE]]
// CHECK-NEXT:      %[[WINS:.*]] = arith.andi %[[NUMBER]], %[[EITHER]]
// CHECK-NEXT:      %[[NEXT:.*]] = arith.select %[[WINS]], %[[V]], %[[OLD]]
// CHECK-NEXT:      costate.store %[[NEXT]], %[[M]][%[[I]]]
// CHECK-NEXT:      costate.store %[[OLD]], %[[P]][%[[I]]]
// CHECK-NEXT:      %[[BEFORE:.*]] = costate.load %[[P]][%[[I]]]
// CHECK:           arith.cmpf ugt, %[[V]], %[[BEFORE]]
// CHECK:           costate.store %{{.*}}, %[[P]][%[[I]]]
// CHECK-NEXT:      costate.atomic_max %[[V]], %[[Q]][%[[I]]]
costate.kernel @extrema(%m: !costate.array<f64, 1>, %p: !costate.array<f64, 1>, %q: !costate.array<f64, 1>, %v: f64) {
  %n = costate.extent %m[0] : !costate.array<f64, 1>
  costate.range (%i) in (%n) {
    %old = costate.atomic_fetch "min" %v, %m[%i] : !costate.array<f64, 1>
    costate.store %old, %p[%i] : !costate.array<f64, 1>
    costate.atomic_max %v, %p[%i] : !costate.array<f64, 1>
    costate.atomic_max %v, %q[%i] : !costate.array<f64, 1>
  }
}
