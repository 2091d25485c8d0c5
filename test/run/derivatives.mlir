// The primal and its gradient agree on what a loop of a text means.
// RUN: costate-run %s --kernel counted --arg 'f64[]=1' --arg 'f64[]:0' --arg i64=3 --arg i64=0 --arg i64=-1 --print 1 | FileCheck %s --check-prefix=DOWN
// DOWN: 1: f64[]=8
// RUN: costate-run %s --kernel counted --grad --arg 'f64[]=1' --arg 'f64[]:0' --seed '1=f64[]=1' --arg i64=3 --arg i64=0 --arg i64=-1 --print 0 | FileCheck %s --check-prefix=DOWN-GRAD
// DOWN-GRAD: 0.grad: f64[]=8
// RUN: costate-run %s --kernel counted --jvp --arg 'f64[]=1' --arg 'f64[]:0' --tangent '0=f64[]=1' --arg i64=3 --arg i64=0 --arg i64=-1 --print 1 | FileCheck %s --check-prefix=DOWN-JVP
// DOWN-JVP: 1.dual: f64[]=8
costate.kernel @counted(%x: !costate.array<f64, 0>, %y: !costate.array<f64, 0>, %lo: i64, %hi: i64, %step: i64) {
  %two = arith.constant 2.0 : f64
  %v = costate.load %x[] : !costate.array<f64, 0>
  %r = scf.for %k = %lo to %hi step %step iter_args(%a = %v) -> f64 : i64 {
    %w = arith.mulf %a, %two : f64
    scf.yield %w : f64
  }
  costate.store %r, %y[] : !costate.array<f64, 0>
}

// A condition block that adds to an array runs once more than the body.
// RUN: costate-run %s --kernel adding --arg 'f64[2]=1,2' --arg 'f64[2]:0' --print 1 | FileCheck %s --check-prefix=ADDING
// ADDING: 1: f64[2]=4,8
// RUN: costate-run %s --kernel adding --grad --arg 'f64[2]=1,2' --arg 'f64[2]:0' --seed '1=f64[2]:1' --print 0 | FileCheck %s --check-prefix=ADDING-GRAD
// ADDING-GRAD: 0.grad: f64[2]=4,4
costate.kernel @adding(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %three = arith.constant 3 : i64
  costate.range (%i) in (%n) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %r = scf.while (%a = %zero) : (i64) -> i64 {
      costate.atomic_add %v, %y[%i] : !costate.array<f64, 1>
      %more = arith.cmpi slt, %a, %three : i64
      scf.condition(%more) %a : i64
    } do {
    ^bb0(%a: i64):
      %b = arith.addi %a, %one : i64
      scf.yield %b : i64
    }
  }
}

// 1 / 0.1 is rounded to 10, but 0.1 fits into 1 nine times.
// RUN: costate-run %s --kernel remainder --grad --arg 'f64[4]=1,5.5,-5.5,0.3' --arg 'f64[4]=0.1,2,2,0.1' --arg 'f64[4]:0' --seed '2=f64[4]:1' --print 0 --print 1 | FileCheck %s --check-prefix=REMAINDER
// REMAINDER: 0.grad: f64[4]=1,1,1,1
// REMAINDER: 1.grad: f64[4]=-9,-2,2,-2
costate.kernel @remainder(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>, %r: !costate.array<f64, 1>) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%n) {
    %a = costate.load %x[%i] : !costate.array<f64, 1>
    %b = costate.load %y[%i] : !costate.array<f64, 1>
    %m = arith.remf %a, %b : f64
    costate.store %m, %r[%i] : !costate.array<f64, 1>
  }
}

// The text of a gradient is a kernel like others; the tangent of x*x's gradient.
// RUN: costate-run %s --kernel square --grad --emit ir > %t.square.mlir
// RUN: costate-run %t.square.mlir --arg 'f64[2]=3,4' --arg 'f64[2]:0' --arg 'f64[2]:0' --arg 'f64[2]:1' --print 2 | FileCheck %s --check-prefix=TEXT
// TEXT: 2: f64[2]=6,8
// RUN: costate-run %t.square.mlir --jvp --arg 'f64[2]=3,4' --arg 'f64[2]:0' --arg 'f64[2]:0' --arg 'f64[2]:1' --tangent '0=f64[2]:1' --print 2 | FileCheck %s --check-prefix=SECOND
// SECOND: 2.dual: f64[2]=2,2
costate.kernel @square(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%n) {
    %a = costate.load %x[%i] : !costate.array<f64, 1>
    %b = arith.mulf %a, %a : f64
    costate.store %b, %y[%i] : !costate.array<f64, 1>
  }
}

// Who stores an element is noted beside the argument, not in it.
// RUN: costate-run %s --kernel stores --grad --arg 'f64[2]=1,2' --arg 'i64[2]=1,0' --arg 'f64[2]=7,8' --seed '2=f64[2]=3,5' --print 0 --print 2 | FileCheck %s --check-prefix=OWNERS
// OWNERS: 0.grad: f64[2]=5,3
// OWNERS: 2: f64[2]=7,8
costate.kernel @stores(%x: !costate.array<f64, 1>, %to: !costate.array<i64, 1>, %y: !costate.array<f64, 1>) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%n) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %k = costate.load %to[%i] : !costate.array<i64, 1>
    costate.store %v, %y[%k] : !costate.array<f64, 1>
  }
}
