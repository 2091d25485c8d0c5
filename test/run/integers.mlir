// Integer operations are total.
// RUN: costate-run %s --kernel integers --arg 'i64[7]=7,-7,7,-9223372036854775808,5,-1,3' --arg 'i64[7]=2,2,-2,-1,0,65,64' --arg 'i64[7,4]:0' --print 2 | FileCheck %s
// CHECK: 2: i64[7,4]=3,1,28,1,-3,-1,-28,4611686018427387902,-3,1,-4611686018427387904,0,-9223372036854775808,0,0,1,0,0,5,5,0,-1,-2,9223372036854775807,0,3,3,3

// RUN: costate-run %s --kernel iterations --arg 'i64[6,3]=0,10,1,0,10,3,10,0,-3,10,0,1,-9223372036854775808,9223372036854775807,1,5,5,1' --arg 'i64[6]:0' --print 1 | FileCheck %s --check-prefix=ITERATIONS
// ITERATIONS: 1: i64[6]=10,4,4,0,-1,0

// RUN: costate-run %s --kernel to_int --arg 'f64[6]=1.9,-1.9,nan,inf,-inf,4e9' --arg 'i32[6]:0' --arg 'u32[6]:0' | FileCheck %s --check-prefix=TOINT
// TOINT: 1: i32[6]=1,-1,0,2147483647,-2147483648,2147483647
// TOINT: 2: u32[6]=1,0,0,4294967295,0,4000000000

costate.kernel @integers(%a: !costate.array<i64, 1>, %b: !costate.array<i64, 1>, %o: !costate.array<i64, 2>) {
  %n = costate.extent %a[0] : !costate.array<i64, 1>
  %k0 = arith.constant 0 : i64
  %k1 = arith.constant 1 : i64
  %k2 = arith.constant 2 : i64
  %k3 = arith.constant 3 : i64
  costate.range (%i) in (%n) {
    %x = costate.load %a[%i] : !costate.array<i64, 1>
    %y = costate.load %b[%i] : !costate.array<i64, 1>
    %d = costate.div %x, %y : i64
    %r = costate.rem %x, %y : i64
    %s = costate.shl %x, %y : i64
    %t = costate.shr unsigned %x, %y : i64
    costate.store %d, %o[%i, %k0] : !costate.array<i64, 2>
    costate.store %r, %o[%i, %k1] : !costate.array<i64, 2>
    costate.store %s, %o[%i, %k2] : !costate.array<i64, 2>
    costate.store %t, %o[%i, %k3] : !costate.array<i64, 2>
  }
}

costate.kernel @iterations(%a: !costate.array<i64, 2>, %o: !costate.array<i64, 1>) {
  %n = costate.extent %o[0] : !costate.array<i64, 1>
  %k0 = arith.constant 0 : i64
  %k1 = arith.constant 1 : i64
  %k2 = arith.constant 2 : i64
  costate.range (%i) in (%n) {
    %x = costate.load %a[%i, %k0] : !costate.array<i64, 2>
    %y = costate.load %a[%i, %k1] : !costate.array<i64, 2>
    %z = costate.load %a[%i, %k2] : !costate.array<i64, 2>
    %t = costate.trip_count %x to %y by %z
    costate.store %t, %o[%i] : !costate.array<i64, 1>
  }
}

costate.kernel @to_int(%x: !costate.array<f64, 1>, %i: !costate.array<i32, 1>, %u: !costate.array<ui32, 1>) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%k) in (%n) {
    %v = costate.load %x[%k] : !costate.array<f64, 1>
    %s = costate.to_int %v : f64 to i32
    %t = costate.to_int unsigned %v : f64 to i32
    costate.store %s, %i[%k] : !costate.array<i32, 1>
    costate.store %t, %u[%k] : !costate.array<ui32, 1>
  }
}
