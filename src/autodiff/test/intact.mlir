// RUN: costate-opt %s --differentiate-reverse=check | FileCheck %s
// RUN: costate-opt %s --differentiate-reverse="check fast-math" \
// RUN:   | FileCheck %s --check-prefix=FAST

// Memory is as the gradient needs it if running the launch again finds the bits
// that it holds, and reads no element before it first writes it. Elements that
// are written once are compared where they are, and differ where they are read.
// CHECK-LABEL: costate.kernel @tree.check
// CHECK-SAME:    %[[PARENT:arg1]]: !costate.array<i64, 1>, %[[X:arg2]]: !costate.array<f64, 1>,
// CHECK-SAME:    %[[MARKS:arg3]]: !costate.array<i8, 1> {costate.owners_of = 2 : i64},
// CHECK-SAME:    %[[OTHER:arg4]]: !costate.array<i8, 1> {costate.owners_of = 2 : i64},
// CHECK-SAME:    %[[FOUND:arg5]]: !costate.array<f64, 1> {costate.scratch_of = 2 : i64})
// CHECK-NOT:     costate.copy
// CHECK:         costate.range
// CHECK:           costate.store %{{.*}}, %[[MARKS]][%{{.*}}] {costate.replayed = 0 : i64}
// CHECK:         scf.for
// CHECK:           %[[P:.*]] = costate.load %[[PARENT]]
// CHECK:           %[[MARK:.*]] = costate.load %[[MARKS]][%[[P]]]
// CHECK:           %[[NEW:.*]] = arith.cmpi eq, %[[MARK]]
// CHECK:           arith.select %[[NEW]]
// CHECK:           costate.store %{{.*}}, %[[MARKS]][%[[P]]]
// CHECK:           costate.load %[[OTHER]][%[[P]]]
// CHECK:           scf.if
// CHECK:             costate.load %[[FOUND]][%[[P]]]
// CHECK:             costate.assert refuses %{{.*}}, "memory holds another value here
// CHECK:           %[[V:.*]] = costate.load %[[X]][%[[P]]]
// CHECK:           arith.mulf %[[V]]
// CHECK:           arith.cmpi ne
// CHECK:           costate.assert refuses %{{.*}}, "the kernel reads this element before it writes it: {e}"
// CHECK:           costate.store %{{.*}}, %[[MARKS]]
// CHECK:           costate.load %[[X]]
// CHECK:           costate.store %{{.*}}, %[[OTHER]]
// CHECK:           scf.if
// CHECK:             costate.store %{{.*}}, %[[FOUND]]
// CHECK-NOT:       costate.store
// CHECK:         costate.return
costate.kernel @tree(%q: !costate.array<f64, 1>, %parent: !costate.array<i64, 1>, %x: !costate.array<f64, 1>) {
  %n = costate.extent %q[0] : !costate.array<f64, 1>
  %one = arith.constant 1 : i64
  costate.range (%b) in (%one) {
    scf.for %i = %one to %n step %one : i64 {
      %p = costate.load %parent[%i] : !costate.array<i64, 1>
      %v = costate.load %x[%p] : !costate.array<f64, 1>
      %f = costate.load %q[%i] : !costate.array<f64, 1>
      %w = arith.mulf %v, %f : f64
      costate.store %w, %x[%i] : !costate.array<f64, 1>
    }
  }
}

// What is never overwritten after it is read needs no marks but for what
// differs; what no needed value follows from does not run.
// CHECK-LABEL: costate.kernel @two.check
// CHECK-NOT:     costate.copy
// CHECK:         costate.sin
// CHECK:         costate.load %arg1
// CHECK:         costate.range
// CHECK:         costate.assert refuses
// CHECK-NOT:     costate.store
// CHECK-NOT:     costate.atomic_add
// CHECK:         costate.return
// With `fast_math` floats may be rounded otherwise, and integers are the same.
// FAST-LABEL: costate.kernel @two.check
// FAST:         %[[NEAR:.*]] = arith.cmpf ole
// FAST:         %[[BOTH:.*]] = arith.andi %[[NEAR]], %
// FAST:         %[[EITHER:.*]] = arith.ori %{{.*}}, %[[BOTH]]
// What is left of a sum may be as far from memory as both are rounded.
// FAST:         %[[KNOWN:.*]] = arith.cmpf ole, %[[ERROR:.*]], %
// FAST:         arith.select %[[KNOWN]], %[[ERROR]]
// FAST:         %[[ROUNDED:.*]] = arith.cmpf ole
// FAST:         %[[FINITE:.*]] = arith.andi %[[ROUNDED]], %
// FAST:         %[[ANY:.*]] = arith.ori %[[EITHER]], %[[FINITE]]
// FAST:         arith.select %[[ANY]]
costate.kernel @two(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>, %z: !costate.array<f64, 1>, %s: !costate.array<f64, 0>) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%n) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %w = costate.sin %v : f64
    costate.store %w, %y[%i] : !costate.array<f64, 1>
  }
  costate.range (%i) in (%n) {
    %v = costate.load %y[%i] : !costate.array<f64, 1>
    %w = arith.mulf %v, %v : f64
    costate.store %w, %z[%i] : !costate.array<f64, 1>
    costate.atomic_add %w, %s[] : !costate.array<f64, 0>
  }
}

