// RUN: costate-opt %s --outline-ranges --expand-checks="index-checks" | FileCheck %s
// RUN: costate-opt %s --outline-ranges --expand-checks | FileCheck %s --check-prefix=RELEASE
// RUN: costate-opt %s --differentiate-reverse | FileCheck %s --check-prefix=GRADIENT

// Values travel as 64 bits; a kernel that prints knows its work items.
// CHECK:       costate.texts
// CHECK-LABEL: llvm.func internal @says.chunk0
// CHECK:         llvm.call @costate_print(%{{.*}}, %{{.*}}, %{{.*}}, %[[TWO:.*]], %{{.*}}, %{{.*}}, %[[TWO]]
// CHECK:         scf.if
// CHECK:           llvm.call @costate_assert_failed
// RELEASE:     llvm.call @costate_begin_range
// RELEASE:     llvm.call @costate_print
// RELEASE-NOT: assert

// GRADIENT-LABEL: @says.grad
// GRADIENT-NOT: costate.print
// GRADIENT-NOT: costate.assert
costate.kernel @says(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  %zero = arith.constant 0.0 : f64
  costate.range (%i) in (%n) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    costate.print "{i}: {f}" %i, %v : i64, f64
    %c = arith.cmpf ogt, %v, %zero : f64
    costate.assert %c, "{f} is not positive" %v : f64
    %w = arith.mulf %v, %v : f64
    costate.store %w, %y[%i] : !costate.array<f64, 1>
  }
}
