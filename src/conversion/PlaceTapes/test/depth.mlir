// RUN: costate-opt %s --place-tapes --canonicalize --cse | FileCheck %s

// Work items may be sorted by iterations that an array says, and by what conditions
// around the loop say; behind this one is all that they do.
// CHECK-LABEL: costate.kernel @gated
// CHECK:         costate.range (%[[I:.*]]) in
// CHECK-NEXT:      %[[V:.*]] = costate.load %{{.*}}[%[[I]]] : !costate.array<f32, 1>
// CHECK-NEXT:      %[[C:.*]] = arith.cmpf ogt, %[[V]]
// CHECK-NEXT:      %[[D:.*]] = scf.if %[[C]] -> (i64) {
// CHECK-NEXT:        %[[N:.*]] = costate.load %{{.*}}[%[[I]]] : !costate.array<i64, 1>
// CHECK-NEXT:        scf.yield %[[N]]
// CHECK-NEXT:      } else {
// CHECK-NEXT:        scf.yield %{{.*}}
// CHECK-NEXT:      }
// CHECK-NEXT:      %[[T:.*]] = arith.maxsi %[[D]], %{{.*}}
// CHECK-NEXT:      %[[P:.*]] = arith.select %[[C]], %[[T]], %c-1_i64
// CHECK-NEXT:      tape.depth %[[P]] cost({{[0-9]+}}, 600, 0)
// CHECK:           tape.active
costate.kernel @gated(%x: !costate.array<f32, 1>, %n: !costate.array<i64, 1>, %g: !costate.array<f32, 1>) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %f0 = arith.constant 0.0 : f32
  %f1 = arith.constant 1.0 : f32
  %e = costate.extent %x[0] : !costate.array<f32, 1>
  costate.range (%i) in (%e) {
    %v = costate.load %x[%i] : !costate.array<f32, 1>
    %c = arith.cmpf ogt, %v, %f0 : f32
    scf.if %c {
      %t = costate.load %n[%i] : !costate.array<i64, 1>
      %r = scf.for %k = %zero to %t step %one iter_args(%a = %v) -> (f32) : i64 {
        %q = costate.sin %a : f32
        tape.push record(0) %a : f32
        scf.yield %q : f32
      } {tape.pair = 0 : i64}
      tape.push record(1) %t : i64
    }
    tape.pivot
    scf.if %c {
      %t = tape.pop record(1) : i64
      %s = scf.for %k = %zero to %t step %one iter_args(%h = %f1) -> (f32) : i64 {
        %a = tape.pop record(0) : f32
        %m = costate.strong_mul %h, %a : f32
        scf.yield %m : f32
      } {tape.pair = 0 : i64}
      costate.atomic_add exclusive %s, %g[%i] : !costate.array<f32, 1>
    }
  }
}

// Work items that do not pass have no effect: what is added after the branch is
// zero for them.
// CHECK-LABEL: costate.kernel @sparse
// CHECK:         costate.range (%[[I:.*]]) in
// CHECK-NEXT:      %[[V:.*]] = costate.load %{{.*}}[%[[I]]] : !costate.array<f32, 1>
// CHECK-NEXT:      %[[C:.*]] = arith.cmpf ogt, %[[V]]
// CHECK:           %[[N:.*]] = arith.select %[[C]], %{{.*}}, %c-1_i64
// CHECK-NEXT:      tape.depth %[[N]]
costate.kernel @sparse(%x: !costate.array<f32, 1>, %m: i64, %g: !costate.array<f32, 1>, %h: !costate.array<f32, 1>) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %f0 = arith.constant 0.0 : f32
  %f1 = arith.constant 1.0 : f32
  %e = costate.extent %x[0] : !costate.array<f32, 1>
  costate.range (%i) in (%e) {
    %v = costate.load %x[%i] : !costate.array<f32, 1>
    %c = arith.cmpf ogt, %v, %f0 : f32
    scf.if %c {
      %r = scf.for %k = %zero to %m step %one iter_args(%a = %v) -> (f32) : i64 {
        %q = costate.sin %a : f32
        tape.push record(0) %a : f32
        scf.yield %q : f32
      } {tape.pair = 0 : i64}
    }
    tape.pivot
    %d = scf.if %c -> f32 {
      %s = scf.for %k = %zero to %m step %one iter_args(%b = %f1) -> (f32) : i64 {
        %a = tape.pop record(0) : f32
        %p = costate.strong_mul %b, %a : f32
        scf.yield %p : f32
      } {tape.pair = 0 : i64}
      costate.atomic_add exclusive %s, %g[%i] : !costate.array<f32, 1>
      scf.yield %s : f32
    } else {
      scf.yield %f0 : f32
    }
    costate.atomic_add exclusive %d, %h[%i] : !costate.array<f32, 1>
  }
}

