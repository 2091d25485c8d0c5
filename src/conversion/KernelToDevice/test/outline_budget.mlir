// RUN: costate-opt %s --split-serial --outline-device | FileCheck %s

// What measures a tape takes what a loop that runs again claims as well, beside
// what is on the tape then. The budget of a thread is the last word.
// CHECK:         budget_word = 14 : i64
// CHECK-LABEL: llvm.func internal @k.measure0.body(
// CHECK:         %[[WORD:.*]] = llvm.getelementptr inbounds %arg0[14]
// CHECK-NEXT:    %[[BUDGET:.*]] = llvm.load %[[WORD]]
// CHECK:         %[[CELL:.*]] = llvm.alloca
// CHECK:         scf.for
// CHECK:           tape.push
// CHECK:           %[[USED:.*]] = arith.divui
// CHECK-NEXT:      %[[ALL:.*]] = arith.addi %[[USED]], %[[BUDGET]]
// CHECK-NEXT:      %[[BEFORE:.*]] = llvm.load %[[CELL]]
// CHECK-NEXT:      %[[MOST:.*]] = arith.maxui %[[BEFORE]], %[[ALL]]
// CHECK-NEXT:      llvm.store %[[MOST]], %[[CELL]]
// CHECK:           %[[TAPE:.*]] = arith.divui
// CHECK-NEXT:      %[[CLAIMED:.*]] = llvm.load %[[CELL]]
// CHECK-NEXT:      arith.maxui %[[CLAIMED]], %[[TAPE]]
// CHECK-LABEL: llvm.func internal @k.device0.body(
// CHECK-NOT:     tape.claim
// CHECK:         tape.push
// CHECK-NOT:     tape.claim
costate.kernel @k(%x: !costate.array<f64, 1>) {
  %e = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%e) {
    %b = tape.budget
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    tape.push %v : f64
    tape.claim %b
    tape.pivot
    %w = tape.pop : f64
    costate.store %w, %x[%i] : !costate.array<f64, 1>
  }
}