// What decides which elements are used must have been written by the launch.
// CHECK-LABEL: costate.kernel @steered.check
// CHECK:         costate.assert refuses %{{.*}}, "which elements the kernel uses follows from what it reads here
// CHECK:         scf.if
costate.kernel @steered(%x: !costate.array<f64, 0>) {
  %one = arith.constant 1.0 : f64
  %v = costate.load %x[] : !costate.array<f64, 0>
  %above = arith.cmpf ogt, %v, %one : f64
  scf.if %above {
    %w = arith.mulf %v, %v : f64
    costate.store %w, %x[] : !costate.array<f64, 0>
  }
}

// Elements that are written again are so on a copy. Loads of which nobody knows
// what they find are compared, unless their part has written the element.
// CHECK-LABEL: costate.kernel @powers.check
// CHECK-SAME:    %[[S:arg1]]: !costate.array<f64, 1>,
// CHECK-SAME:    %[[COPY:arg[0-9]]]: !costate.array<f64, 1> {costate.scratch_of = 1 : i64}
// CHECK:         costate.copy %[[S]] to %[[COPY]]
// CHECK:         scf.for
// CHECK:           arith.select
// CHECK:           %[[OWN:.*]] = arith.cmpi eq
// CHECK:           costate.load %[[COPY]]
// CHECK:           costate.load %[[S]]
// CHECK:           arith.ori %{{.*}}, %[[OWN]]
// CHECK:           costate.assert refuses
// CHECK:           costate.store %{{.*}}, %[[COPY]]
// CHECK:         costate.range
// CHECK:           costate.load %[[COPY]]
// CHECK:           costate.load %[[S]]
// CHECK:           costate.assert refuses
costate.kernel @powers(%x: !costate.array<f64, 1>, %s: !costate.array<f64, 1>) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %unit = arith.constant 1.0 : f64
  costate.range (%i) in (%n) {
    costate.store %unit, %s[%i] : !costate.array<f64, 1>
    scf.for %k = %zero to %n step %one : i64 {
      %v = costate.load %s[%i] : !costate.array<f64, 1>
      %f = costate.load %x[%k] : !costate.array<f64, 1>
      %w = arith.mulf %v, %f : f64
      costate.store %w, %s[%i] : !costate.array<f64, 1>
    }
  }
}

// Sums that come in any order may round otherwise.
// CHECK-LABEL: costate.kernel @sums.check
// CHECK:         costate.atomic_add
// CHECK:         math.absf
// CHECK:         costate.atomic_add
// CHECK:         %[[NEAR:.*]] = arith.cmpf ole
// CHECK:         %[[BOTH:.*]] = arith.andi %[[NEAR]], %
// CHECK:         arith.ori %{{.*}}, %[[BOTH]]
// CHECK:         costate.assert refuses %{{.*}}
costate.kernel @sums(%x: !costate.array<f64, 1>, %s: !costate.array<f64, 0>, %y: !costate.array<f64, 1>) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  %zero = arith.constant 0.0 : f64
  costate.store %zero, %s[] : !costate.array<f64, 0>
  costate.range (%i) in (%n) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    costate.atomic_add %v, %s[] : !costate.array<f64, 0>
  }
  costate.range (%i) in (%n) {
    %v = costate.load %s[] : !costate.array<f64, 0>
    %w = costate.sin %v : f64
    costate.store %w, %y[%i] : !costate.array<f64, 1>
  }
}

// Who needs what the part leaves of a minimum gets no check.
// CHECK-NOT: @least.check
costate.kernel @least(%x: !costate.array<f64, 1>, %m: !costate.array<f64, 0>) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%n) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    costate.atomic_min %v, %m[] : !costate.array<f64, 0>
  }
}

