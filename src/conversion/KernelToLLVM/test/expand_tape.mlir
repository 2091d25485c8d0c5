// RUN: costate-opt %s --outline-ranges --expand-tape | FileCheck %s
// RUN: costate-opt %s --split-serial --outline-device --expand-tape | FileCheck %s --check-prefix=DEVICE

// A record of f64, i32 and two bools takes 13 bytes: larger values first, bools
// in the bits of one byte.
// CHECK-LABEL: llvm.func @record.entry(
// CHECK: %[[SIZE:.*]] = arith.constant 13 : i64
// CHECK: %[[FULL:.*]] = arith.cmpi ult, %{{.*}}, %[[SIZE]] : i64
// CHECK: %[[TOP:.*]] = scf.if %[[FULL]]
// CHECK:   llvm.call @costate_tape_grow(%arg1,
// CHECK: %[[AT8:.*]] = llvm.getelementptr %[[TOP]][8]
// CHECK: llvm.store %[[K:.*]], %[[AT8]] {alignment = 1 : i64} : i32
// CHECK: llvm.store %[[X:.*]], %[[TOP]] {alignment = 1 : i64} : f64
// CHECK: arith.shli
// CHECK: arith.ori
// CHECK: %[[AT12:.*]] = llvm.getelementptr %[[TOP]][12]
// CHECK: llvm.store %{{.*}}, %[[AT12]] {alignment = 1 : i64} : i8
// CHECK: %[[NEW:.*]] = llvm.getelementptr %[[TOP]][13]
// CHECK: llvm.store %[[NEW]], %arg1
// CHECK: %[[END:.*]] = llvm.load %arg1
// CHECK: llvm.getelementptr %[[END]][-13]
// CHECK: arith.andi
// CHECK: arith.cmpi ne

// On a device the tape has room, and values are aligned; what only measures it
// stores nothing there.
// DEVICE-LABEL: llvm.func internal @record.measure0.body(
// DEVICE:         %[[TOP:.*]] = llvm.load %arg1
// DEVICE-NEXT:    %[[NEW:.*]] = llvm.getelementptr %[[TOP]][16]
// DEVICE-NEXT:    llvm.store %[[NEW]], %arg1
// DEVICE-LABEL: llvm.func internal @record.device0.body(
// DEVICE-NOT:     costate_tape_grow
// DEVICE:         llvm.store %{{.*}}, %{{.*}} {alignment = 4 : i64} : i32
// DEVICE:         llvm.store %{{.*}}, %{{.*}} {alignment = 8 : i64} : f64
// DEVICE:         llvm.getelementptr %{{.*}}[16]
costate.kernel @record(%b: i1, %k: i32, %x: f64, %c: i1, %y: !costate.array<f64, 0>) {
  tape.push %b, %k, %x, %c : i1, i32, f64, i1
  tape.pivot
  %0:4 = tape.pop : i1, i32, f64, i1
  %s = arith.select %0#0, %0#2, %x : f64
  costate.store %s, %y[] : !costate.array<f64, 0>
}

// Where 32 tapes are interleaved, every value has 8 bytes, and so has each byte
// of bools: whatever lanes have pushed before, they do not meet.
// DEVICE-LABEL: llvm.func internal @lanes.device0.body(
// DEVICE:         %[[TOP:.*]] = llvm.load %arg1
// DEVICE:         arith.muli %{{.*}}, %{{.*}} : i64
// DEVICE:         llvm.getelementptr %[[TOP]][256]
// DEVICE:         llvm.getelementptr %[[TOP]][512]
// DEVICE:         llvm.getelementptr %[[TOP]][768]
costate.kernel @lanes(%x: !costate.array<f64, 1>, %k: i32, %b: i1) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%n) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    tape.push %v, %k, %b : f64, i32, i1
    tape.pivot
    %0:3 = tape.pop : f64, i32, i1
    costate.store %0#0, %x[%i] : !costate.array<f64, 1>
  }
}
