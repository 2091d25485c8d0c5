// RUN: costate-opt %s | costate-opt | FileCheck %s --check-prefix=PRINT
// RUN: costate-opt %s --canonicalize | FileCheck %s

// Narrow numbers are held by an i32 or f32. Constants are narrowed when they
// are folded; what holds such a number already stays as it is.
// PRINT-LABEL: costate.kernel @integers(
// PRINT:         costate.narrow %{{.*}} to i8 : i32
// PRINT:         costate.narrow %{{.*}} to ui8 : i32
// CHECK-LABEL: costate.kernel @integers(
// CHECK-DAG:     %[[M56:.*]] = arith.constant -56 : i32
// CHECK-DAG:     %[[P200:.*]] = arith.constant 200 : i32
// CHECK-DAG:     %[[P65535:.*]] = arith.constant 65535 : i32
// CHECK:         costate.store %[[M56]],
// CHECK-NEXT:    costate.store %[[P200]],
// CHECK-NEXT:    costate.store %[[P65535]],
// CHECK-NEXT:    %[[V:.*]] = costate.load
// CHECK-NEXT:    costate.store %[[V]],
// CHECK-NEXT:    %[[W:.*]] = costate.narrow %[[V]] to ui8
// CHECK-NEXT:    costate.store %[[W]],
costate.kernel @integers(%x: !costate.array<i8, 0>, %y: !costate.array<i32, 0>) {
  %a = arith.constant 200 : i32
  %b = arith.constant -1 : i32
  %r0 = costate.narrow %a to i8 : i32
  costate.store %r0, %y[] : !costate.array<i32, 0>
  %r1 = costate.narrow %a to ui8 : i32
  costate.store %r1, %y[] : !costate.array<i32, 0>
  %r2 = costate.narrow %b to ui16 : i32
  costate.store %r2, %y[] : !costate.array<i32, 0>
  %v = costate.load %x[] : !costate.array<i8, 0>
  %r3 = costate.narrow %v to i8 : i32
  costate.store %r3, %y[] : !costate.array<i32, 0>
  %r4 = costate.narrow %v to ui8 : i32
  %r5 = costate.narrow %r4 to ui8 : i32
  costate.store %r5, %y[] : !costate.array<i32, 0>
}

// CHECK-LABEL: costate.kernel @floats(
// CHECK-DAG:     %[[TENTH:.*]] = arith.constant 0.0999755859 : f32
// CHECK-DAG:     %[[INF:.*]] = arith.constant 0x7F800000 : f32
// CHECK-DAG:     %[[ONCE:.*]] = arith.constant 1.00097656 : f32
// CHECK:         costate.store %[[TENTH]],
// CHECK-NEXT:    costate.store %[[INF]],
// CHECK-NEXT:    costate.store %[[ONCE]],
costate.kernel @floats(%x: !costate.array<f16, 0>, %l: f64) {
  %a = arith.constant 0.1 : f64
  %b = arith.constant 65520.0 : f32
  // Above the middle of 1 and the next number, but not in f32.
  %d = arith.constant 0x3FF0020000000001 : f64
  %r0 = costate.narrow %a to f16 : f64
  costate.store %r0, %x[] : !costate.array<f16, 0>
  %r1 = costate.narrow %b to f16 : f32
  costate.store %r1, %x[] : !costate.array<f16, 0>
  %r2 = costate.narrow %d to f16 : f64
  costate.store %r2, %x[] : !costate.array<f16, 0>
}

// PRINT-LABEL: costate.kernel @local(
// PRINT:         costate.local : !costate.local<ui16, 3>
// PRINT:         costate.local_load %{{.*}} : !costate.local<f16, 2>
costate.kernel @local(%x: !costate.array<f16, 1>, %i: i64) {
  %a = costate.local : !costate.local<ui16, 3>
  %b = costate.local : !costate.local<f16, 2>
  %v = costate.local_load %b[%i] : !costate.local<f16, 2>
  costate.store %v, %x[%i] : !costate.array<f16, 1>
  %w = costate.local_load %a[%i] : !costate.local<ui16, 3>
  costate.local_store %w, %a[%i] : !costate.local<ui16, 3>
}
