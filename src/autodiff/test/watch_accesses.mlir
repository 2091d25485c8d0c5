// RUN: costate-opt %s --watch-accesses | FileCheck %s

// Indices that come from memory may meet. An array that is only read, or only
// updated, needs no watch; nor does one of which work items have elements of
// their own.
// CHECK-LABEL: costate.kernel @scatter
// CHECK:         costate.load %arg0[%{{.*}}] : !costate.array<i64, 1>
// CHECK:         costate.load %arg1[%{{.*}}] : !costate.array<f64, 1>
// CHECK:         costate.store %{{.*}}, %arg2[%{{.*}}] {costate.watched = "store"}
// CHECK:         costate.load %arg2[%{{.*}}] {costate.watched = "load"}
// CHECK:         costate.store %{{.*}}, %arg3[%{{.*}}] : !costate.array<f64, 1>
// CHECK:         costate.atomic_add %{{.*}}, %arg4[] : !costate.array<f64, 0>
costate.kernel @scatter(%at: !costate.array<i64, 1>, %x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>,
                        %z: !costate.array<f64, 1>, %s: !costate.array<f64, 0>) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%n) {
    %j = costate.load %at[%i] : !costate.array<i64, 1>
    %v = costate.load %x[%j] : !costate.array<f64, 1>
    costate.store %v, %y[%j] : !costate.array<f64, 1>
    %w = costate.load %y[%i] : !costate.array<f64, 1>
    costate.store %w, %z[%i] : !costate.array<f64, 1>
    costate.atomic_add %w, %s[] : !costate.array<f64, 0>
  }
}

// What all work items store alike is told apart; reads and updates exclude each
// other; serial code is free.
// CHECK-LABEL: costate.kernel @mixed
// CHECK:         costate.store %{{.*}}, %arg0[%{{.*}}] : !costate.array<f64, 1>
// CHECK:         costate.range
// CHECK:           costate.store %arg2, %arg0[%{{.*}}] {costate.watched = "shared_store"}
// CHECK:           costate.store %{{.*}}, %arg0[%{{.*}}] {costate.watched = "shared_store"}
// CHECK:           costate.atomic_add %arg2, %arg1[%{{.*}}] {costate.watched = "update"}
// CHECK:           costate.load %arg1[%{{.*}}] {costate.watched = "load"}
costate.kernel @mixed(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>, %a: f64, %j: i64) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  %one = arith.constant 1.0 : f64
  costate.store %a, %x[%j] : !costate.array<f64, 1>
  costate.range (%i) in (%n) {
    costate.store %a, %x[%j] : !costate.array<f64, 1>
    costate.store %one, %x[%j] : !costate.array<f64, 1>
    costate.atomic_add %a, %y[%j] : !costate.array<f64, 1>
    %v = costate.load %y[%i] : !costate.array<f64, 1>
  }
}

