// RUN: costate-opt %s | FileCheck %s
// RUN: costate-opt %s | costate-opt | FileCheck %s
// RUN: costate-opt %s --mlir-print-op-generic | costate-opt | FileCheck %s

// Every op of the kernel dialect prints as it was written.

// CHECK-LABEL: costate.kernel @arrays(
// CHECK-SAME: %[[X:.*]]: !costate.array<f64, 2>, %[[C:.*]]: !costate.array<ui32, 0>, %[[F:.*]]: !costate.array<i1, 8>, %[[A:.*]]: f64, %[[B:.*]]: i1)
costate.kernel @arrays(%x: !costate.array<f64, 2>, %c: !costate.array<ui32, 0>,
                       %f: !costate.array<i1, 8>, %a: f64, %b: i1) {
  // CHECK: %[[N:.*]] = costate.extent %[[X]][0] : !costate.array<f64, 2>
  %n = costate.extent %x[0] : !costate.array<f64, 2>
  // CHECK: %[[M:.*]] = costate.extent %[[X]][1] : !costate.array<f64, 2>
  %m = costate.extent %x[1] : !costate.array<f64, 2>
  // CHECK: costate.range (%[[I:.*]], %[[J:.*]]) in (%[[N]], %[[M]]) {
  costate.range (%i, %j) in (%n, %m) {
    // CHECK: %[[V:.*]] = costate.load %[[X]][%[[I]], %[[J]]] : !costate.array<f64, 2>
    %v = costate.load %x[%i, %j] : !costate.array<f64, 2>
    // CHECK: costate.store %[[V]], %[[X]][%[[J]], %[[I]]] : !costate.array<f64, 2>
    costate.store %v, %x[%j, %i] : !costate.array<f64, 2>
    // CHECK: costate.atomic_add %[[A]], %[[X]][%[[I]], %[[I]]] : !costate.array<f64, 2>
    costate.atomic_add %a, %x[%i, %i] : !costate.array<f64, 2>
    // CHECK: costate.atomic_add exclusive %[[V]], %[[X]][%[[I]], %[[J]]] : !costate.array<f64, 2>
    costate.atomic_add exclusive %v, %x[%i, %j] : !costate.array<f64, 2>
    // CHECK: costate.store %[[B]], %[[F]][%[[I]], %[[I]], %[[I]], %[[I]], %[[J]], %[[J]], %[[J]], %[[J]]] : !costate.array<i1, 8>
    costate.store %b, %f[%i, %i, %i, %i, %j, %j, %j, %j] : !costate.array<i1, 8>
  }
  // CHECK: %[[L:.*]] = costate.load %[[C]][] : !costate.array<ui32, 0>
  %l = costate.load %c[] : !costate.array<ui32, 0>
  // CHECK: costate.store %[[L]], %[[C]][] : !costate.array<ui32, 0>
  costate.store %l, %c[] : !costate.array<ui32, 0>
}

// CHECK-LABEL: costate.kernel @every_element_type(
// CHECK-SAME: array<i1, 1>, %{{.*}}: !costate.array<i32, 1>, %{{.*}}: !costate.array<i64, 1>, %{{.*}}: !costate.array<ui32, 1>, %{{.*}}: !costate.array<ui64, 1>, %{{.*}}: !costate.array<f32, 1>, %{{.*}}: !costate.array<f64, 1>
costate.kernel @every_element_type(
    %a: !costate.array<i1, 1>, %b: !costate.array<i32, 1>, %c: !costate.array<i64, 1>,
    %d: !costate.array<ui32, 1>, %e: !costate.array<ui64, 1>, %f: !costate.array<f32, 1>,
    %g: !costate.array<f64, 1>) {
  %k = arith.constant 0 : i64
  // The value of an unsigned element is signless.
  %0 = costate.load %a[%k] : !costate.array<i1, 1>
  %1 = costate.load %d[%k] : !costate.array<ui32, 1>
  %2 = costate.load %e[%k] : !costate.array<ui64, 1>
  // CHECK: arith.select %{{.*}}, %{{.*}}, %{{.*}} : i32
  %3 = arith.select %0, %1, %1 : i32
  // CHECK: costate.atomic_add %{{.*}} : !costate.array<ui32, 1>
  costate.atomic_add %3, %d[%k] : !costate.array<ui32, 1>
  // CHECK: costate.atomic_add %{{.*}} : !costate.array<ui64, 1>
  costate.atomic_add %2, %e[%k] : !costate.array<ui64, 1>
}

