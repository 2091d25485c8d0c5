// Dynamic loops through the tape, forward and reverse mode alike.
// RUN: costate-run %s --grad --arg 'f64[4]=0.5,1.5,2,3' --arg 'i64[4]=0,1,7,1000' --arg 'f64[4]:0' --seed '2=f64[4]:1' --print 0 | FileCheck %s
// RUN: costate-run %s --grad --threads 3 --debug --arg 'f64[4]=0.5,1.5,2,3' --arg 'i64[4]=0,1,7,1000' --arg 'f64[4]:0' --seed '2=f64[4]:1' --print 0 | FileCheck %s
// CHECK: 0.grad: f64[4]=1,1.10360078910{{[0-9]*}},0.00893331298349{{[0-9]*}},0
// RUN: costate-run %s --jvp --arg 'f64[4]=0.5,1.5,2,3' --arg 'i64[4]=0,1,7,1000' --arg 'f64[4]:0' --tangent '0=f64[4]:1' --print 2 | FileCheck %s --check-prefix=JVP
// JVP: 2.dual: f64[4]=1,1.10360078910{{[0-9]*}},0.00893331298349{{[0-9]*}},0
// RUN: costate-run %s --grad --emit ir | costate-opt --host | FileCheck %s --check-prefix=HOST
// HOST: llvm.call @costate_tape_grow

costate.kernel @power(%x: !costate.array<f64, 1>, %n: !costate.array<i64, 1>, %y: !costate.array<f64, 1>) {
  %e = costate.extent %x[0] : !costate.array<f64, 1>
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  costate.range (%i) in (%e) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %m = costate.load %n[%i] : !costate.array<i64, 1>
    %t = costate.trip_count %c0 to %m by %c1
    %w = scf.for unsigned %k = %c0 to %t step %c1 iter_args(%u = %v) -> f64 : i64 {
      %s = costate.sin %u : f64
      %p = arith.mulf %u, %s : f64
      scf.yield %p : f64
    }
    costate.store %w, %y[%i] : !costate.array<f64, 1>
  }
}
