// Narrow numbers in files and on the command line, in both ways to run.
// RUN: costate-run %s --kernel sums --arg 'u8[3]=250,1,2' --arg 'i16[3]=-5,32767,7' --arg 'f16[3]=0.1,65504,1e-7' | FileCheck %s
// RUN: costate-run %s --interpret --kernel sums --arg 'u8[3]=250,1,2' --arg 'i16[3]=-5,32767,7' --arg 'f16[3]=0.1,65504,1e-7' | FileCheck %s
// CHECK: 0: u8[3]=245,0,9
// CHECK-NEXT: 1: i16[3]=245,-32768,9
// CHECK-NEXT: 2: f16[3]=0.19995117,inf,2.3841858e-07
costate.kernel @sums(%a: !costate.array<ui8, 1>, %b: !costate.array<i16, 1>, %c: !costate.array<f16, 1>) {
  %n = costate.extent %a[0] : !costate.array<ui8, 1>
  costate.range (%i) in (%n) {
    %x = costate.load %a[%i] : !costate.array<ui8, 1>
    %y = costate.load %b[%i] : !costate.array<i16, 1>
    %z = costate.load %c[%i] : !costate.array<f16, 1>
    %xy = arith.addi %x, %y : i32
    costate.store %xy, %a[%i] : !costate.array<ui8, 1>
    costate.store %xy, %b[%i] : !costate.array<i16, 1>
    costate.atomic_add %z, %c[%i] : !costate.array<f16, 1>
  }
}

// Seeds, adjoints and tangents of f16 are f32.
// RUN: costate-run %s --kernel square --grad --arg 'f16[2]=3,0.5' --arg 'f16[2]:0' --seed '1=f32[2]=1,1e-4' --print 0 | FileCheck %s --check-prefix=GRAD
// RUN: costate-run %s --interpret --kernel square --grad --arg 'f16[2]=3,0.5' --arg 'f16[2]:0' --seed '1=f32[2]=1,1e-4' --print 0 | FileCheck %s --check-prefix=GRAD
// GRAD: 0.grad: f32[2]=6,1e-04
// RUN: not costate-run %s --kernel square --grad --arg 'f16[2]=3,0.5' --arg 'f16[2]:0' --seed '1=f16[2]=1,2' 2>&1 | FileCheck %s --check-prefix=SEED
// SEED: argument 1 is f16[2]; seeds of f16 are f32
costate.kernel @square(%x: !costate.array<f16, 1>, %y: !costate.array<f16, 1>) {
  %n = costate.extent %x[0] : !costate.array<f16, 1>
  costate.range (%i) in (%n) {
    %v = costate.load %x[%i] : !costate.array<f16, 1>
    %w = arith.mulf %v, %v : f32
    %r = costate.narrow %w to f16 : f32
    costate.store %r, %y[%i] : !costate.array<f16, 1>
  }
}
