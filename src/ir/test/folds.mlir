// RUN: costate-opt %s --canonicalize | FileCheck %s

// Constants of the dialect's own operations. Each kernel stores the results in
// order, so the checks read the stored constants.

// CHECK-LABEL: costate.kernel @div(
costate.kernel @div(%x: !costate.array<i64, 0>) {
  %p7 = arith.constant 7 : i64
  %p2 = arith.constant 2 : i64
  %r0 = costate.div %p7, %p2 : i64
  costate.store %r0, %x[] : !costate.array<i64, 0>
  %m7 = arith.constant -7 : i64
  %r1 = costate.div %m7, %p2 : i64
  costate.store %r1, %x[] : !costate.array<i64, 0>
  %m2 = arith.constant -2 : i64
  %r2 = costate.div %p7, %m2 : i64
  costate.store %r2, %x[] : !costate.array<i64, 0>
  %p0 = arith.constant 0 : i64
  %r3 = costate.div %p7, %p0 : i64
  costate.store %r3, %x[] : !costate.array<i64, 0>
  %m9223372036854775808 = arith.constant -9223372036854775808 : i64
  %m1 = arith.constant -1 : i64
  %r4 = costate.div %m9223372036854775808, %m1 : i64
  costate.store %r4, %x[] : !costate.array<i64, 0>
  %r5 = costate.div %m9223372036854775808, %m9223372036854775808 : i64
  costate.store %r5, %x[] : !costate.array<i64, 0>
  %p5 = arith.constant 5 : i64
  %r6 = costate.div %p0, %p5 : i64
  costate.store %r6, %x[] : !costate.array<i64, 0>
  %p9223372036854775807 = arith.constant 9223372036854775807 : i64
  %r7 = costate.div %p9223372036854775807, %m1 : i64
  costate.store %r7, %x[] : !costate.array<i64, 0>
  // CHECK-DAG: %[[P3:.*]] = arith.constant 3 : i64
  // CHECK-DAG: %[[M3:.*]] = arith.constant -3 : i64
  // CHECK-DAG: %[[P0:.*]] = arith.constant 0 : i64
  // CHECK-DAG: %[[M9223372036854775808:.*]] = arith.constant -9223372036854775808 : i64
  // CHECK-DAG: %[[P1:.*]] = arith.constant 1 : i64
  // CHECK-DAG: %[[M9223372036854775807:.*]] = arith.constant -9223372036854775807 : i64
  // CHECK: costate.store %[[P3]],
  // CHECK-NEXT: costate.store %[[M3]],
  // CHECK-NEXT: costate.store %[[M3]],
  // CHECK-NEXT: costate.store %[[P0]],
  // CHECK-NEXT: costate.store %[[M9223372036854775808]],
  // CHECK-NEXT: costate.store %[[P1]],
  // CHECK-NEXT: costate.store %[[P0]],
  // CHECK-NEXT: costate.store %[[M9223372036854775807]],
}

// CHECK-LABEL: costate.kernel @div_unsigned(
costate.kernel @div_unsigned(%x: !costate.array<i32, 0>) {
  %p7 = arith.constant 7 : i32
  %p2 = arith.constant 2 : i32
  %r0 = costate.div unsigned %p7, %p2 : i32
  costate.store %r0, %x[] : !costate.array<i32, 0>
  %m1 = arith.constant -1 : i32
  %r1 = costate.div unsigned %m1, %p2 : i32
  costate.store %r1, %x[] : !costate.array<i32, 0>
  %p0 = arith.constant 0 : i32
  %r2 = costate.div unsigned %m1, %p0 : i32
  costate.store %r2, %x[] : !costate.array<i32, 0>
  %p5 = arith.constant 5 : i32
  %r3 = costate.div unsigned %p5, %m1 : i32
  costate.store %r3, %x[] : !costate.array<i32, 0>
  %m2147483648 = arith.constant -2147483648 : i32
  %r4 = costate.div unsigned %m2147483648, %m1 : i32
  costate.store %r4, %x[] : !costate.array<i32, 0>
  // CHECK-DAG: %[[P3:.*]] = arith.constant 3 : i32
  // CHECK-DAG: %[[P2147483647:.*]] = arith.constant 2147483647 : i32
  // CHECK-DAG: %[[P0:.*]] = arith.constant 0 : i32
  // CHECK: costate.store %[[P3]],
  // CHECK-NEXT: costate.store %[[P2147483647]],
  // CHECK-NEXT: costate.store %[[P0]],
  // CHECK-NEXT: costate.store %[[P0]],
  // CHECK-NEXT: costate.store %[[P0]],
}

