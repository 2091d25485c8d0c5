// RUN: costate-opt %s --outline-ranges --expand-checks=index-checks --expand-tape --convert-scf-to-cf --convert-kernel-to-llvm | FileCheck %s

// Private arrays are on the stack from the start of the function on; a
// declaration makes their elements 0. A bool fills a byte. Checked indices know
// no argument.
// CHECK-LABEL: llvm.func internal @local.chunk0(
// CHECK-DAG:     %[[A:.*]] = llvm.alloca %{{.*}} x f64 {alignment = 8 : i64}
// CHECK-DAG:     %[[B:.*]] = llvm.alloca %{{.*}} x i8 {alignment = 8 : i64}
// CHECK:         llvm.br
// CHECK:         "llvm.intr.memset"(%[[A]]
// CHECK:         "llvm.intr.memset"(%[[B]]
// CHECK:         %[[NONE:.*]] = llvm.mlir.constant(-1 : i64)
// CHECK:         llvm.call @costate_index_error(%{{.*}}, %{{.*}}, %[[NONE]]
// CHECK:         %[[AT:.*]] = llvm.getelementptr inbounds %[[A]][%[[I:.*]]] : (!llvm.ptr, i64) -> !llvm.ptr, f64
// CHECK-NEXT:    llvm.store %{{.*}}, %[[AT]] : f64
// CHECK:         %[[BYTE:.*]] = llvm.zext %{{.*}} : i1 to i8
// CHECK-NEXT:    llvm.store %[[BYTE]], %{{.*}} : i8
// CHECK:         llvm.load %{{.*}} : !llvm.ptr -> i8
// CHECK-NEXT:    llvm.mlir.constant(0 : i8)
// CHECK-NEXT:    llvm.icmp "ne"
// CHECK:         "llvm.intr.memset"(%[[A]]
costate.kernel @local(%x: !costate.array<f64, 1>, %b: i1, %y: !costate.array<i1, 1>) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%n) {
    %a = costate.local : !costate.local<f64, 8>
    %f = costate.local : !costate.local<i1, 3>
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    costate.local_store %v, %a[%i] : !costate.local<f64, 8>
    costate.local_store %b, %f[%i] : !costate.local<i1, 3>
    %w = costate.local_load %a[%i] : !costate.local<f64, 8>
    %g = costate.local_load %f[%i] : !costate.local<i1, 3>
    costate.store %w, %x[%i] : !costate.array<f64, 1>
    costate.store %g, %y[%i] : !costate.array<i1, 1>
    costate.local_clear %a : !costate.local<f64, 8>
  }
}
