// RUN: costate-opt %s --inline-calls --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-NOT: func.func
func.func private @square(%x: f64) -> f64 {
  %y = arith.mulf %x, %x : f64
  return %y : f64
}
func.func private @both(%a: !costate.array<f64, 1>, %x: f64, %i: i64) -> (f64, f64) {
  %v = costate.load %a[%i] : !costate.array<f64, 1>
  %s = func.call @square(%v) : (f64) -> f64
  return %s, %x : f64, f64
}

// CHECK-LABEL: costate.kernel @calls
// CHECK-SAME: (%[[X:[a-z0-9]*]]: !costate.array
// CHECK: costate.range (%[[I:.*]]) in
// CHECK: %[[U:.*]] = costate.load %[[X]][%[[I]]]
// CHECK: %[[V:.*]] = costate.load %[[X]][%[[I]]]
// CHECK: %[[S:.*]] = arith.mulf %[[V]], %[[V]]
// CHECK: arith.addf %[[S]], %[[U]]
costate.kernel @calls(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%n) {
    %u = costate.load %x[%i] : !costate.array<f64, 1>
    %s, %t = func.call @both(%x, %u, %i) : (!costate.array<f64, 1>, f64, i64) -> (f64, f64)
    %w = arith.addf %s, %t : f64
    costate.store %w, %y[%i] : !costate.array<f64, 1>
  }
}

// -----

// expected-error @+1 {{function `loops` calls itself; write a loop}}
func.func private @loops(%x: f64) -> f64 {
  %y = func.call @loops(%x) : (f64) -> f64
  return %y : f64
}

// -----

// expected-error @+1 {{a function has one block}}
func.func private @outside(%x: f64) -> f64

// -----

// expected-error @+1 {{a function takes arrays and scalars and returns scalars}}
func.func private @narrow(%x: i8) -> i8 {
  return %x : i8
}

// -----

func.func private @runs(%n: i64) -> i64 {
  // expected-error @+1 {{stands in a function, but is a part of a kernel}}
  costate.range (%i) in (%n) {
  }
  return %n : i64
}