// CHECK-LABEL: costate.kernel @rem(
costate.kernel @rem(%x: !costate.array<i64, 0>) {
  %p7 = arith.constant 7 : i64
  %p3 = arith.constant 3 : i64
  %r0 = costate.rem %p7, %p3 : i64
  costate.store %r0, %x[] : !costate.array<i64, 0>
  %m7 = arith.constant -7 : i64
  %r1 = costate.rem %m7, %p3 : i64
  costate.store %r1, %x[] : !costate.array<i64, 0>
  %m3 = arith.constant -3 : i64
  %r2 = costate.rem %p7, %m3 : i64
  costate.store %r2, %x[] : !costate.array<i64, 0>
  %p0 = arith.constant 0 : i64
  %r3 = costate.rem %p7, %p0 : i64
  costate.store %r3, %x[] : !costate.array<i64, 0>
  %r4 = costate.rem %m7, %p0 : i64
  costate.store %r4, %x[] : !costate.array<i64, 0>
  %m9223372036854775808 = arith.constant -9223372036854775808 : i64
  %m1 = arith.constant -1 : i64
  %r5 = costate.rem %m9223372036854775808, %m1 : i64
  costate.store %r5, %x[] : !costate.array<i64, 0>
  %p9223372036854775807 = arith.constant 9223372036854775807 : i64
  %r6 = costate.rem %m9223372036854775808, %p9223372036854775807 : i64
  costate.store %r6, %x[] : !costate.array<i64, 0>
  // CHECK-DAG: %[[P1:.*]] = arith.constant 1 : i64
  // CHECK-DAG: %[[M1:.*]] = arith.constant -1 : i64
  // CHECK-DAG: %[[P0:.*]] = arith.constant 0 : i64
  // CHECK: costate.store %[[P1]],
  // CHECK-NEXT: costate.store %[[M1]],
  // CHECK-NEXT: costate.store %[[P1]],
  // CHECK-NEXT: costate.store %[[P0]],
  // CHECK-NEXT: costate.store %[[P0]],
  // CHECK-NEXT: costate.store %[[P0]],
  // CHECK-NEXT: costate.store %[[M1]],
}

// CHECK-LABEL: costate.kernel @rem_unsigned(
costate.kernel @rem_unsigned(%x: !costate.array<i32, 0>) {
  %m1 = arith.constant -1 : i32
  %p10 = arith.constant 10 : i32
  %r0 = costate.rem unsigned %m1, %p10 : i32
  costate.store %r0, %x[] : !costate.array<i32, 0>
  %p7 = arith.constant 7 : i32
  %p0 = arith.constant 0 : i32
  %r1 = costate.rem unsigned %p7, %p0 : i32
  costate.store %r1, %x[] : !costate.array<i32, 0>
  %p3 = arith.constant 3 : i32
  %r2 = costate.rem unsigned %p3, %m1 : i32
  costate.store %r2, %x[] : !costate.array<i32, 0>
  // CHECK-DAG: %[[P5:.*]] = arith.constant 5 : i32
  // CHECK-DAG: %[[P0:.*]] = arith.constant 0 : i32
  // CHECK-DAG: %[[P3:.*]] = arith.constant 3 : i32
  // CHECK: costate.store %[[P5]],
  // CHECK-NEXT: costate.store %[[P0]],
  // CHECK-NEXT: costate.store %[[P3]],
}