// Something is added in any case.
// CHECK-LABEL: costate.kernel @dense
// CHECK:         tape.depth
// CHECK-NOT:     c-1_i64
// CHECK:         tape.report
costate.kernel @dense(%x: !costate.array<f32, 1>, %m: i64, %g: !costate.array<f32, 1>, %h: !costate.array<f32, 1>) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %f0 = arith.constant 0.0 : f32
  %f1 = arith.constant 1.0 : f32
  %e = costate.extent %x[0] : !costate.array<f32, 1>
  costate.range (%i) in (%e) {
    %v = costate.load %x[%i] : !costate.array<f32, 1>
    %c = arith.cmpf ogt, %v, %f0 : f32
    scf.if %c {
      %r = scf.for %k = %zero to %m step %one iter_args(%a = %v) -> (f32) : i64 {
        %q = costate.sin %a : f32
        tape.push record(0) %a : f32
        scf.yield %q : f32
      } {tape.pair = 0 : i64}
    }
    tape.pivot
    %d = scf.if %c -> f32 {
      %s = scf.for %k = %zero to %m step %one iter_args(%b = %f1) -> (f32) : i64 {
        %a = tape.pop record(0) : f32
        %p = costate.strong_mul %b, %a : f32
        scf.yield %p : f32
      } {tape.pair = 0 : i64}
      scf.yield %s : f32
    } else {
      scf.yield %f1 : f32
    }
    costate.atomic_add exclusive %d, %h[%i] : !costate.array<f32, 1>
  }
}

// Nothing is known before the loop runs, or all work items are alike; ranges
// with sums stay in order.
// CHECK-LABEL: costate.kernel @unknown
// CHECK-NOT:     tape.depth
// CHECK-LABEL: costate.kernel @summed
// CHECK:         tape.report
costate.kernel @unknown(%x: !costate.array<f32, 1>, %g: !costate.array<f32, 1>, %m: i64) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %f1 = arith.constant 1.0 : f32
  %e = costate.extent %x[0] : !costate.array<f32, 1>
  costate.range (%i) in (%e) {
    %v = costate.load %x[%i] : !costate.array<f32, 1>
    %u = costate.sin %v : f32
    %t = costate.to_int %u : f32 to i64
    %r = scf.for %k = %zero to %t step %one iter_args(%a = %v) -> (f32) : i64 {
      %q = costate.sin %a : f32
      tape.push record(0) %a : f32
      scf.yield %q : f32
    } {tape.pair = 0 : i64}
    %r2 = scf.for %k = %zero to %m step %one iter_args(%a = %v) -> (f32) : i64 {
      %q = costate.sin %a : f32
      tape.push record(1) %a : f32
      scf.yield %q : f32
    } {tape.pair = 1 : i64}
    tape.pivot
    %s2 = scf.for %k = %zero to %m step %one iter_args(%h = %f1) -> (f32) : i64 {
      %a = tape.pop record(1) : f32
      %p = costate.strong_mul %h, %a : f32
      scf.yield %p : f32
    } {tape.pair = 1 : i64}
    %s = scf.for %k = %zero to %t step %one iter_args(%h = %s2) -> (f32) : i64 {
      %a = tape.pop record(0) : f32
      %p = costate.strong_mul %h, %a : f32
      scf.yield %p : f32
    } {tape.pair = 0 : i64}
    costate.atomic_add exclusive %s, %g[%i] : !costate.array<f32, 1>
  }
}

costate.kernel @summed(%x: !costate.array<f32, 1>, %n: !costate.array<i64, 1>, %g: !costate.array<f32, 1>, %y: !costate.array<f32, 0>) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %f1 = arith.constant 1.0 : f32
  %e = costate.extent %x[0] : !costate.array<f32, 1>
  %sum = costate.range (%i) in (%e) -> f32 {
    %v = costate.load %x[%i] : !costate.array<f32, 1>
    %t = costate.load %n[%i] : !costate.array<i64, 1>
    %r = scf.for %k = %zero to %t step %one iter_args(%a = %v) -> (f32) : i64 {
      %q = costate.sin %a : f32
      tape.push record(0) %a : f32
      scf.yield %q : f32
    } {tape.pair = 0 : i64}
    tape.pivot
    %s = scf.for %k = %zero to %t step %one iter_args(%h = %f1) -> (f32) : i64 {
      %a = tape.pop record(0) : f32
      %m = costate.strong_mul %h, %a : f32
      scf.yield %m : f32
    } {tape.pair = 0 : i64}
    costate.atomic_add exclusive %s, %g[%i] : !costate.array<f32, 1>
    costate.yield %r : f32
  }
  costate.atomic_add %sum, %y[] : !costate.array<f32, 0>
}
