// RUN: costate-opt %s --split-serial --outline-device --split-input-file | FileCheck %s

// What decides the iterations is loaded, and nothing else; what is pushed is
// only counted. Neither the sine nor the other array is there.
// CHECK:       costate.counted_from = array<i64: 1>
// CHECK-SAME:  costate.counts_written = false
// CHECK:       costate.device_function "loads.device0" {block_dim = 0 : i64, budget_word = -1 : i64, iteration_rows
// CHECK-SAME:  measure = "loads.measure0", need_word = -1 : i64, {{.*}}pushes
// CHECK-LABEL: llvm.func internal @loads.measure0.body
// CHECK:         %[[N:.*]] = costate.load
// CHECK-NOT:     costate.load
// CHECK-NOT:     costate.sin
// CHECK:         scf.for %{{.*}} = %{{.*}} to %[[N]]
// CHECK:           %[[ZERO:.*]] = arith.constant 0.0
// CHECK:           tape.push record(0) %[[ZERO]]
// CHECK-NOT:     tape.pop
// CHECK:       llvm.func @loads.device0
costate.kernel @loads(%x: !costate.array<f64, 1>, %k: !costate.array<i64, 0>, %y: !costate.array<f64, 1>) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %s = arith.constant 0.5 : f64
  %n = costate.load %k[] : !costate.array<i64, 0>
  %last = scf.for %j = %zero to %n step %one iter_args(%v = %s) -> (f64) : i64 {
    %w = costate.load %x[%j] : !costate.array<f64, 1>
    %f = costate.sin %v : f64
    %next = arith.addf %f, %w : f64
    tape.push record(0) %v : f64
    scf.yield %next : f64
  }
  tape.pivot
  costate.store %last, %y[%zero] : !costate.array<f64, 1>
  scf.for %j = %zero to %n step %one : i64 {
    %v = tape.pop record(0) : f64
    costate.store %v, %y[%j] : !costate.array<f64, 1>
  }
}

// -----

// A branch decides: the value that it looks at goes from iteration to iteration.
// CHECK-LABEL: llvm.func internal @carried.measure0.body
// CHECK:         scf.for {{.*}} iter_args(%[[V:.*]] = %{{.*}}, %{{.*}} = %{{.*}})
// CHECK:           %[[POSITIVE:.*]] = arith.cmpf ogt, %[[V]]
// CHECK:           scf.if %[[POSITIVE]]
// CHECK-NEXT:        %[[ZERO:.*]] = arith.constant 0.0
// CHECK-NEXT:        tape.push record(0) %[[ZERO]]
// CHECK:           %[[NEXT:.*]] = costate.sin %[[V]]
// CHECK-NOT:       costate.cos
// CHECK:           %[[NONE:.*]] = arith.constant 0.0
// CHECK:           scf.yield %[[NEXT]], %[[NONE]]
// CHECK:       llvm.func @carried.device0
costate.kernel @carried(%p: f64, %n: i64, %y: !costate.array<f64, 1>) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %limit = arith.constant 0.0 : f64
  %last:2 = scf.for %j = %zero to %n step %one iter_args(%v = %p, %u = %p) -> (f64, f64) : i64 {
    %more = arith.cmpf ogt, %v, %limit : f64
    scf.if %more {
      tape.push record(0) %u : f64
    }
    %next = costate.sin %v : f64
    %other = costate.cos %u : f64
    tape.push record(1) %more : i1
    scf.yield %next, %other : f64, f64
  }
  tape.pivot
  costate.store %last#1, %y[%zero] : !costate.array<f64, 1>
  scf.for %j = %zero to %n step %one : i64 {
    %more = tape.pop record(1) : i1
    scf.if %more {
      %u = tape.pop record(0) : f64
      costate.store %u, %y[%j] : !costate.array<f64, 1>
    }
  }
}

// -----

// Only what the iterations follow from runs first: the first range adds up what
// nobody needs for that, the second one what serial code makes a number of.
// CHECK:       costate.device_function "chain.device0" {
// CHECK-NOT:   counts
// CHECK:       costate.device_function "chain.device1" {{.*}} counts
// CHECK:       costate.device_function "chain.device2" {{.*}} counts{{.*}}measure = "chain.measure2"
// CHECK-NOT:   pushes
// CHECK:       costate.device_function "chain.device3" {{.*}}measure = "chain.measure3"{{.*}} pushes
costate.kernel @chain(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  %a = costate.range (%i) in (%n) -> f64 {
    %v = costate.load %y[%i] : !costate.array<f64, 1>
    costate.yield %v : f64
  }
  %b = costate.range (%i) in (%n) -> f64 {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    costate.yield %v : f64
  }
  %m = costate.to_int %b : f64 to i64
  %c = arith.addf %a, %b : f64
  tape.pivot
  costate.range (%i) in (%n) {
    scf.for %j = %zero to %m step %one : i64 {
      tape.push record(0) %c : f64
    }
    tape.pivot
    scf.for %j = %zero to %m step %one : i64 {
      %v = tape.pop record(0) : f64
      costate.store %v, %y[%i] : !costate.array<f64, 1>
    }
  }
}

// -----

// Scratch arrays are filled and overwritten only where that decides.
// CHECK:       costate.counted_from = array<i64: 2, 1>
// CHECK-SAME:  costate.counts_written = true
// CHECK:       costate.device_function "overwritten.device0" {{.*}} counts, dry_run
// CHECK-LABEL: llvm.func internal @overwritten.measure0.body
// CHECK:         costate.store {{.*}}costate.replayed = 1
// CHECK-NOT:     costate.replayed = 0
// CHECK:       llvm.func @overwritten.device0
costate.kernel @overwritten(%x: !costate.array<f64, 1>, %k: !costate.array<i64, 1>, %s: !costate.array<i64, 1> {costate.scratch_of = 1 : i64}, %y: !costate.array<f64, 1> {costate.scratch_of = 0 : i64}) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  costate.copy %k to %s : !costate.array<i64, 1>
  tape.pivot
  costate.range (%i) in (%n) {
    scf.for %o = %zero to %n step %one : i64 {
      %m = costate.load %s[%i] {costate.replayed = 1 : i64} : !costate.array<i64, 1>
      scf.for %j = %zero to %m step %one : i64 {
        %v = costate.load %y[%i] {costate.replayed = 0 : i64} : !costate.array<f64, 1>
        tape.push record(0) %v : f64
        costate.store %v, %y[%i] {costate.replayed = 0 : i64} : !costate.array<f64, 1>
      }
      %more = arith.addi %m, %one : i64
      costate.store %more, %s[%i] {costate.replayed = 1 : i64} : !costate.array<i64, 1>
      tape.push record(1) %m : i64
    }
    tape.pivot
    scf.for %o = %zero to %n step %one : i64 {
      %m = tape.pop record(1) : i64
      scf.for %j = %zero to %m step %one : i64 {
        %v = tape.pop record(0) : f64
        costate.store %v, %x[%i] : !costate.array<f64, 1>
      }
    }
  }
}