// CHECK-LABEL: costate.kernel @shl(
costate.kernel @shl(%x: !costate.array<i64, 0>) {
  %p1 = arith.constant 1 : i64
  %p3 = arith.constant 3 : i64
  %r0 = costate.shl %p1, %p3 : i64
  costate.store %r0, %x[] : !costate.array<i64, 0>
  %p63 = arith.constant 63 : i64
  %r1 = costate.shl %p1, %p63 : i64
  costate.store %r1, %x[] : !costate.array<i64, 0>
  %p64 = arith.constant 64 : i64
  %r2 = costate.shl %p1, %p64 : i64
  costate.store %r2, %x[] : !costate.array<i64, 0>
  %p65 = arith.constant 65 : i64
  %r3 = costate.shl %p1, %p65 : i64
  costate.store %r3, %x[] : !costate.array<i64, 0>
  %m1 = arith.constant -1 : i64
  %r4 = costate.shl %p1, %m1 : i64
  costate.store %r4, %x[] : !costate.array<i64, 0>
  %r5 = costate.shl %p3, %p63 : i64
  costate.store %r5, %x[] : !costate.array<i64, 0>
  // CHECK-DAG: %[[P8:.*]] = arith.constant 8 : i64
  // CHECK-DAG: %[[M9223372036854775808:.*]] = arith.constant -9223372036854775808 : i64
  // CHECK-DAG: %[[P1:.*]] = arith.constant 1 : i64
  // CHECK-DAG: %[[P2:.*]] = arith.constant 2 : i64
  // CHECK: costate.store %[[P8]],
  // CHECK-NEXT: costate.store %[[M9223372036854775808]],
  // CHECK-NEXT: costate.store %[[P1]],
  // CHECK-NEXT: costate.store %[[P2]],
  // CHECK-NEXT: costate.store %[[M9223372036854775808]],
  // CHECK-NEXT: costate.store %[[M9223372036854775808]],
}

// CHECK-LABEL: costate.kernel @shl_32(
costate.kernel @shl_32(%x: !costate.array<i32, 0>) {
  %p1 = arith.constant 1 : i32
  %p31 = arith.constant 31 : i32
  %r0 = costate.shl %p1, %p31 : i32
  costate.store %r0, %x[] : !costate.array<i32, 0>
  %p32 = arith.constant 32 : i32
  %r1 = costate.shl %p1, %p32 : i32
  costate.store %r1, %x[] : !costate.array<i32, 0>
  %p5 = arith.constant 5 : i32
  %p33 = arith.constant 33 : i32
  %r2 = costate.shl %p5, %p33 : i32
  costate.store %r2, %x[] : !costate.array<i32, 0>
  %m32 = arith.constant -32 : i32
  %r3 = costate.shl %p1, %m32 : i32
  costate.store %r3, %x[] : !costate.array<i32, 0>
  // CHECK-DAG: %[[M2147483648:.*]] = arith.constant -2147483648 : i32
  // CHECK-DAG: %[[P1:.*]] = arith.constant 1 : i32
  // CHECK-DAG: %[[P10:.*]] = arith.constant 10 : i32
  // CHECK: costate.store %[[M2147483648]],
  // CHECK-NEXT: costate.store %[[P1]],
  // CHECK-NEXT: costate.store %[[P10]],
  // CHECK-NEXT: costate.store %[[P1]],
}

