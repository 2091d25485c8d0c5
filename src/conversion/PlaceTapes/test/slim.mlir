// RUN: costate-opt %s --place-tapes=fast-math --canonicalize --cse | FileCheck %s
// RUN: costate-opt %s --place-tapes --canonicalize --cse | FileCheck %s --check-prefix=EXACT

// The sine of a saved value costs less than a word of the tape where it is one
// instruction of the hardware, and more where it is not.
// CHECK-LABEL: costate.kernel @sine
// CHECK:         tape.write %{{.*}} at %{{.*}} : f32{{$}}
// CHECK:         tape.report
// CHECK-NOT:     tape.read %{{.*}} : f32, f32
// CHECK:         scf.while
// CHECK:           %[[V:.*]] = tape.read %{{.*}} : f32{{$}}
// CHECK:           costate.sin %[[V]] : f32
// EXACT-LABEL: costate.kernel @sine
// EXACT:         tape.write %{{.*}}, %{{.*}} at %{{.*}} : f32, f32
costate.kernel @sine(%x: !costate.array<f32, 1>, %n: !costate.array<i64, 1>, %g: !costate.array<f32, 1>) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %f0 = arith.constant 0.0 : f32
  %f1 = arith.constant 1.0 : f32
  %e = costate.extent %x[0] : !costate.array<f32, 1>
  costate.range (%i) in (%e) {
    %v = costate.load %x[%i] : !costate.array<f32, 1>
    %t = costate.load %n[%i] : !costate.array<i64, 1>
    %r = scf.for %k = %zero to %t step %one iter_args(%a = %v) -> (f32) : i64 {
      %q = costate.sin %a : f32
      tape.push record(0) %a, %q : f32, f32
      %m = arith.mulf %q, %v : f32
      scf.yield %m : f32
    }
    tape.pivot
    %s:2 = scf.for %k = %zero to %t step %one iter_args(%h = %f1, %b = %f0) -> (f32, f32) : i64 {
      %a, %q = tape.pop record(0) : f32, f32
      %p = costate.strong_mul %h, %q : f32
      %u = arith.addf %b, %p : f32
      %w = arith.mulf %h, %a : f32
      scf.yield %w, %u : f32, f32
    }
    costate.atomic_add exclusive %s#1, %g[%i] : !costate.array<f32, 1>
  }
}

// Nor is it saved where the reverse sweep computes the cosine of that value, with
// which it has nearly all instructions in common.
// EXACT-LABEL: costate.kernel @sine_beside_cosine
// EXACT:         tape.write %{{.*}} at %{{.*}} : f32{{$}}
// EXACT:         tape.report
// EXACT-NOT:     tape.read %{{.*}} : f32, f32
// EXACT:         scf.while
// EXACT:           %[[V:.*]] = tape.read %{{.*}} : f32{{$}}
// EXACT:           costate.sin %[[V]] : f32
costate.kernel @sine_beside_cosine(%x: !costate.array<f32, 1>, %n: !costate.array<i64, 1>, %g: !costate.array<f32, 1>) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %f0 = arith.constant 0.0 : f32
  %f1 = arith.constant 1.0 : f32
  %e = costate.extent %x[0] : !costate.array<f32, 1>
  costate.range (%i) in (%e) {
    %v = costate.load %x[%i] : !costate.array<f32, 1>
    %t = costate.load %n[%i] : !costate.array<i64, 1>
    %r = scf.for %k = %zero to %t step %one iter_args(%a = %v) -> (f32) : i64 {
      %q = costate.sin %a : f32
      tape.push record(0) %a, %q : f32, f32
      %m = arith.mulf %q, %v : f32
      scf.yield %m : f32
    }
    tape.pivot
    %s:2 = scf.for %k = %zero to %t step %one iter_args(%h = %f1, %b = %f0) -> (f32, f32) : i64 {
      %a, %q = tape.pop record(0) : f32, f32
      %p = costate.strong_mul %h, %q : f32
      %u = arith.addf %b, %p : f32
      %c = costate.cos %a : f32
      %w = arith.mulf %h, %c : f32
      scf.yield %w, %u : f32, f32
    }
    costate.atomic_add exclusive %s#1, %g[%i] : !costate.array<f32, 1>
  }
}

// How many iterations an inner loop makes follows from the iteration of the outer one,
// which the reverse sweep counts as well.
// CHECK-LABEL: costate.kernel @nest
// CHECK-NOT:     tape.write %{{.*}} : i64
// CHECK:         tape.report
// CHECK-NOT:     tape.read %{{.*}} : i64
// CHECK:         costate.return
costate.kernel @nest(%x: !costate.array<f32, 1>, %n: i64, %g: !costate.array<f32, 1>) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %three = arith.constant 3 : i64
  %f1 = arith.constant 1.0 : f32
  %e = costate.extent %x[0] : !costate.array<f32, 1>
  costate.range (%i) in (%e) {
    %v = costate.load %x[%i] : !costate.array<f32, 1>
    %r = scf.for %k = %zero to %n step %one iter_args(%a = %v) -> (f32) : i64 {
      %t = arith.andi %k, %three : i64
      %c = costate.trip_count %zero to %t by %one
      %b = scf.for %j = %zero to %c step %one iter_args(%d = %a) -> (f32) : i64 {
        %q = costate.sin %d : f32
        tape.push record(0) %d : f32
        scf.yield %q : f32
      }
      %m = arith.mulf %b, %b : f32
      tape.push record(1) %c, %b : i64, f32
      scf.yield %m : f32
    }
    tape.pivot
    %s = scf.for %k = %zero to %n step %one iter_args(%h = %f1) -> (f32) : i64 {
      %c, %b = tape.pop record(1) : i64, f32
      %p = costate.strong_mul %h, %b : f32
      %u = scf.for %j = %zero to %c step %one iter_args(%w = %p) -> (f32) : i64 {
        %d = tape.pop record(0) : f32
        %o = costate.cos %d : f32
        %m = costate.strong_mul %w, %o : f32
        scf.yield %m : f32
      }
      scf.yield %u : f32
    }
    costate.atomic_add exclusive %s, %g[%i] : !costate.array<f32, 1>
  }
}

// What stands outside of the loop is in scope in the reverse sweep.
// CHECK-LABEL: costate.kernel @outside
// CHECK:         %[[V:.*]]:2 = scf.if
// CHECK:           costate.sin
// CHECK:         tape.write %{{.*}} at %{{.*}} : f32{{$}}
// CHECK:         tape.report
// CHECK:         costate.strong_mul %{{.*}}, %[[V]]#1
costate.kernel @outside(%x: !costate.array<f32, 1>, %n: i64, %g: !costate.array<f32, 1>) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %f1 = arith.constant 1.0 : f32
  %e = costate.extent %x[0] : !costate.array<f32, 1>
  costate.range (%i) in (%e) {
    %v = costate.load %x[%i] : !costate.array<f32, 1>
    %o = costate.sin %v : f32
    %r = scf.for %k = %zero to %n step %one iter_args(%a = %v) -> (f32) : i64 {
      %m = arith.mulf %a, %a : f32
      tape.push record(0) %a, %o : f32, f32
      scf.yield %m : f32
    }
    tape.pivot
    %s = scf.for %k = %zero to %n step %one iter_args(%h = %f1) -> (f32) : i64 {
      %a, %q = tape.pop record(0) : f32, f32
      %p = costate.strong_mul %h, %q : f32
      %w = arith.mulf %p, %a : f32
      scf.yield %w : f32
    }
    costate.atomic_add exclusive %s, %g[%i] : !costate.array<f32, 1>
  }
}