// Two values that are stored at one place of the source, as by a function that
// is called twice, are told apart.
// CHECK-LABEL: costate.kernel @twice
// CHECK:           costate.store %arg1, %{{.*}} {costate.watched = "shared_store"}
// CHECK:           costate.store %arg2, %{{.*}} {costate.stored_value = 1 : i64, costate.watched = "shared_store"}
// CHECK:           costate.store %arg1, %{{.*}} {costate.watched = "shared_store"}
#here = loc("function.cpp":3:5)
costate.kernel @twice(%x: !costate.array<f64, 1>, %a: f64, %b: f64, %j: i64) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%n) {
    costate.store %a, %x[%j] : !costate.array<f64, 1> loc(#here)
    costate.store %b, %x[%i] : !costate.array<f64, 1> loc(#here)
    costate.store %a, %x[%j] : !costate.array<f64, 1> loc(#here)
  }
}

// Adjoints are used in the opposite way, and the names are those of the primal:
// a store is reversed by a load and a store. A tangent is used like its array.
// CHECK-LABEL: costate.kernel @derived
// CHECK:         costate.load %arg2[%{{.*}}] {costate.watched = "store"}
// CHECK:         costate.store %{{.*}}, %arg2[%{{.*}}] {costate.watched = "store"}
// CHECK:         costate.atomic_add %{{.*}}, %arg2[%{{.*}}] {costate.watched = "load"}
// CHECK:         costate.load %arg2[%{{.*}}] {costate.watched = "update"}
// CHECK:         costate.store %{{.*}}, %arg2[%{{.*}}] {costate.watched = "shared_store"}
// CHECK:         costate.store %{{.*}}, %arg3[%{{.*}}] : !costate.array<f64, 1>
costate.kernel @derived(%at: !costate.array<i64, 1>, %x: !costate.array<f64, 1>,
                        %dx: !costate.array<f64, 1> {costate.adjoint_of = 1 : i64},
                        %tx: !costate.array<f64, 1> {costate.tangent_of = 1 : i64}) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  %zero = arith.constant 0.0 : f64
  costate.range (%i) in (%n) {
    %j = costate.load %at[%i] : !costate.array<i64, 1>
    %g = costate.load %dx[%j] : !costate.array<f64, 1> loc("a.cpp":7:1)
    costate.store %zero, %dx[%j] : !costate.array<f64, 1> loc("a.cpp":7:1)
    costate.atomic_add %g, %dx[%i] : !costate.array<f64, 1> loc("a.cpp":8:1)
    %h = costate.load %dx[%j] : !costate.array<f64, 1> loc("a.cpp":9:1)
    costate.store %zero, %dx[%j] : !costate.array<f64, 1> loc("a.cpp":10:1)
    costate.store %h, %tx[%j] : !costate.array<f64, 1> loc("a.cpp":11:1)
  }
}

// Updates of one kind do not exclude each other; those of two kinds do.
// CHECK-LABEL: costate.kernel @extrema
// CHECK:         costate.atomic_max %{{.*}}, %arg0[%{{.*}}] : !costate.array<f64, 1>
// CHECK:         costate.atomic_max %{{.*}}, %arg1[%{{.*}}] {costate.watched = "maximum"}
// CHECK:         costate.atomic_min %{{.*}}, %arg1[%{{.*}}] {costate.watched = "minimum"}
costate.kernel @extrema(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>, %a: f64, %j: i64, %k: i64) {
  costate.range (%i) in (%j) {
    costate.atomic_max %a, %x[%j] : !costate.array<f64, 1>
    costate.atomic_max %a, %y[%j] : !costate.array<f64, 1>
    costate.atomic_min %a, %y[%k] : !costate.array<f64, 1>
  }
}

// Atomics that return something are updates; a minimum excludes others.
// CHECK-LABEL: costate.kernel @fetched
// CHECK:         costate.atomic_fetch "exchange" %{{.*}} {costate.watched = "exchange"}
// CHECK:         costate.load %{{.*}} {costate.watched = "load"}
// CHECK:         costate.atomic_fetch "min" %{{.*}} {costate.watched = "minimum"}
// CHECK:         costate.compare_exchange %{{.*}} {costate.watched = "exchange"}
costate.kernel @fetched(%x: !costate.array<i64, 1>, %y: !costate.array<i64, 1>, %j: i64) {
  %n = costate.extent %x[0] : !costate.array<i64, 1>
  costate.range (%i) in (%n) {
    %a = costate.atomic_fetch "exchange" %i, %x[%j] : !costate.array<i64, 1>
    %b = costate.load %x[%j] : !costate.array<i64, 1>
    %c = costate.atomic_fetch "min" %i, %y[%j] : !costate.array<i64, 1>
    %d = costate.compare_exchange %i if %a, %y[%j] : !costate.array<i64, 1>
    costate.store %i, %y[%j] : !costate.array<i64, 1>
  }
}

// What is no addition, minimum or maximum.
// CHECK-LABEL: costate.kernel @bits
// CHECK:         costate.atomic_fetch "or" {{.*}} {costate.watched = "bits"}
// CHECK:         costate.atomic_fetch "exchange" {{.*}} {costate.watched = "exchange"}
// CHECK:         costate.compare_exchange {{.*}} {costate.watched = "exchange"}
// CHECK:         costate.atomic_fetch "min" {{.*}} {costate.watched = "minimum"}
// CHECK:         costate.load {{.*}} {costate.watched = "load"}
costate.kernel @bits(%x: !costate.array<i64, 1>, %y: !costate.array<i64, 1>, %n: i64, %j: i64) {
  costate.range (%i) in (%n) {
    %a = costate.atomic_fetch "or" %i, %x[%j] : !costate.array<i64, 1>
    %b = costate.atomic_fetch "exchange" %i, %x[%j] : !costate.array<i64, 1>
    %c = costate.compare_exchange %i if %b, %x[%j] : !costate.array<i64, 1>
    %d = costate.atomic_fetch "min" %i, %x[%j] : !costate.array<i64, 1>
    %e = costate.load %x[%i] : !costate.array<i64, 1>
  }
}