// CHECK-LABEL: costate.kernel @shr(
costate.kernel @shr(%x: !costate.array<i64, 0>) {
  %m8 = arith.constant -8 : i64
  %p1 = arith.constant 1 : i64
  %r0 = costate.shr %m8, %p1 : i64
  costate.store %r0, %x[] : !costate.array<i64, 0>
  %m1 = arith.constant -1 : i64
  %p63 = arith.constant 63 : i64
  %r1 = costate.shr %m1, %p63 : i64
  costate.store %r1, %x[] : !costate.array<i64, 0>
  %p64 = arith.constant 64 : i64
  %r2 = costate.shr %m8, %p64 : i64
  costate.store %r2, %x[] : !costate.array<i64, 0>
  %p8 = arith.constant 8 : i64
  %m63 = arith.constant -63 : i64
  %r3 = costate.shr %p8, %m63 : i64
  costate.store %r3, %x[] : !costate.array<i64, 0>
  // CHECK-DAG: %[[M4:.*]] = arith.constant -4 : i64
  // CHECK-DAG: %[[M1:.*]] = arith.constant -1 : i64
  // CHECK-DAG: %[[M8:.*]] = arith.constant -8 : i64
  // CHECK-DAG: %[[P4:.*]] = arith.constant 4 : i64
  // CHECK: costate.store %[[M4]],
  // CHECK-NEXT: costate.store %[[M1]],
  // CHECK-NEXT: costate.store %[[M8]],
  // CHECK-NEXT: costate.store %[[P4]],
}

// CHECK-LABEL: costate.kernel @shr_unsigned(
costate.kernel @shr_unsigned(%x: !costate.array<i32, 0>) {
  %m1 = arith.constant -1 : i32
  %p31 = arith.constant 31 : i32
  %r0 = costate.shr unsigned %m1, %p31 : i32
  costate.store %r0, %x[] : !costate.array<i32, 0>
  %p32 = arith.constant 32 : i32
  %r1 = costate.shr unsigned %m1, %p32 : i32
  costate.store %r1, %x[] : !costate.array<i32, 0>
  %m8 = arith.constant -8 : i32
  %p1 = arith.constant 1 : i32
  %r2 = costate.shr unsigned %m8, %p1 : i32
  costate.store %r2, %x[] : !costate.array<i32, 0>
  // CHECK-DAG: %[[P1:.*]] = arith.constant 1 : i32
  // CHECK-DAG: %[[M1:.*]] = arith.constant -1 : i32
  // CHECK-DAG: %[[P2147483644:.*]] = arith.constant 2147483644 : i32
  // CHECK: costate.store %[[P1]],
  // CHECK-NEXT: costate.store %[[M1]],
  // CHECK-NEXT: costate.store %[[P2147483644]],
}

