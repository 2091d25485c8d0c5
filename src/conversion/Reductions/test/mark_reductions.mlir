// RUN: costate-opt %s --mark-reductions | FileCheck %s

// All work items add to one element: a sum of the range. A constant index counts
// as the same wherever it is written down.
// CHECK-LABEL: costate.kernel @sums
// CHECK:         costate.atomic_add %{{.*}}, %arg1[] {costate.reduction = 0 : i64}
// CHECK:         costate.atomic_add %{{.*}}, %arg2[%{{.*}}] {costate.reduction = 1 : i64}
// CHECK:         costate.atomic_add %{{.*}}, %arg2[%{{.*}}] {costate.reduction = 1 : i64}
// CHECK:         costate.atomic_add %{{.*}}, %arg2[%arg3] {costate.reduction = 2 : i64}
costate.kernel @sums(%x: !costate.array<f64, 1>, %a: !costate.array<f32, 0>, %b: !costate.array<f64, 1>, %j: i64) {
  %e = costate.extent %x[0] : !costate.array<f64, 1>
  %limit = arith.constant 0.0 : f64
  costate.range (%i) in (%e) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %f = arith.truncf %v : f64 to f32
    costate.atomic_add %f, %a[] : !costate.array<f32, 0>
    %c = arith.cmpf ogt, %v, %limit : f64
    scf.if %c {
      %one = arith.constant 1 : i64
      costate.atomic_add %v, %b[%one] : !costate.array<f64, 1>
    }
    %one = arith.constant 1 : i64
    costate.atomic_add %v, %b[%one] : !costate.array<f64, 1>
    costate.atomic_add %v, %b[%j] : !costate.array<f64, 1>
  }
}

// Whoever reads the element in the range sees what has been added so far.
// CHECK-LABEL: costate.kernel @no_sums
// CHECK-NOT:     costate.reduction
// CHECK:         costate.atomic_add %{{.*}}, %arg1[] {costate.common}
// CHECK-NOT:     costate.reduction
// CHECK:         costate.return
costate.kernel @no_sums(%x: !costate.array<f64, 1>, %a: !costate.array<f64, 0>, %n: !costate.array<i64, 0>, %r: !costate.array<f64, 0>) {
  %e = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%e) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    costate.atomic_add %v, %a[] : !costate.array<f64, 0>
    %w = costate.load %a[] : !costate.array<f64, 0>
    costate.atomic_add %i, %n[] : !costate.array<i64, 0>
    costate.atomic_add exclusive %w, %x[%i] : !costate.array<f64, 1>
    costate.atomic_add %v, %r[] {costate.replayed = 0 : i64} : !costate.array<f64, 0>
  }
}

// Forward sweeps may run more than once.
// CHECK-LABEL: costate.kernel @sweeps
// CHECK:         costate.atomic_add %{{.*}}, %arg1[] {costate.common}
// CHECK:         tape.pivot
// CHECK:         costate.atomic_add %{{.*}}, %arg2[] {costate.reduction = 0 : i64}
costate.kernel @sweeps(%x: !costate.array<f64, 1>, %a: !costate.array<f64, 0>, %b: !costate.array<f64, 0>) {
  %e = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%e) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    costate.atomic_add %v, %a[] : !costate.array<f64, 0>
    tape.pivot
    costate.atomic_add %v, %b[] : !costate.array<f64, 0>
  }
}

// What a loop counts is the same for lanes that are there together; what comes
// from the index of the range is not. Blocks may keep the sums until they end.
// CHECK-LABEL: costate.kernel @common
// CHECK:         costate.atomic_add %{{.*}}, %arg1[%{{.*}}] {costate.common, costate.in_block}
// CHECK:         costate.atomic_add %{{.*}}, %arg1[%{{.*}}] :
// CHECK:         costate.atomic_add %{{.*}}, %arg1[%{{.*}}] :
costate.kernel @common(%x: !costate.array<f64, 1>, %a: !costate.array<f64, 1>, %p: !costate.array<i64, 1>, %n: i64) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %e = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%e) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %q = costate.load %p[%i] : !costate.array<i64, 1>
    scf.for %k = %zero to %n step %one : i64 {
      %o = costate.load %p[%k] : !costate.array<i64, 1>
      costate.atomic_add %v, %a[%o] : !costate.array<f64, 1>
      %m = arith.addi %k, %i : i64
      costate.atomic_add %v, %a[%m] : !costate.array<f64, 1>
      costate.atomic_add %v, %a[%q] : !costate.array<f64, 1>
    }
  }
}

