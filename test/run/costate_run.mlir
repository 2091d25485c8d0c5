// RUN: costate-run %s --kernel exp_sin --arg 'f64[3]=0,1,2' --arg 'f64[3]:0' | FileCheck %s --check-prefix=PRIMAL
// PRIMAL: 0: f64[3]=0,1,2
// PRIMAL-NEXT: 1: f64[3]=1,2.3197768247{{[0-9]*}},2.4825777280{{[0-9]*}}
// RUN: costate-run %s --kernel exp_sin --grad --arg 'f64[3]=0,1,2' --arg 'f64[3]:0' --seed '1=f64[3]:1' --print 0 | FileCheck %s --check-prefix=GRAD
// GRAD: 0.grad: f64[3]=1,1.2533807674{{[0-9]*}},-1.0331168679{{[0-9]*}}
// RUN: costate-run %s --kernel exp_sin --jvp --arg 'f64[3]=0,1,2' --arg 'f64[3]:0' --tangent '0=f64[3]:1' --print 1 | FileCheck %s --check-prefix=JVP
// JVP: 1.dual: f64[3]=1,1.2533807674{{[0-9]*}},-1.0331168679{{[0-9]*}}

// Files in and out.
// RUN: rm -rf %t && mkdir -p %t
// RUN: costate-run %s --kernel exp_sin --arg 'f64[3]=0,1,2' --arg 'f64[3]:0' --out 0=%t/x.npy --out 1=%t/y.npy
// RUN: costate-run %s --kernel exp_sin --grad --active 0,1 --arg %t/x.npy --arg %t/y.npy --seed '1=f64[3]:1' --adjoint-out 0=%t/dx.npy
// RUN: costate-run %s --kernel exp_sin --arg %t/dx.npy --arg 'f64[3]:0' --print 0 | FileCheck %s --check-prefix=FILE
// FILE: 0: f64[3]=1,1.2533807674

// Errors.
// RUN: not costate-run %s 2>&1 | FileCheck %s --check-prefix=WHICH
// WHICH: name one of its kernels: `exp_sin` `every` `fourth` `cube` `outside` `forever`
// RUN: not costate-run %s --kernel exp_sin --arg f64=1 2>&1 | FileCheck %s --check-prefix=COUNT
// COUNT: the kernel takes 2 arguments, not 1
// RUN: not costate-run %s --kernel exp_sin --arg 'f32[3]:0' --arg 'f64[3]:0' 2>&1 | FileCheck %s --check-prefix=DTYPE
// DTYPE: argument 0 is f32[3]; the kernel declares f64[_]
// RUN: not costate-run %s --kernel exp_sin --arg 'f64[3,1]:0' --arg 'f64[3]:0' 2>&1 | FileCheck %s --check-prefix=RANK
// RANK: argument 0 is f64[3,1]; the kernel declares f64[_]
// RUN: not costate-run %s --kernel exp_sin --arg missing.npy --arg 'f64[3]:0' 2>&1 | FileCheck %s --check-prefix=MISSING
// MISSING: missing.npy: cannot be opened
// RUN: not costate-run %s --kernel exp_sin --grad --arg 'f64[3]:0' --arg 'f64[3]:0' --seed '1=f64[2]:1' 2>&1 | FileCheck %s --check-prefix=SEED
// SEED: `1=f64[2]:1` is f64[2]; argument 1 is f64[3]
// RUN: not costate-run %s --kernel exp_sin --grad --active 0 --arg 'f64[3]:0' --arg 'f64[3]:0' 2>&1 | FileCheck %s --check-prefix=INACTIVE
// INACTIVE: argument 1 is written with values that depend on active arguments; add it to --active
// RUN: not costate-run missing.mlir 2>&1 | FileCheck %s --check-prefix=NOFILE
// NOFILE: missing.mlir: cannot be read
// RUN: not costate-run %s --kernel outside --debug --arg 'f64[3]:0' --arg i64=3 2>&1 | FileCheck %s --check-prefix=OUTSIDE
// OUTSIDE: index 3 is outside dimension 0
// RUN: not costate-run %s --kernel forever --arg 'i64[]=0' 2>&1 | FileCheck %s --check-prefix=STEP
// STEP: step

costate.kernel @exp_sin(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%n) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %s = costate.sin %v : f64
    %w = costate.exp %s : f64
    costate.store %w, %y[%i] : !costate.array<f64, 1>
  }
}

