// RUN: costate-opt %s --outline-ranges --expand-checks --expand-tape --convert-scf-to-cf --convert-kernel-to-llvm=maths=avx2 | FileCheck %s
// RUN: costate-opt %s --outline-ranges --expand-checks --expand-tape --convert-scf-to-cf --convert-kernel-to-llvm=maths=libclc | FileCheck %s --check-prefix=GPU

// A product with the same factor once more, or with its opposite, has the guard
// of the first one; a sum of such terms has it instead of them. GPUs leave
// products out.
// CHECK-LABEL: llvm.func @cube.entry(
// CHECK:         %[[SQUARE:.*]] = llvm.fmul %[[X:.*]], %[[X]] : f32
// CHECK:         %[[A:.*]] = llvm.fmul %[[G:.*]], %[[SQUARE]] : f32
// CHECK:         %[[INNER:.*]] = llvm.fmul %[[G]], %[[X]] : f32
// CHECK:         %[[OPPOSITE:.*]] = llvm.fneg %[[INNER]]
// CHECK:         %[[B:.*]] = llvm.fmul %[[OPPOSITE]], %[[X]] : f32
// CHECK:         %[[COUNTS:.*]] = llvm.fcmp "une" %[[G]], %[[ZERO:.*]] : f32
// CHECK-NEXT:    %[[SUM:.*]] = llvm.fadd %[[A]], %[[B]]
// CHECK-NEXT:    %[[RESULT:.*]] = llvm.select %[[COUNTS]], %[[SUM]], %[[ZERO]]
// CHECK:         llvm.store %[[RESULT]]
// GPU-LABEL: llvm.func @cube.entry(
// GPU-COUNT-3: llvm.fcmp "oeq"
costate.kernel @cube(%g: f32, %x: f32, %y: !costate.array<f32, 0>) {
  %square = arith.mulf %x, %x : f32
  %a = costate.strong_mul %g, %square : f32
  %inner = costate.strong_mul %g, %x : f32
  %opposite = arith.negf %inner : f32
  %b = costate.strong_mul %opposite, %x : f32
  %sum = arith.addf %a, %b : f32
  costate.store %sum, %y[] : !costate.array<f32, 0>
}

// Other factors may be inf where the guard of the first product is 0 by
// underflow, and guards of different adjoints have nothing to do with each
// other.
// CHECK-LABEL: llvm.func @others.entry(
// CHECK-COUNT-3: llvm.select
// CHECK:         llvm.fadd
// CHECK-NOT:     llvm.select
// CHECK:         llvm.store
costate.kernel @others(%g: f32, %h: f32, %x: f32, %y: !costate.array<f32, 0>) {
  %inner = costate.strong_mul %g, %x : f32
  %a = costate.strong_mul %inner, %h : f32
  %b = costate.strong_mul %h, %x : f32
  %sum = arith.addf %a, %b : f32
  costate.store %sum, %y[] : !costate.array<f32, 0>
}