// The distance of the bounds is a number of 64 bits without a sign: -1 stands
// for 2^64 - 1 iterations.
// CHECK-LABEL: costate.kernel @trip_count(
costate.kernel @trip_count(%x: !costate.array<i64, 0>) {
  %p0 = arith.constant 0 : i64
  %p10 = arith.constant 10 : i64
  %p1 = arith.constant 1 : i64
  %r0 = costate.trip_count %p0 to %p10 by %p1
  costate.store %r0, %x[] : !costate.array<i64, 0>
  %p3 = arith.constant 3 : i64
  %r1 = costate.trip_count %p0 to %p10 by %p3
  costate.store %r1, %x[] : !costate.array<i64, 0>
  %p9 = arith.constant 9 : i64
  %r2 = costate.trip_count %p0 to %p9 by %p3
  costate.store %r2, %x[] : !costate.array<i64, 0>
  %r3 = costate.trip_count %p10 to %p0 by %p1
  costate.store %r3, %x[] : !costate.array<i64, 0>
  %r4 = costate.trip_count %p0 to %p0 by %p1
  costate.store %r4, %x[] : !costate.array<i64, 0>
  %m3 = arith.constant -3 : i64
  %r5 = costate.trip_count %p10 to %p0 by %m3
  costate.store %r5, %x[] : !costate.array<i64, 0>
  %r6 = costate.trip_count %p9 to %p0 by %m3
  costate.store %r6, %x[] : !costate.array<i64, 0>
  %m1 = arith.constant -1 : i64
  %r7 = costate.trip_count %p0 to %p10 by %m1
  costate.store %r7, %x[] : !costate.array<i64, 0>
  %m9223372036854775808 = arith.constant -9223372036854775808 : i64
  %p9223372036854775807 = arith.constant 9223372036854775807 : i64
  %r8 = costate.trip_count %m9223372036854775808 to %p9223372036854775807 by %p1
  costate.store %r8, %x[] : !costate.array<i64, 0>
  %r9 = costate.trip_count %p9223372036854775807 to %m9223372036854775808 by %m1
  costate.store %r9, %x[] : !costate.array<i64, 0>
  %r10 = costate.trip_count %m9223372036854775808 to %p9223372036854775807 by %p9223372036854775807
  costate.store %r10, %x[] : !costate.array<i64, 0>
  %r11 = costate.trip_count %p9223372036854775807 to %m9223372036854775808 by %m9223372036854775808
  costate.store %r11, %x[] : !costate.array<i64, 0>
  %r12 = costate.trip_count %p0 to %m9223372036854775808 by %m9223372036854775808
  costate.store %r12, %x[] : !costate.array<i64, 0>
  %r13 = costate.trip_count %m1 to %p9223372036854775807 by %p1
  costate.store %r13, %x[] : !costate.array<i64, 0>
  %p2 = arith.constant 2 : i64
  %r14 = costate.trip_count %m9223372036854775808 to %p9223372036854775807 by %p2
  costate.store %r14, %x[] : !costate.array<i64, 0>
  // CHECK-DAG: %[[P10:.*]] = arith.constant 10 : i64
  // CHECK-DAG: %[[P4:.*]] = arith.constant 4 : i64
  // CHECK-DAG: %[[P3:.*]] = arith.constant 3 : i64
  // CHECK-DAG: %[[P0:.*]] = arith.constant 0 : i64
  // CHECK-DAG: %[[M1:.*]] = arith.constant -1 : i64
  // CHECK-DAG: %[[P2:.*]] = arith.constant 2 : i64
  // CHECK-DAG: %[[P1:.*]] = arith.constant 1 : i64
  // CHECK-DAG: %[[M9223372036854775808:.*]] = arith.constant -9223372036854775808 : i64
  // CHECK: costate.store %[[P10]],
  // CHECK-NEXT: costate.store %[[P4]],
  // CHECK-NEXT: costate.store %[[P3]],
  // CHECK-NEXT: costate.store %[[P0]],
  // CHECK-NEXT: costate.store %[[P0]],
  // CHECK-NEXT: costate.store %[[P4]],
  // CHECK-NEXT: costate.store %[[P3]],
  // CHECK-NEXT: costate.store %[[P0]],
  // CHECK-NEXT: costate.store %[[M1]],
  // CHECK-NEXT: costate.store %[[M1]],
  // CHECK-NEXT: costate.store %[[P3]],
  // CHECK-NEXT: costate.store %[[P2]],
  // CHECK-NEXT: costate.store %[[P1]],
  // CHECK-NEXT: costate.store %[[M9223372036854775808]],
  // CHECK-NEXT: costate.store %[[M9223372036854775808]],
}

