// The reference interpreter takes and gives what compiled code does.
// RUN: costate-run %s --interpret --kernel power --arg 'f64[4]=0.5,1.5,2,3' --arg 'i64[4]=0,1,7,1000' --arg 'f64[4]:0' --print 2 | FileCheck %s --check-prefix=PRIMAL
// PRIMAL: 2: f64[4]=0.5,1.49624247990{{[0-9]*}},1.66987857588{{[0-9]*}},0
// RUN: costate-run %s --interpret --kernel power --grad --arg 'f64[4]=0.5,1.5,2,3' --arg 'i64[4]=0,1,7,1000' --arg 'f64[4]:0' --seed '2=f64[4]:1' --print 0 | FileCheck %s --check-prefix=GRAD
// GRAD: 0.grad: f64[4]=1,1.10360078910{{[0-9]*}},0.00893331298349{{[0-9]*}},0
// RUN: costate-run %s --interpret --kernel power --jvp --arg 'f64[4]=0.5,1.5,2,3' --arg 'i64[4]=0,1,7,1000' --arg 'f64[4]:0' --tangent '0=f64[4]:1' --print 2 | FileCheck %s --check-prefix=JVP
// JVP: 2.dual: f64[4]=1,1.10360078910{{[0-9]*}},0.00893331298349{{[0-9]*}},0

// The text of a gradient is a kernel like others.
// RUN: costate-run %s --kernel power --grad --emit ir > %t.mlir
// RUN: costate-run %t.mlir --interpret --arg 'f64[1]=1.5' --arg 'i64[1]=1' --arg 'f64[1]:0' --arg 'f64[1]:0' --arg 'f64[1]:1' --print 3 | FileCheck %s --check-prefix=TEXT
// TEXT: 3: f64[1]=1.10360078910{{[0-9]*}}
costate.kernel @power(%x: !costate.array<f64, 1>, %n: !costate.array<i64, 1>, %y: !costate.array<f64, 1>) {
  %e = costate.extent %x[0] : !costate.array<f64, 1>
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  costate.range (%i) in (%e) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %m = costate.load %n[%i] : !costate.array<i64, 1>
    %w = scf.for %k = %c0 to %m step %c1 iter_args(%u = %v) -> f64 : i64 {
      %s = costate.sin %u : f64
      %p = arith.mulf %u, %s : f64
      scf.yield %p : f64
    }
    costate.store %w, %y[%i] : !costate.array<f64, 1>
  }
}

// A gradient that reads back what the kernel stored runs the kernel before.
// RUN: costate-run %s --interpret --kernel fourth --grad --arg 'f64[2]=2,3' --arg 'f64[2]:0' --arg 'f64[]=0' --seed '2=f64[]=1' | FileCheck %s --check-prefix=FOURTH
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

// It checks indices without --debug, and refuses races.
// RUN: not costate-run %s --interpret --kernel shift --arg 'f64[3]=1,2,3' --arg i64=3 2>&1 | FileCheck %s --check-prefix=OUTSIDE
// OUTSIDE: kernel `shift` at {{.*}}interpret.mlir:[[#]]: index 3 is outside dimension 0 of argument 1, whose extent is 3
// RUN: not costate-run %s --interpret --kernel first --arg 'f64[3]=1,2,3' 2>&1 | FileCheck %s --check-prefix=FIRST
// FIRST: kernel `first` at {{.*}}interpret.mlir:[[#]]: element [0] of argument 1 is used by work items 0 and 1 of one range, and stored by one of them, so the result depends on their order
costate.kernel @shift(%x: !costate.array<f64, 1>, %by: i64) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%n) {
    %j = arith.addi %i, %by : i64
    %v = costate.load %x[%j] : !costate.array<f64, 1>
    costate.store %v, %x[%i] : !costate.array<f64, 1>
  }
}
costate.kernel @first(%x: !costate.array<f64, 1>) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  %c0 = arith.constant 0 : i64
  costate.range (%i) in (%n) {
    %v = arith.sitofp %i : i64 to f64
    costate.store %v, %x[%c0] : !costate.array<f64, 1>
  }
}

// One that needs what the kernel has overwritten takes a copy of it.
// RUN: costate-run %s --interpret --kernel cube --grad --arg 'f64[3]=0.5,1.5,-0.8' --seed '0=f64[3]:1' | FileCheck %s --check-prefix=CUBE
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
