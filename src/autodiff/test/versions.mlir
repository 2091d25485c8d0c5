// RUN: costate-opt %s --differentiate-reverse | FileCheck %s

// RULE: initial-state
// Read, then overwritten: the gradient reads what was there before.
// CHECK-LABEL: @square.grad
// CHECK-SAME: [[V:%arg2]]: {{.*}}costate.part = 0 : i64, costate.version_of = 0
// CHECK-NOT: costate.copy
// CHECK: costate.load [[V]]
// CHECK: tape.pivot
// CHECK-LABEL: @square.record
// CHECK-SAME: [[X:%.*]]: !costate.array<f64, 1>, [[V:%.*]]: !costate.array
// CHECK-NEXT: costate.copy [[X]] to [[V]]
// CHECK: costate.store {{.*}}, [[X]]
costate.kernel @square(%x: !costate.array<f64, 1>) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%n) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %w = arith.mulf %v, %v : f64
    costate.store %w, %x[%i] : !costate.array<f64, 1>
  }
}

// RULE: initial-state
// Overwritten and read again in a loop: the forward sweep stores, on a copy.
// What is loaded there is saved, not loaded again.
// CHECK-LABEL: @cube.grad
// CHECK-SAME: [[V:%arg2]]: {{.*}}version_of = 0 : i64}, [[S:%arg3]]: {{.*}}scratch_of = 0
// CHECK: costate.copy [[V]] to [[S]]
// CHECK-NEXT: costate.range
// CHECK: [[L:%.*]] = costate.load [[S]]
// CHECK: costate.store {{.*}}, [[S]]
// CHECK: tape.push record(0) [[L]] : f64
// CHECK: tape.pivot
// CHECK-NOT: costate.load [[S]]
// CHECK-LABEL: @cube.record
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

// RULE: parts
// A version before each range.
// CHECK-LABEL: @two.grad
// CHECK-SAME: [[A:%arg2]]: {{.*}}part = 2 : i64, costate.version_of = 0 : i64}, [[B:%arg3]]: {{.*}}part = 0 : i64, costate.version_of = 0 : i64}
// CHECK: costate.range
// CHECK: costate.load [[A]]
// CHECK: costate.range
// CHECK: costate.load [[B]]
// CHECK-LABEL: @two.record
// CHECK: costate.copy
// CHECK: costate.range
// CHECK: costate.copy
// CHECK-NEXT: costate.range
costate.kernel @two(%x: !costate.array<f64, 1>) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%n) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %w = arith.mulf %v, %v : f64
    costate.store %w, %x[%i] : !costate.array<f64, 1>
  }
  costate.range (%i) in (%n) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %w = costate.sin %v : f64
    costate.store %w, %x[%i] : !costate.array<f64, 1>
  }
}

// RULE: parts
// Serial code: several stores to one element; the serial run before the range
// has its own version.
// CHECK-LABEL: @serial.grad
// CHECK: costate.copy
// CHECK: scf.for
// CHECK: costate.store {{.*}}costate.replayed = 0
// CHECK: tape.pivot
// CHECK: costate.range
// CHECK-LABEL: @serial.record
costate.kernel @serial(%x: !costate.array<f64, 1>, %s: !costate.array<f64, 0>) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %m = arith.subi %n, %c1 : i64
  scf.for %k = %c0 to %m step %c1 : i64 {
    %j = arith.addi %k, %c1 : i64
    %v = costate.load %x[%k] : !costate.array<f64, 1>
    %u = costate.load %x[%j] : !costate.array<f64, 1>
    %w = arith.mulf %v, %u : f64
    costate.store %w, %x[%j] : !costate.array<f64, 1>
    costate.store %u, %x[%k] : !costate.array<f64, 1>
  }
  costate.range (%i) in (%n) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %w = costate.sin %v : f64
    costate.atomic_add %w, %s[] : !costate.array<f64, 0>
  }
}

// What the work item has stored is known without memory.
// CHECK-LABEL: @forwarded.grad
// CHECK-SAME: adjoint_of = 1 : i64})
// CHECK-NOT: version_of
// CHECK-LABEL: @reloaded.grad
costate.kernel @forwarded(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  %zero = arith.constant 0.0 : f64
  costate.range (%i) in (%n) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %w = costate.sin %v : f64
    costate.store %w, %y[%i] : !costate.array<f64, 1>
    %u = costate.load %y[%i] : !costate.array<f64, 1>
    %p = arith.mulf %u, %u : f64
    costate.store %p, %y[%i] : !costate.array<f64, 1>
  }
}

// Here memory has what forwarding would compute from an overwritten value.
// CHECK-SAME: adjoint_of = 1 : i64})
// CHECK-NOT: version_of
costate.kernel @reloaded(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  %half = arith.constant 0.5 : f64
  costate.range (%i) in (%n) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %w = arith.mulf %v, %half : f64
    costate.store %w, %y[%i] : !costate.array<f64, 1>
    %u = costate.load %y[%i] : !costate.array<f64, 1>
    %p = arith.mulf %u, %u : f64
    costate.store %p, %x[%i] : !costate.array<f64, 1>
  }
}

// RULE: ranges
// A loop around ranges is a part with one version before it.
// CHECK-LABEL: costate.kernel @driven.grad(
// CHECK-SAME: %[[X:[^:]*]]: !costate.array<f64, 1>
// CHECK-SAME: %[[U:[^:]*]]: !costate.array<f64, 2>
// CHECK-SAME: %[[OLD:[^:]*]]: !costate.array<f64, 1> {costate.part = 0 : i64, costate.version_of = 0 : i64}
// CHECK: scf.for
// CHECK: costate.range
// CHECK: costate.load %[[OLD]]
costate.kernel @driven(%x: !costate.array<f64, 1>, %u: !costate.array<f64, 2>) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %f = arith.constant 0.0 : f64
  scf.for %t = %zero to %n step %one : i64 {
    %s = arith.addi %t, %one : i64
    costate.range (%i) in (%n) {
      %a = costate.load %x[%i] : !costate.array<f64, 1>
      %v = costate.load %u[%t, %i] : !costate.array<f64, 2>
      %w = arith.mulf %v, %a : f64
      costate.store %w, %u[%s, %i] : !costate.array<f64, 2>
    }
  }
  costate.range (%i) in (%n) {
    costate.store %f, %x[%i] : !costate.array<f64, 1>
  }
}
