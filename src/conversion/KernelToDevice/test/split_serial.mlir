// RUN: costate-opt %s --split-serial | FileCheck %s

// Extents and integers stay with the host; what touches memory or computes with
// floats goes to the device, up to the range and after it.
// CHECK-LABEL: costate.kernel @around
// CHECK:         %[[N:.*]] = costate.extent %{{.*}}[0]
// CHECK:         %[[M:.*]] = arith.addi %[[N]]
// CHECK:         %[[S:.*]] = costate.serial -> f64 {
// CHECK:           costate.load
// CHECK:           costate.sin
// CHECK:           costate.yield
// CHECK:         costate.range (%{{.*}}) in (%[[M]])
// CHECK:           arith.mulf %{{.*}}, %[[S]]
// CHECK:         costate.serial {
// CHECK:           costate.store
costate.kernel @around(%x: !costate.array<f64, 1>) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  %v = costate.load %x[%zero] : !costate.array<f64, 1>
  %m = arith.addi %n, %one : i64
  %s = costate.sin %v : f64
  costate.range (%i) in (%m) {
    %w = costate.load %x[%i] : !costate.array<f64, 1>
    %p = arith.mulf %w, %s : f64
    costate.atomic_add %p, %x[%i] : !costate.array<f64, 1>
  }
  costate.store %s, %x[%one] : !costate.array<f64, 1>
}

// The host runs control flow around ranges; its condition comes from the device.
// CHECK-LABEL: costate.kernel @loop
// CHECK:         scf.while
// CHECK:           %[[C:.*]] = costate.serial -> i1
// CHECK:           scf.condition(%[[C]])
// CHECK:           costate.range
costate.kernel @loop(%x: !costate.array<f64, 1>) {
  %zero = arith.constant 0 : i64
  %limit = arith.constant 1.0 : f64
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  scf.while : () -> () {
    %v = costate.load %x[%zero] : !costate.array<f64, 1>
    %c = arith.cmpf ogt, %v, %limit : f64
    scf.condition(%c)
  } do {
    costate.range (%i) in (%n) {
      %w = costate.load %x[%i] : !costate.array<f64, 1>
      %p = arith.mulf %w, %w : f64
      costate.store %p, %x[%i] : !costate.array<f64, 1>
    }
    scf.yield
  }
}

// What belongs to the reverse sweep says so.
// CHECK-LABEL: costate.kernel @pivots
// CHECK:         costate.serial {
// CHECK:           tape.push
// CHECK-NOT:     tape.pivot
// CHECK:         costate.range {{.*}}costate.after_pivot
// CHECK:         costate.serial after_pivot
// CHECK:           tape.pop
costate.kernel @pivots(%x: !costate.array<f64, 0>, %g: !costate.array<f64, 0>, %y: !costate.array<f64, 1>) {
  %n = costate.extent %y[0] : !costate.array<f64, 1>
  %v = costate.load %x[] : !costate.array<f64, 0>
  tape.push record(0) %v : f64
  tape.pivot
  costate.range (%i) in (%n) {
    %a = costate.load %x[] : !costate.array<f64, 0>
    costate.store %a, %y[%i] : !costate.array<f64, 1>
  }
  %w = tape.pop record(0) : f64
  costate.store %w, %g[] : !costate.array<f64, 0>
}

// What decides how often a loop of a range goes around comes before the reverse
// sweep if nothing there decides it; nothing else does.
// CHECK-LABEL: costate.kernel @bound
// CHECK:         %[[M:.*]]:2 = costate.serial -> f64, i64 {
// CHECK:           costate.sin
// CHECK:           scf.if
// CHECK:         %[[W:.*]] = costate.serial after_pivot -> f64 {
// CHECK:           tape.pop
// CHECK:           costate.cos
// CHECK:           arith.mulf
// CHECK:         costate.range
// CHECK-NOT:     measured_in_place
// CHECK:           scf.for {{.*}} to %[[M]]#1
// CHECK:           arith.mulf %{{.*}}, %[[W]]
costate.kernel @bound(%p: f64, %x: !costate.array<f64, 1>) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %limit = arith.constant 0.0 : f64
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  %s = costate.sin %p : f64
  tape.push record(0) %s : f64
  tape.pivot
  %t = tape.pop record(0) : f64
  %more = arith.cmpf ogt, %s, %limit : f64
  %m = scf.if %more -> i64 {
    scf.yield %one : i64
  } else {
    scf.yield %zero : i64
  }
  %c = costate.cos %s : f64
  %w = arith.mulf %t, %c : f64
  costate.range (%i) in (%n) {
    scf.for %j = %zero to %m step %one : i64 {
      %v = costate.load %x[%i] : !costate.array<f64, 1>
      tape.push record(1) %v : f64
    }
    tape.pivot
    scf.for %j = %zero to %m step %one : i64 {
      %v = tape.pop record(1) : f64
      %g = arith.mulf %v, %w : f64
      costate.store %g, %x[%i] : !costate.array<f64, 1>
    }
  }
}

