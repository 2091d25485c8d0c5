// RUN: costate-opt %s --outline-ranges --lower-calls | FileCheck %s
// RUN: costate-opt %s --pass-pipeline='builtin.module(host)' | FileCheck %s --check-prefix=HOST

func.func private @one(%x: f64) -> f64 {
  %y = arith.mulf %x, %x : f64
  return %y : f64
}
func.func private @two(%a: !costate.array<f64, 2>, %i: i64, %x: f64) -> (f64, i1) {
  %v = costate.load %a[%i, %i] : !costate.array<f64, 2>
  %s = func.call @one(%v) : (f64) -> f64
  %less = arith.cmpf olt, %s, %x : f64
  return %s, %less : f64, i1
}

// CHECK: llvm.func internal @calls.chunk0
// CHECK: %[[ALL:.*]] = llvm.call @function1(%[[BASE:.*]], %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) : (!llvm.ptr, i64, i64, i64, f64) -> !llvm.struct<(f64, i1)>
// CHECK: llvm.extractvalue %[[ALL]][0]
// CHECK: llvm.extractvalue %[[ALL]][1]

// CHECK: llvm.func internal @function0(%[[X:.*]]: f64) -> f64 attributes {
// CHECK-SAME: memory_effects = #llvm.memory_effects<other = none, argMem = none
// CHECK-SAME: no_inline
// CHECK: %[[Y:.*]] = arith.mulf %[[X]], %[[X]]
// CHECK: llvm.return %[[Y]]

// CHECK: llvm.func internal @function1(%{{.*}}: !llvm.ptr {llvm.noalias, llvm.readonly}, %{{.*}}: i64, %{{.*}}: i64, %{{.*}}: i64, %{{.*}}: f64) -> !llvm.struct<(f64, i1)>
// CHECK-SAME: argMem = read
// CHECK: builtin.unrealized_conversion_cast
// CHECK: %[[S:.*]] = llvm.call @function0(
// CHECK: llvm.insertvalue %[[S]], %{{.*}}[0]
// CHECK: llvm.insertvalue %{{.*}}[1]
// CHECK: llvm.return

// HOST-NOT: func.func
// HOST-NOT: unrealized
costate.kernel @calls(%x: !costate.array<f64, 2>, %y: !costate.array<f64, 1>) {
  %n = costate.extent %y[0] : !costate.array<f64, 1>
  costate.range (%i) in (%n) {
    %u = costate.load %y[%i] : !costate.array<f64, 1>
    %s, %less = func.call @two(%x, %i, %u) : (!costate.array<f64, 2>, i64, f64) -> (f64, i1)
    %w = arith.select %less, %s, %u : f64
    costate.store %w, %y[%i] : !costate.array<f64, 1>
  }
}