// CHECK-LABEL: costate.kernel @to_int(
costate.kernel @to_int(%x: !costate.array<i64, 0>) {
  %c0 = arith.constant 2.9 : f64
  %r0 = costate.to_int %c0 : f64 to i64
  costate.store %r0, %x[] : !costate.array<i64, 0>
  %c1 = arith.constant -2.9 : f64
  %r1 = costate.to_int %c1 : f64 to i64
  costate.store %r1, %x[] : !costate.array<i64, 0>
  %c2 = arith.constant -0.0 : f64
  %r2 = costate.to_int %c2 : f64 to i64
  costate.store %r2, %x[] : !costate.array<i64, 0>
  %c3 = arith.constant 1.0e300 : f64
  %r3 = costate.to_int %c3 : f64 to i64
  costate.store %r3, %x[] : !costate.array<i64, 0>
  %c4 = arith.constant -1.0e300 : f64
  %r4 = costate.to_int %c4 : f64 to i64
  costate.store %r4, %x[] : !costate.array<i64, 0>
  %c5 = arith.constant 0x7FF0000000000000 : f64
  %r5 = costate.to_int %c5 : f64 to i64
  costate.store %r5, %x[] : !costate.array<i64, 0>
  %c6 = arith.constant 0xFFF0000000000000 : f64
  %r6 = costate.to_int %c6 : f64 to i64
  costate.store %r6, %x[] : !costate.array<i64, 0>
  %c7 = arith.constant 0x7FF8000000000000 : f64
  %r7 = costate.to_int %c7 : f64 to i64
  costate.store %r7, %x[] : !costate.array<i64, 0>
  // CHECK-DAG: %[[P2:.*]] = arith.constant 2 : i64
  // CHECK-DAG: %[[M2:.*]] = arith.constant -2 : i64
  // CHECK-DAG: %[[P0:.*]] = arith.constant 0 : i64
  // CHECK-DAG: %[[P9223372036854775807:.*]] = arith.constant 9223372036854775807 : i64
  // CHECK-DAG: %[[M9223372036854775808:.*]] = arith.constant -9223372036854775808 : i64
  // CHECK: costate.store %[[P2]],
  // CHECK-NEXT: costate.store %[[M2]],
  // CHECK-NEXT: costate.store %[[P0]],
  // CHECK-NEXT: costate.store %[[P9223372036854775807]],
  // CHECK-NEXT: costate.store %[[M9223372036854775808]],
  // CHECK-NEXT: costate.store %[[P9223372036854775807]],
  // CHECK-NEXT: costate.store %[[M9223372036854775808]],
  // CHECK-NEXT: costate.store %[[P0]],
}

// CHECK-LABEL: costate.kernel @to_int_32(
costate.kernel @to_int_32(%x: !costate.array<i32, 0>) {
  %c0 = arith.constant 2147483648.0 : f32
  %r0 = costate.to_int %c0 : f32 to i32
  costate.store %r0, %x[] : !costate.array<i32, 0>
  %c1 = arith.constant -2147483648.0 : f32
  %r1 = costate.to_int %c1 : f32 to i32
  costate.store %r1, %x[] : !costate.array<i32, 0>
  %c2 = arith.constant -3.0e9 : f32
  %r2 = costate.to_int %c2 : f32 to i32
  costate.store %r2, %x[] : !costate.array<i32, 0>
  %c3 = arith.constant 0x7FC00000 : f32
  %r3 = costate.to_int %c3 : f32 to i32
  costate.store %r3, %x[] : !costate.array<i32, 0>
  // CHECK-DAG: %[[P2147483647:.*]] = arith.constant 2147483647 : i32
  // CHECK-DAG: %[[M2147483648:.*]] = arith.constant -2147483648 : i32
  // CHECK-DAG: %[[P0:.*]] = arith.constant 0 : i32
  // CHECK: costate.store %[[P2147483647]],
  // CHECK-NEXT: costate.store %[[M2147483648]],
  // CHECK-NEXT: costate.store %[[M2147483648]],
  // CHECK-NEXT: costate.store %[[P0]],
}