// Numbers that become integers come to steps: what the kernel may overwrite must
// have the same bits, with `fast_math` too.
// FAST-LABEL: costate.kernel @steps.check
// FAST-NOT:     arith.cmpf
// FAST:         arith.cmpi eq
// FAST-NOT:     arith.cmpf
costate.kernel @steps(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>, %z: !costate.array<f64, 1>, %n: i64) {
  %half = arith.constant 0.5 : f64
  costate.range (%i) in (%n) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    costate.store %v, %y[%i] : !costate.array<f64, 1>
  }
  costate.range (%i) in (%n) {
    %v = costate.load %y[%i] : !costate.array<f64, 1>
    %k = costate.to_int %v : f64 to i64
    %whole = arith.sitofp %k : i64 to f64
    %p = arith.mulf %v, %whole : f64
    costate.store %p, %z[%i] : !costate.array<f64, 1>
  }
  costate.range (%i) in (%n) {
    %v = costate.load %y[%i] : !costate.array<f64, 1>
    %w = arith.mulf %v, %half : f64
    costate.store %w, %y[%i] : !costate.array<f64, 1>
  }
}

// So do those whose bits are read.
// FAST-LABEL: costate.kernel @bits.check
// FAST-NOT:     arith.cmpf
// FAST:         arith.cmpi eq
// FAST-NOT:     arith.cmpf
costate.kernel @bits(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>, %z: !costate.array<f64, 1>, %n: i64) {
  %half = arith.constant 0.5 : f64
  costate.range (%i) in (%n) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    costate.store %v, %y[%i] : !costate.array<f64, 1>
  }
  costate.range (%i) in (%n) {
    %v = costate.load %y[%i] : !costate.array<f64, 1>
    %s = costate.stop_gradient %v : f64
    %k = arith.bitcast %s : f64 to i64
    %whole = arith.sitofp %k : i64 to f64
    %p = arith.mulf %v, %whole : f64
    costate.store %p, %z[%i] : !costate.array<f64, 1>
  }
  costate.range (%i) in (%n) {
    %v = costate.load %y[%i] : !costate.array<f64, 1>
    %w = arith.mulf %v, %half : f64
    costate.store %w, %y[%i] : !costate.array<f64, 1>
  }
}

// So do those that a function with a derivative of its own compares.
// FAST-LABEL: costate.kernel @custom_step.check
// FAST-NOT:     arith.cmpf
// FAST:         arith.cmpi eq
// FAST-NOT:     arith.cmpf {{.*}} : f64{{$}}
costate.kernel @custom_step(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>, %z: !costate.array<f64, 1>, %n: i64) {
  %half = arith.constant 0.5 : f64
  costate.range (%i) in (%n) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    costate.store %v, %y[%i] : !costate.array<f64, 1>
  }
  costate.range (%i) in (%n) {
    %v = costate.load %y[%i] : !costate.array<f64, 1>
    %s = costate.custom(%v) {
    ^bb0(%a: f64):
      %k = costate.to_int %a : f64 to i64
      %whole = arith.sitofp %k : i64 to f64
      costate.yield %whole : f64
    } partials {
    ^bb0(%a: f64, %r: f64):
      costate.yield %a : f64
    } : (f64) -> f64
    %p = arith.mulf %v, %s : f64
    costate.store %p, %z[%i] : !costate.array<f64, 1>
  }
  costate.range (%i) in (%n) {
    %v = costate.load %y[%i] : !costate.array<f64, 1>
    %w = arith.mulf %v, %half : f64
    costate.store %w, %y[%i] : !costate.array<f64, 1>
  }
}

// An angle jumps.
// FAST-LABEL: costate.kernel @angle.check
// FAST-NOT:     arith.cmpf
// FAST:         arith.cmpi eq
// FAST-NOT:     arith.cmpf
costate.kernel @angle(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>, %z: !costate.array<f64, 1>, %n: i64) {
  %half = arith.constant 0.5 : f64
  costate.range (%i) in (%n) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    costate.store %v, %y[%i] : !costate.array<f64, 1>
  }
  costate.range (%i) in (%n) {
    %v = costate.load %y[%i] : !costate.array<f64, 1>
    %a = costate.atan2 %v, %half : f64
    costate.store %a, %z[%i] : !costate.array<f64, 1>
  }
  costate.range (%i) in (%n) {
    %v = costate.load %y[%i] : !costate.array<f64, 1>
    %w = arith.mulf %v, %half : f64
    costate.store %w, %y[%i] : !costate.array<f64, 1>
  }
}