// Who needs what the reverse sweep loads, adds up, or decides in a branch around
// ranges, is measured there.
// CHECK-LABEL: costate.kernel @late
// CHECK:         costate.serial after_pivot -> i64 {
// CHECK:           costate.load
// CHECK:           scf.if
// CHECK:         costate.range {{.*}}costate.after_pivot, costate.measured_in_place
// CHECK:         costate.range {{.*}} -> f64
// CHECK-NOT:     measured_in_place
// CHECK:         costate.range {{.*}}costate.after_pivot, costate.measured_in_place
// CHECK:         scf.if
// CHECK:         costate.range {{.*}}costate.after_pivot, costate.measured_in_place
costate.kernel @late(%x: !costate.array<f64, 1>, %k: !costate.array<i64, 0>) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %none = arith.constant 0.0 : f64
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  %more = arith.cmpi sgt, %n, %one : i64
  tape.pivot
  %iterations = costate.load %k[] : !costate.array<i64, 0>
  %loaded = scf.if %more -> i64 {
    scf.yield %iterations : i64
  } else {
    scf.yield %zero : i64
  }
  costate.range (%i) in (%n) {
    scf.for %j = %zero to %loaded step %one : i64 {
      %v = costate.load %x[%i] : !costate.array<f64, 1>
      tape.push record(0) %v : f64
    }
    tape.pivot
    scf.for %j = %zero to %loaded step %one : i64 {
      %v = tape.pop record(0) : f64
      costate.store %v, %x[%i] : !costate.array<f64, 1>
    }
  }
  %sum = costate.range (%i) in (%n) -> f64 {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    costate.yield %v : f64
  }
  %positive = arith.cmpf ogt, %sum, %none : f64
  %added = arith.select %positive, %zero, %one : i64
  costate.range (%i) in (%n) {
    scf.for %j = %zero to %added step %one : i64 {
      %v = costate.load %x[%i] : !costate.array<f64, 1>
      tape.push record(1) %v : f64
    }
    tape.pivot
    scf.for %j = %zero to %added step %one : i64 {
      %v = tape.pop record(1) : f64
      costate.store %v, %x[%i] : !costate.array<f64, 1>
    }
  }
  %decided = scf.if %more -> i64 {
    costate.range (%i) in (%n) {
      costate.store %none, %x[%i] : !costate.array<f64, 1>
    }
    scf.yield %one : i64
  } else {
    scf.yield %zero : i64
  }
  costate.range (%i) in (%n) {
    scf.for %j = %zero to %decided step %one : i64 {
      %v = costate.load %x[%i] : !costate.array<f64, 1>
      tape.push record(2) %v : f64
    }
    tape.pivot
    scf.for %j = %zero to %decided step %one : i64 {
      %v = tape.pop record(2) : f64
      costate.store %v, %x[%i] : !costate.array<f64, 1>
    }
  }
}

// Without a tape nothing is measured: the cosine stays where it is.
// CHECK-LABEL: costate.kernel @loss
// CHECK:         costate.serial after_pivot -> f64 {
// CHECK:           costate.cos
// CHECK:         costate.range
costate.kernel @loss(%p: f64, %x: !costate.array<f64, 1>) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  tape.pivot
  %c = costate.cos %p : f64
  costate.range (%i) in (%n) {
    costate.store %c, %x[%i] : !costate.array<f64, 1>
  }
}