// CHECK-LABEL: costate.kernel @sums(
costate.kernel @sums(%x: !costate.array<f32, 1>, %n: i64) {
  // CHECK: %[[S:.*]]:2 = costate.range (%[[I:.*]]) in (%{{.*}}) -> (f32, f64) {
  %s:2 = costate.range (%i) in (%n) -> (f32, f64) {
    %v = costate.load %x[%i] : !costate.array<f32, 1>
    %w = arith.extf %v : f32 to f64
    // CHECK: costate.yield %{{.*}}, %{{.*}} : f32, f64
    costate.yield %v, %w : f32, f64
  }
  // CHECK: %{{.*}} = costate.range (%{{.*}}) in (%{{.*}}) -> f32 {
  %t = costate.range (%i) in (%n) -> f32 {
    costate.yield %s#0 : f32
  }
  // CHECK: costate.range (%{{.*}}) in (%{{.*}}) attributes {costate.note = 1 : i64} {
  costate.range (%i) in (%n) attributes {costate.note = 1 : i64} {
  }
}

// CHECK-LABEL: costate.kernel @updates(
costate.kernel @updates(%x: !costate.array<f64, 1>, %k: !costate.array<ui32, 0>, %v: f64, %w: i32, %n: i64) {
  costate.range (%i) in (%n) {
    // CHECK: costate.atomic_min %{{.*}}, %{{.*}}[%{{.*}}] : !costate.array<f64, 1>
    costate.atomic_min %v, %x[%i] : !costate.array<f64, 1>
    // CHECK: costate.atomic_max exclusive %{{.*}}, %{{.*}}[%{{.*}}] : !costate.array<f64, 1>
    costate.atomic_max exclusive %v, %x[%i] : !costate.array<f64, 1>
    // CHECK: costate.atomic_max %{{.*}}, %{{.*}}[] : !costate.array<ui32, 0>
    costate.atomic_max %w, %k[] : !costate.array<ui32, 0>
    // CHECK: costate.atomic_take %{{.*}}[%{{.*}}] : !costate.array<f64, 1>
    %g = costate.atomic_take %x[%i] : !costate.array<f64, 1>
    // CHECK: costate.atomic_take exclusive %{{.*}}[%{{.*}}] : !costate.array<f64, 1>
    %h = costate.atomic_take exclusive %x[%i] : !costate.array<f64, 1>
  }
}

// CHECK-LABEL: costate.kernel @custom(
costate.kernel @custom(%x: f64, %n: i64, %z: f32) {
  // CHECK: costate.stop_gradient %{{.*}} : f64
  %s = costate.stop_gradient %x : f64
  // CHECK: costate.custom(%{{.*}}, %{{.*}}, %{{.*}}) {
  // CHECK-NEXT: ^bb0(%{{.*}}: f64, %{{.*}}: i64, %{{.*}}: f32):
  // CHECK: } partials {
  // CHECK-NEXT: ^bb0(%{{.*}}: f64, %{{.*}}: i64, %{{.*}}: f32, %{{.*}}: f64):
  // CHECK: costate.yield %{{.*}}, %{{.*}} : f64, f64
  // CHECK: } : (f64, i64, f32) -> f64
  %y = costate.custom(%x, %n, %z) {
  ^bb0(%a: f64, %k: i64, %b: f32):
    costate.yield %a : f64
  } partials {
  ^bb0(%a: f64, %k: i64, %b: f32, %r: f64):
    costate.yield %r, %a : f64, f64
  } : (f64, i64, f32) -> f64
}

