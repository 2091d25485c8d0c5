// Extents that are known are constants in addresses; other arrays are refused.
// RUN: costate-run %s --emit ptx | FileCheck %s --check-prefix=PTX
// PTX: ld.global.b32 [[I:%r[0-9]+]]
// PTX: mul.wide.s32 {{%rd[0-9]+}}, {{%r[0-9]+}}, 12;
// RUN: costate-run %s --arg 'f32[2,3]=1,2,3,4,5,6' --arg 'i32[2]=1,0' --print 0 | FileCheck %s
// RUN: costate-run %s --interpret --arg 'f32[2,3]=1,2,3,4,5,6' --arg 'i32[2]=1,0' --print 0 | FileCheck %s
// CHECK: 0: f32[2,3]=1,5,3,4,2,6
// RUN: not costate-run %s --interpret --arg 'f32[2,4]=1,2,3,4,5,6,7,8' --arg 'i32[2]=1,0' 2>&1 | FileCheck %s --check-prefix=REFUSED
// REFUSED: argument 0 is f32[2,4]; the kernel declares f32[_,3]

costate.kernel @swap(%x: !costate.array<f32, 2> {costate.extents = array<i64: -1, 3>}, %of: !costate.array<i32, 1>) {
  %one = arith.constant 1 : i64
  costate.range (%i) in (%one) {
    %c1i = arith.constant 1 : i64
    %k = costate.load %of[%i] : !costate.array<i32, 1>
    %j = arith.extsi %k : i32 to i64
    %a = costate.load %x[%j, %c1i] : !costate.array<f32, 2>
    %b = costate.load %x[%i, %c1i] : !costate.array<f32, 2>
    costate.store %a, %x[%i, %c1i] : !costate.array<f32, 2>
    costate.store %b, %x[%j, %c1i] : !costate.array<f32, 2>
  }
}
