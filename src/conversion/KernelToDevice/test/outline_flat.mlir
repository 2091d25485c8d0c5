// RUN: costate-opt %s --split-serial --outline-device | FileCheck %s

// The host divides by extents once, so that threads multiply.
// CHECK-LABEL: llvm.func @flat.entry(
// CHECK:         costate.div unsigned %{{.*}}, %{{.*}} : i64
// CHECK-LABEL: llvm.func internal @flat.device0.body(
// CHECK:         %[[NARROW:.*]] = arith.cmpi ult, %{{.*}}, %{{.*}} : i64
// CHECK:         scf.for
// CHECK:           scf.if %[[NARROW]] -> (i64, i64) {
// CHECK-NOT:         costate.div
// CHECK:           } else {
// CHECK:             costate.div
costate.kernel @flat(%x: !costate.array<f64, 2>) {
  %zero = arith.constant 0.0 : f64
  %n = costate.extent %x[0] : !costate.array<f64, 2>
  %m = costate.extent %x[1] : !costate.array<f64, 2>
  costate.range (%i, %j) in (%n, %m) {
    costate.store %zero, %x[%i, %j] : !costate.array<f64, 2>
  }
}