// CHECK-LABEL: costate.kernel @scalars(
costate.kernel @scalars(%a: i64, %b: i32, %x: f64, %y: f32, %s: i64) {
  // CHECK: costate.div %{{.*}}, %{{.*}} : i64
  %0 = costate.div %a, %s : i64
  // CHECK: costate.div unsigned %{{.*}}, %{{.*}} : i32
  %1 = costate.div unsigned %b, %b : i32
  // CHECK: costate.rem %{{.*}}, %{{.*}} : i64
  %2 = costate.rem %a, %s : i64
  // CHECK: costate.rem unsigned %{{.*}}, %{{.*}} : i32
  %3 = costate.rem unsigned %b, %b : i32
  // CHECK: costate.shl %{{.*}}, %{{.*}} : i64
  %4 = costate.shl %a, %s : i64
  // CHECK: costate.shr %{{.*}}, %{{.*}} : i64
  %5 = costate.shr %a, %s : i64
  // CHECK: costate.shr unsigned %{{.*}}, %{{.*}} : i32
  %6 = costate.shr unsigned %b, %b : i32
  // CHECK: costate.to_int %{{.*}} : f64 to i32
  %7 = costate.to_int %x : f64 to i32
  // CHECK: costate.to_int unsigned %{{.*}} : f32 to i64
  %8 = costate.to_int unsigned %y : f32 to i64
  // CHECK: costate.philox %{{.*}}, %{{.*}}, %{{.*}}
  %draw = costate.philox %a, %s, %a
  // CHECK: costate.trip_count %{{.*}} to %{{.*}} by %{{.*}}
  %9 = costate.trip_count %a to %s by %s
  // CHECK: costate.strong_mul %{{.*}}, %{{.*}} : f64
  %10 = costate.strong_mul %x, %x : f64
  // CHECK: costate.strong_mul symmetric %{{.*}}, %{{.*}} : f64
  %12 = costate.strong_mul symmetric %x, %x : f64
  // CHECK: costate.hypot %{{.*}}, %{{.*}} : f32
  %11 = costate.hypot %y, %y : f32
}

// CHECK-LABEL: costate.kernel @derived(
// CHECK-SAME: %{{.*}}: !costate.array<f64, 0> {costate.adjoint_of = 0 : i64}, %{{.*}}: !costate.array<f64, 0> {costate.tangent_of = 0 : i64})
costate.kernel @derived(%x: !costate.array<f64, 0>,
                        %dx: !costate.array<f64, 0> {costate.adjoint_of = 0 : i64},
                        %tx: !costate.array<f64, 0> {costate.tangent_of = 0 : i64}) {
}

// CHECK-LABEL: costate.kernel @fetches(
// CHECK-SAME: %[[X:.*]]: !costate.array<ui32, 1>, %[[F:.*]]: !costate.array<f64, 0>, %[[A:.*]]: i32, %[[B:.*]]: f64)
costate.kernel @fetches(%x: !costate.array<ui32, 1>, %f: !costate.array<f64, 0>, %a: i32, %b: f64) {
  %n = costate.extent %x[0] : !costate.array<ui32, 1>
  costate.range (%i) in (%n) {
    // CHECK: costate.atomic_fetch "xor" %[[A]], %[[X]][%{{.*}}] : !costate.array<ui32, 1>
    %c = costate.atomic_fetch "xor" %a, %x[%i] : !costate.array<ui32, 1>
    // CHECK: %[[D:.*]] = costate.atomic_fetch "exchange" %[[B]], %[[F]][] : !costate.array<f64, 0>
    %d = costate.atomic_fetch "exchange" %b, %f[] : !costate.array<f64, 0>
    // CHECK: costate.compare_exchange %[[B]] if %[[D]], %[[F]][] : !costate.array<f64, 0>
    %e = costate.compare_exchange %b if %d, %f[] : !costate.array<f64, 0>
  }
}

// Bits of bools.
// CHECK-LABEL: costate.kernel @flags(
costate.kernel @flags(%x: !costate.array<i1, 1>, %v: i1, %i: i64) {
  // CHECK: costate.atomic_fetch "and" %{{.*}}, %{{.*}}[%{{.*}}] : !costate.array<i1, 1>
  %a = costate.atomic_fetch "and" %v, %x[%i] : !costate.array<i1, 1>
  // CHECK: costate.atomic_fetch "exchange"
  %b = costate.atomic_fetch "exchange" %a, %x[%i] : !costate.array<i1, 1>
  // CHECK: costate.compare_exchange %{{.*}} if %{{.*}}, %{{.*}}[%{{.*}}] : !costate.array<i1, 1>
  %c = costate.compare_exchange %a if %b, %x[%i] : !costate.array<i1, 1>
}

// CHECK-LABEL: costate.kernel @least(
costate.kernel @least(%x: !costate.array<i64, 1>, %y: !costate.array<i64, 1>) {
  %n = costate.extent %x[0] : !costate.array<i64, 1>
  // CHECK: costate.range (%{{.*}}) in (%{{.*}}) -> (i64, i64) attributes {minima} {
  %least:2 = costate.range (%i) in (%n) -> (i64, i64) attributes {minima} {
    %v = costate.load %x[%i] : !costate.array<i64, 1>
    // CHECK: costate.yield
    costate.yield %v, %i : i64, i64
  }
  costate.store %least#0, %y[%least#1] : !costate.array<i64, 1>
}