// Every dtype, and ranks up to 8.
// RUN: costate-run %s --kernel every --arg 'bool[2]=1,0' --arg 'i32[1,2]=-1,5' --arg 'i64[2,1,1]=7,8' --arg 'u32[1,1,1,2]=4294967295,1' --arg 'u64[2]=18446744073709551615,2' --arg 'f32[2]=0.5,1.5' --arg 'f64[1,1,1,1,1,1,1,2]=1,2' --arg bool=1 --arg i32=-2 --arg i64=3 --arg f32=0.25 --arg f64=0.125 | FileCheck %s --check-prefix=EVERY
// EVERY: 0: bool[2]=1,1
// EVERY: 1: i32[1,2]=-3,3
// EVERY: 2: i64[2,1,1]=10,11
// EVERY: 3: u32[1,1,1,2]=4294967293,4294967295
// EVERY: 4: u64[2]=2,5
// EVERY: 5: f32[2]=0.75,1.75
// EVERY: 6: f64[1,1,1,1,1,1,1,2]=1.125,2.125
costate.kernel @every(%b: !costate.array<i1, 1>, %i: !costate.array<i32, 2>, %l: !costate.array<i64, 3>,
                      %u: !costate.array<ui32, 4>, %w: !costate.array<ui64, 1>, %f: !costate.array<f32, 1>,
                      %d: !costate.array<f64, 8>, %sb: i1, %si: i32, %sl: i64, %sf: f32, %sd: f64) {
  %c0 = arith.constant 0 : i64
  %n = costate.extent %b[0] : !costate.array<i1, 1>
  costate.range (%k) in (%n) {
    %0 = costate.load %b[%k] : !costate.array<i1, 1>
    %1 = arith.ori %0, %sb : i1
    costate.store %1, %b[%k] : !costate.array<i1, 1>
    costate.atomic_add %si, %i[%c0, %k] : !costate.array<i32, 2>
    costate.atomic_add %sl, %l[%k, %c0, %c0] : !costate.array<i64, 3>
    costate.atomic_add %si, %u[%c0, %c0, %c0, %k] : !costate.array<ui32, 4>
    costate.atomic_add %sl, %w[%k] : !costate.array<ui64, 1>
    costate.atomic_add %sf, %f[%k] : !costate.array<f32, 1>
    costate.atomic_add exclusive %sd, %d[%c0, %c0, %c0, %c0, %c0, %c0, %c0, %k] : !costate.array<f64, 8>
  }
}

// A gradient that reads back what the kernel stored runs the kernel before.
// RUN: costate-run %s --kernel fourth --grad --arg 'f64[2]=2,3' --arg 'f64[2]:0' --arg 'f64[]=0' --seed '2=f64[]=1' | FileCheck %s --check-prefix=FOURTH
// FOURTH: 0.grad: f64[2]=32,108
// FOURTH-NEXT: 1: f64[2]=4,9
costate.kernel @fourth(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>, %s: !costate.array<f64, 0>) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%n) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %w = arith.mulf %v, %v : f64
    costate.store %w, %y[%i] : !costate.array<f64, 1>
  }
  costate.range (%i) in (%n) {
    %q = costate.load %y[%i] : !costate.array<f64, 1>
    %r = arith.mulf %q, %q : f64
    costate.atomic_add %r, %s[] : !costate.array<f64, 0>
  }
}

// One that needs what the kernel has overwritten takes a copy of it.
// RUN: costate-run %s --kernel cube --grad --arg 'f64[3]=0.5,1.5,-0.8' --seed '0=f64[3]:1' | FileCheck %s --check-prefix=CUBE
// CUBE: 0.grad: f64[3]=0.0625,136.6875,-1.677721
costate.kernel @cube(%x: !costate.array<f64, 1>) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %c3 = arith.constant 3 : i64
  costate.range (%i) in (%n) {
    scf.for %k = %c0 to %c3 step %c1 : i64 {
      %v = costate.load %x[%i] : !costate.array<f64, 1>
      %w = arith.mulf %v, %v : f64
      costate.store %w, %x[%i] : !costate.array<f64, 1>
    }
  }
}

costate.kernel @outside(%x: !costate.array<f64, 1>, %at: i64) {
  %v = costate.load %x[%at] : !costate.array<f64, 1>
  %c0 = arith.constant 0 : i64
  costate.store %v, %x[%c0] : !costate.array<f64, 1>
}

costate.kernel @forever(%x: !costate.array<i64, 0>) {
  %c0 = arith.constant 0 : i64
  %step = costate.load %x[] : !costate.array<i64, 0>
  %t = costate.trip_count %c0 to %step by %step
  costate.store %t, %x[] : !costate.array<i64, 0>
}