// Updates of integers whose order does not matter, of one kind in the range.
// CHECK-LABEL: costate.kernel @accumulators
// CHECK:         costate.atomic_add %{{.*}}, %arg1[%{{.*}}] {costate.accumulator = 0 : i64, costate.common}
// CHECK:         costate.atomic_add %{{.*}}, %arg1[%{{.*}}] {costate.accumulator = 0 : i64, costate.common}
// CHECK:         costate.atomic_max %{{.*}}, %arg2[] {costate.accumulator = 1 : i64}
// CHECK:         costate.atomic_fetch "or" %{{.*}}, %arg3[] {costate.accumulator = 2 : i64}
costate.kernel @accumulators(%x: !costate.array<i32, 1>, %a: !costate.array<i32, 1>, %m: !costate.array<ui8, 0>, %o: !costate.array<i32, 0>) {
  %e = costate.extent %x[0] : !costate.array<i32, 1>
  costate.range (%i) in (%e) {
    %v = costate.load %x[%i] : !costate.array<i32, 1>
    %zero = arith.constant 0 : i64
    scf.for %k = %zero to %i step %e : i64 {
      costate.atomic_add %v, %a[%zero] : !costate.array<i32, 1>
    }
    costate.atomic_add %v, %a[%zero] : !costate.array<i32, 1>
    costate.atomic_add %v, %a[%i] : !costate.array<i32, 1>
    costate.atomic_max %v, %m[] : !costate.array<ui8, 0>
    %old = costate.atomic_fetch "or" %v, %o[] : !costate.array<i32, 0>
  }
}

// The order, what an element was, or what it is, matters.
// CHECK-LABEL: costate.kernel @no_accumulators
// CHECK-NOT:     costate.accumulator
// CHECK:         costate.return
costate.kernel @no_accumulators(%x: !costate.array<i32, 1>, %a: !costate.array<i32, 0>, %b: !costate.array<i32, 0>, %c: !costate.array<i32, 0>, %d: !costate.array<i32, 0>) {
  %e = costate.extent %x[0] : !costate.array<i32, 1>
  costate.range (%i) in (%e) {
    %v = costate.load %x[%i] : !costate.array<i32, 1>
    costate.atomic_add %v, %a[] : !costate.array<i32, 0>
    costate.atomic_max %v, %a[] : !costate.array<i32, 0>
    %old = costate.atomic_fetch "xor" %v, %b[] : !costate.array<i32, 0>
    costate.store %old, %x[%i] : !costate.array<i32, 1>
    costate.atomic_min %v, %c[] : !costate.array<i32, 0>
    %now = costate.load %c[] : !costate.array<i32, 0>
    %none = costate.atomic_fetch "exchange" %now, %d[] : !costate.array<i32, 0>
  }
}

// The rest: adjoints that are 0 are not added by GPUs.
// CHECK-LABEL: costate.kernel @others
// CHECK:         costate.atomic_add %{{.*}}, %arg2[%{{.*}}] {costate.skips_zeros}
// CHECK:         costate.atomic_add %{{.*}}, %arg0[%{{.*}}] : !costate.array<f64, 1>
costate.kernel @others(%x: !costate.array<f64, 1>, %at: !costate.array<i64, 1>, %g: !costate.array<f64, 1> {costate.adjoint_of = 0 : i64}) {
  %e = costate.extent %at[0] : !costate.array<i64, 1>
  costate.range (%i) in (%e) {
    %j = costate.load %at[%i] : !costate.array<i64, 1>
    %v = arith.sitofp %j : i64 to f64
    costate.atomic_add %v, %g[%j] : !costate.array<f64, 1>
    costate.atomic_add %v, %x[%j] : !costate.array<f64, 1>
  }
}