// CHECK-LABEL: costate.kernel @to_int_unsigned(
costate.kernel @to_int_unsigned(%x: !costate.array<i32, 0>) {
  %c0 = arith.constant 3000000000.0 : f64
  %r0 = costate.to_int unsigned %c0 : f64 to i32
  costate.store %r0, %x[] : !costate.array<i32, 0>
  %c1 = arith.constant -0.5 : f64
  %r1 = costate.to_int unsigned %c1 : f64 to i32
  costate.store %r1, %x[] : !costate.array<i32, 0>
  %c2 = arith.constant -7.0 : f64
  %r2 = costate.to_int unsigned %c2 : f64 to i32
  costate.store %r2, %x[] : !costate.array<i32, 0>
  %c3 = arith.constant 1.0e10 : f64
  %r3 = costate.to_int unsigned %c3 : f64 to i32
  costate.store %r3, %x[] : !costate.array<i32, 0>
  %c4 = arith.constant 0x7FF0000000000000 : f64
  %r4 = costate.to_int unsigned %c4 : f64 to i32
  costate.store %r4, %x[] : !costate.array<i32, 0>
  %c5 = arith.constant 0x7FF8000000000000 : f64
  %r5 = costate.to_int unsigned %c5 : f64 to i32
  costate.store %r5, %x[] : !costate.array<i32, 0>
  // CHECK-DAG: %[[M1294967296:.*]] = arith.constant -1294967296 : i32
  // CHECK-DAG: %[[P0:.*]] = arith.constant 0 : i32
  // CHECK-DAG: %[[M1:.*]] = arith.constant -1 : i32
  // CHECK: costate.store %[[M1294967296]],
  // CHECK-NEXT: costate.store %[[P0]],
  // CHECK-NEXT: costate.store %[[P0]],
  // CHECK-NEXT: costate.store %[[M1]],
  // CHECK-NEXT: costate.store %[[M1]],
  // CHECK-NEXT: costate.store %[[P0]],
}

// RULE: zeros
// CHECK-LABEL: costate.kernel @unknown(
// CHECK-SAME: %[[A:.*]]: i64, %[[F:.*]]: f64, %{{.*}}: !costate.array<i64, 0>, %{{.*}}: !costate.array<f64, 0>)
costate.kernel @unknown(%a: i64, %f: f64, %x: !costate.array<i64, 0>, %y: !costate.array<f64, 0>) {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %zero = arith.constant 0.0 : f64
  %minus_zero = arith.constant -0.0 : f64
  %one = arith.constant 1.0 : f64
  // CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f64

  // CHECK: costate.store %[[A]],
  %0 = costate.div %a, %c1 : i64
  costate.store %0, %x[] : !costate.array<i64, 0>
  // CHECK-NEXT: costate.div %[[A]], %[[A]] : i64
  %1 = costate.div %a, %a : i64
  costate.store %1, %x[] : !costate.array<i64, 0>
  // CHECK: costate.trip_count
  %2 = costate.trip_count %c0 to %a by %c1
  costate.store %2, %x[] : !costate.array<i64, 0>

  // An adjoint of 0 stays 0, whatever it is multiplied with.
  // CHECK: costate.store %[[ZERO]],
  %3 = costate.strong_mul %zero, %f : f64
  costate.store %3, %y[] : !costate.array<f64, 0>
  // CHECK-NEXT: costate.store %[[ZERO]],
  %4 = costate.strong_mul %minus_zero, %f : f64
  costate.store %4, %y[] : !costate.array<f64, 0>
  // A factor of 0 does not make it 0: the adjoint may be NaN.
  // CHECK-NEXT: costate.strong_mul %[[F]], %[[ZERO]]
  %5 = costate.strong_mul %f, %zero : f64
  costate.store %5, %y[] : !costate.array<f64, 0>
  // Unless both are adjoints or tangents.
  // CHECK: costate.store %[[ZERO]],
  %8 = costate.strong_mul symmetric %f, %zero : f64
  costate.store %8, %y[] : !costate.array<f64, 0>
  // CHECK: costate.store %[[F]],
  %6 = costate.strong_mul %f, %one : f64
  costate.store %6, %y[] : !costate.array<f64, 0>
  // CHECK-NEXT: costate.store %[[F]],
  %7 = costate.strong_mul %one, %f : f64
  costate.store %7, %y[] : !costate.array<f64, 0>
}

// RULE: steps
// A step of 0 stays an error of the launch, in folded code too, and is not
// executed where the loop is not.
// CHECK-LABEL: costate.kernel @step(
costate.kernel @step(%run: i1, %lo: i64, %hi: i64, %step: i64, %x: !costate.array<i64, 0>) {
  // CHECK: scf.if
  // CHECK-NEXT: costate.trip_count
  scf.if %run {
    %0 = costate.trip_count %lo to %hi by %step
    costate.store %0, %x[] : !costate.array<i64, 0>
  }
}
