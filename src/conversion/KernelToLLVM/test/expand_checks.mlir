// RUN: costate-opt %s --outline-ranges --expand-checks=index-checks | FileCheck %s
// RUN: costate-opt %s --outline-ranges --expand-checks | FileCheck %s --check-prefix=RELEASE

// CHECK: costate.texts = ["log(%) gives %#", "@ holds %#", "adding % to @ gives %#"], costate.watched_parameters = array<i64: 1>

// Errors name parameters, adjoint arrays among them.
// CHECK-LABEL: llvm.func @checked.entry(
// CHECK: %[[OUT:.*]] = arith.cmpi uge, %[[I:.*]], %[[N:.*]] : i64
// CHECK: scf.if %[[OUT]] {
// CHECK:   %[[PARAMETER:.*]] = arith.constant 3 : i64
// CHECK:   %[[DIM:.*]] = arith.constant 0 : i64
// CHECK:   llvm.call @costate_index_error(%arg1, %{{.*}}, %[[PARAMETER]], %[[DIM]], %[[I]], %[[N]])
// CHECK: costate.store
// RELEASE-LABEL: llvm.func @checked.entry(
// RELEASE-NOT: costate_index_error
costate.kernel @checked(%x: !costate.array<f64, 1>, %i: i64, %v: f64,
                        %dx: !costate.array<f64, 1> {costate.adjoint_of = 0 : i64}) {
  costate.store %v, %dx[%i] : !costate.array<f64, 1>
}

// RELEASE-LABEL: llvm.func @step.entry(
// RELEASE: %[[ZERO:.*]] = arith.cmpi eq
// RELEASE: scf.if %[[ZERO]] {
// RELEASE:   llvm.call @costate_step_zero
// RELEASE: costate.trip_count
costate.kernel @step(%n: i64, %x: !costate.array<i64, 0>) {
  %c0 = arith.constant 0 : i64
  %t = costate.trip_count %c0 to %n by %n
  costate.store %t, %x[] : !costate.array<i64, 0>
}

// RELEASE-LABEL: llvm.func @constant_step.entry(
// RELEASE-NOT: costate_step_zero
costate.kernel @constant_step(%n: i64, %x: !costate.array<i64, 0>) {
  %c0 = arith.constant 0 : i64
  %c2 = arith.constant 2 : i64
  %t = costate.trip_count %c0 to %n by %c2
  costate.store %t, %x[] : !costate.array<i64, 0>
}

// A marked access is reported after its index has been checked: site,
// parameter, element and use.
// CHECK-LABEL: llvm.func internal @watched.chunk0(
// CHECK: llvm.call @costate_index_error
// CHECK: llvm.call @costate_index_error
// CHECK: %[[ROW:.*]] = arith.muli %[[R:.*]], %{{.*}} : i64
// CHECK: %[[ELEMENT:.*]] = arith.addi %[[ROW]], %[[C:.*]] : i64
// CHECK: %[[PARAMETER:.*]] = arith.constant 1 : i64
// CHECK: %[[STORE:.*]] = arith.constant 2 : i64
// CHECK: llvm.call @costate_use(%arg1, %{{.*}}, %[[PARAMETER]], %[[ELEMENT]], %[[STORE]])
// CHECK-NEXT: costate.store %{{.*}}, %{{.*}}[%[[R]], %[[C]]]
costate.kernel @watched(%n: i64, %x: !costate.array<f64, 2>, %v: f64) {
  costate.range (%i) in (%n) {
    costate.store %v, %x[%n, %i] {costate.watched = "store"} : !costate.array<f64, 2>
  }
}

// Checks for inf and NaN: numbers go out as f64, texts by their numbers.
// CHECK-LABEL: llvm.func @finite.entry(
// CHECK: %[[BAD:.*]] = "llvm.intr.is.fpclass"(%[[Y:.*]]) <{bit = 519 : i32}> : (f32) -> i1
// CHECK: scf.if %[[BAD]] {
// CHECK:   scf.if %[[COUNTS:.*]] {
// CHECK:     %[[GOOD:.*]] = "llvm.intr.is.fpclass"(%[[X:.*]]) <{bit = 504 : i32}> : (f32) -> i1
// CHECK:     scf.if %[[GOOD]] {
// CHECK:       %[[WIDE:.*]] = arith.extf %[[X]] : f32 to f64
// CHECK:       %[[RESULT:.*]] = arith.extf %[[Y]] : f32 to f64
// CHECK:       %[[TEXT:.*]] = arith.constant 0 : i64
// CHECK:       %[[TWO:.*]] = arith.constant 2 : i64
// CHECK:       llvm.call @costate_not_finite(%arg1, %{{.*}}, %[[TEXT]], %[[TWO]], %[[WIDE]], %[[RESULT]], %[[RESULT]], %[[RESULT]])
// CHECK: scf.if
// CHECK:   llvm.call @costate_element_not_finite(%arg1, %{{.*}}, %{{.*}}, %{{.*}}, %[[I:.*]], %{{.*}})
// CHECK: "llvm.intr.is.fpclass"(%[[Y]]) <{bit = 504 : i32}>
// CHECK: scf.if
// CHECK:   llvm.call @costate_check_sum_f32(%arg1,
costate.kernel @finite(%x: f32, %y: f32, %c: i1, %a: !costate.array<f32, 1>, %i: i64) {
  costate.check_finite "log(%) gives %#" %y if %c from %x : (f32) -> f32
  costate.check_element "@ holds %#" %y, %a[%i] : f32, !costate.array<f32, 1>
  costate.check_element added "adding % to @ gives %#" %y, %a[%i] : f32, !costate.array<f32, 1>
}
