// RUN: costate-opt %s --outline-ranges --convert-kernel-to-llvm | FileCheck %s

// Ten rounds of two products each, all in 64 bits.
// CHECK-COUNT-20: llvm.mul
// CHECK-NOT:      llvm.mul
// CHECK:          llvm.shl
// CHECK-NEXT:     llvm.or
costate.kernel @bits(%y: !costate.array<i64, 0>, %k: i64) {
  %0 = costate.philox %k, %k, %k
  costate.store %0, %y[] : !costate.array<i64, 0>
}
