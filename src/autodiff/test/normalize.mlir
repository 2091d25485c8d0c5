// RUN: costate-opt %s --pass-pipeline='builtin.module(costate.kernel(normalize-loops))' | FileCheck %s

// RULE: loops
// A loop that counts down by a step that is known at run time only.
// CHECK-LABEL: costate.kernel @down
// CHECK:         %[[N:.*]] = costate.trip_count %[[LO:.*]] to %{{.*}} by %[[STEP:.*]]
// CHECK:         scf.for %[[T:.*]] = %{{.*}} to %[[N]] step %{{.*}} : i64
// CHECK-NEXT:      %[[CHANGE:.*]] = arith.muli %[[T]], %[[STEP]]
// CHECK-NEXT:      %[[K:.*]] = arith.addi %[[LO]], %[[CHANGE]]
// CHECK-NEXT:      costate.load %{{.*}}[%[[K]]]
costate.kernel @down(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 0>, %lo: i64, %hi: i64, %step: i64) {
  scf.for %k = %lo to %hi step %step : i64 {
    %v = costate.load %x[%k] : !costate.array<f64, 1>
    costate.atomic_add %v, %y[] : !costate.array<f64, 0>
  }
}

// An unsigned comparison: from 4294967294 to 3 there is no iteration.
// CHECK-LABEL: costate.kernel @no_sign
// CHECK:         %[[LO:.*]] = arith.extui
// CHECK:         %[[HI:.*]] = arith.extui
// CHECK:         %[[COUNT:.*]] = costate.trip_count %[[LO]] to %[[HI]]
// CHECK:         %[[SOME:.*]] = arith.cmpi ult, %[[LO]], %[[HI]]
// CHECK:         %[[N:.*]] = arith.select %[[SOME]], %[[COUNT]]
// CHECK:         scf.for %{{.*}} = %{{.*}} to %[[N]]
costate.kernel @no_sign(%y: !costate.array<f64, 0>, %lo: i32, %hi: i32) {
  %one = arith.constant 1 : i32
  %v = arith.constant 1.0 : f64
  scf.for unsigned %k = %lo to %hi step %one : i32 {
    costate.atomic_add %v, %y[] : !costate.array<f64, 0>
  }
}

// What is normal already stays.
// CHECK-LABEL: costate.kernel @normal
// CHECK-NOT:     costate.trip_count
// CHECK:         scf.for %{{.*}} = %{{.*}} to %{{.*}} step
costate.kernel @normal(%y: !costate.array<f64, 0>, %n: i64) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %v = arith.constant 1.0 : f64
  scf.for %k = %zero to %n step %one : i64 {
    costate.atomic_add %v, %y[] : !costate.array<f64, 0>
  }
}
