// RUN: costate-opt %s --outline-ranges | FileCheck %s
// RUN: costate-opt %s --outline-ranges=debug | FileCheck %s --check-prefix=DEBUG

// The entry unpacks arguments, the body of the range unpacks its frame, and
// the chunk loops.

// CHECK: costate.sites = [#[[SITE:.*]]]
// CHECK-LABEL: llvm.func @scale.entry(
// CHECK-SAME: %[[LAUNCH:.*]]: !llvm.ptr, %{{.*}}: !llvm.ptr, %[[SLOTS:.*]]: !llvm.ptr)
// CHECK: %[[S0:.*]] = llvm.getelementptr inbounds %[[SLOTS]][0]
// CHECK: llvm.load %[[S0]] : !llvm.ptr -> !llvm.ptr
// CHECK: %[[S2:.*]] = llvm.getelementptr inbounds %[[SLOTS]][2]
// CHECK: llvm.load %[[S2]] : !llvm.ptr -> f64
// CHECK: %[[BODY:.*]] = llvm.mlir.addressof @scale.range0
// CHECK: %[[COUNT:.*]] = arith.maxsi
// CHECK: llvm.call @costate_range(%[[LAUNCH]], %[[BODY]], %{{.*}}, %[[COUNT]],

// CHECK-LABEL: llvm.func internal @scale.chunk0(
// CHECK-SAME: %{{.*}}: !llvm.ptr {llvm.noalias}, %{{.*}}: !llvm.ptr {llvm.noalias}, %[[BEGIN:.*]]: i64, %[[END:.*]]: i64, %[[BASE:.*]]: !llvm.ptr {llvm.noalias}, %[[EXTENT:.*]]: i64, %[[S:.*]]: f64)
// CHECK-SAME: no_inline
// CHECK: %[[X:.*]] = builtin.unrealized_conversion_cast %[[BASE]], %[[EXTENT]] {{.*}} {costate.parameter = 0 : i64}
// CHECK: scf.for %[[I:.*]] = %[[BEGIN]] to %[[END]]
// CHECK:   costate.load %[[X]][%[[I]]]

// CHECK-LABEL: llvm.func internal @scale.range0(
// CHECK: llvm.call @scale.chunk0
costate.kernel @scale(%x: !costate.array<f64, 1>, %s: f64) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%n) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %w = arith.mulf %v, %s : f64
    costate.store %w, %x[%i] : !costate.array<f64, 1>
  }
}

// Several dimensions are rows around an innermost loop; sums are f64. An array
// that is only read is readonly. With `debug` the extents are told before the
// range, and the worker knows the number of its work item.
// DEBUG-LABEL: llvm.func @sum.entry(
// DEBUG: llvm.call @costate_begin_range(%arg0, %{{.*}}, %{{.*}})
// DEBUG: llvm.call @costate_range
// DEBUG-LABEL: llvm.func internal @sum.chunk0(
// DEBUG: scf.for %[[J:[a-z0-9]+]] =
// DEBUG-NEXT: %[[ROW:.*]] = arith.muli
// DEBUG-NEXT: %[[NUMBER:.*]] = arith.addi %[[ROW]], %[[J]] : i64
// DEBUG-NEXT: %[[SLOT:.*]] = llvm.getelementptr inbounds %arg1[3]
// DEBUG-NEXT: llvm.store %[[NUMBER]], %[[SLOT]]
// CHECK-LABEL: llvm.func internal @sum.chunk0(
// CHECK-SAME: !llvm.ptr {llvm.noalias, llvm.readonly}
// CHECK: costate.rem unsigned
// CHECK: costate.div unsigned
// CHECK: scf.while
// CHECK: scf.for
// CHECK:   costate.load
// CHECK:   arith.extf
// CHECK:   arith.addf %{{.*}}, %{{.*}} fastmath<reassoc> : f64
// CHECK: llvm.store %{{.*}} : f64, !llvm.ptr
costate.kernel @sum(%x: !costate.array<f32, 2>, %y: !costate.array<f32, 0>) {
  %n = costate.extent %x[0] : !costate.array<f32, 2>
  %m = costate.extent %x[1] : !costate.array<f32, 2>
  %s = costate.range (%i, %j) in (%n, %m) -> f32 {
    %v = costate.load %x[%i, %j] : !costate.array<f32, 2>
    costate.yield %v : f32
  }
  costate.store %s, %y[] : !costate.array<f32, 0>
}

// A launch that only measures leaves the work item at the pivot, and skips the
// stores of the serial code.
// CHECK-LABEL: llvm.func @measured.entry(
// CHECK: %[[DRY:.*]] = llvm.call @costate_dry_run
// CHECK: scf.if
// CHECK-NEXT: } else {
// CHECK-NEXT: costate.store
// CHECK-LABEL: llvm.func internal @measured.chunk0(
// CHECK: llvm.call @costate_dry_run
// CHECK: scf.for
// CHECK:   tape.push
// CHECK:   scf.if
// CHECK:     %[[AT:.*]] = llvm.getelementptr inbounds %arg1[2]
// CHECK:     %[[BASE:.*]] = llvm.load %[[AT]]
// CHECK:     llvm.store %[[BASE]], %arg1
// CHECK:   } else {
// CHECK:     tape.pop
// CHECK-NOT: tape.pivot
costate.kernel @measured(%x: !costate.array<f64, 1>, %a: f64) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  %c0 = arith.constant 0 : i64
  costate.store %a, %x[%c0] : !costate.array<f64, 1>
  costate.range (%i) in (%n) {
    tape.push %a : f64
    tape.pivot
    %v = tape.pop : f64
    costate.atomic_add %v, %x[%i] : !costate.array<f64, 1>
  }
}

// A range without pushes and writes has nothing to leave out.
// CHECK-LABEL: llvm.func internal @sum_measured.chunk0(
// CHECK-NOT: tape.pivot
// CHECK: llvm.return
costate.kernel @sum_measured(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 0>) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  %a = arith.constant 1.0 : f64
  tape.push %a : f64
  %s = costate.range (%i) in (%n) -> f64 {
    tape.pivot
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    costate.yield %v : f64
  }
  tape.pivot
  %b = tape.pop : f64
  costate.store %s, %y[] : !costate.array<f64, 0>
}

// The least pair of a key and its place: its kind is 3. Some are kept; of those
// the least key, and its place if the key is as good as the best one.
// CHECK-LABEL: llvm.func @least.entry(
// CHECK:         llvm.call @costate_range(%{{.*}}, %c3_i64{{[^,]*}}, %{{[^,]*}}, %c0_i64{{[^,]*}}, %c1_i64{{[^,]*}}) :
// CHECK-LABEL: llvm.func internal @least.chunk0(
// CHECK:         llvm.alloca %{{.*}} x i64
// CHECK:         scf.for
// CHECK:           scf.for
// CHECK:             costate.load
// CHECK:             llvm.store
// CHECK:             llvm.store
// CHECK:           %[[KEY:.*]] = scf.for
// CHECK:             arith.minsi
// CHECK:           arith.cmpi sle, %[[KEY]]
// CHECK:           scf.if
// CHECK:             scf.for
// CHECK:               arith.cmpi eq, %{{.*}}, %[[KEY]]
// CHECK:               arith.minsi
costate.kernel @least(%x: !costate.array<i64, 1>, %y: !costate.array<i64, 0>) {
  %n = costate.extent %x[0] : !costate.array<i64, 1>
  %least:2 = costate.range (%i) in (%n) -> (i64, i64) attributes {minima} {
    %v = costate.load %x[%i] : !costate.array<i64, 1>
    costate.yield %v, %i : i64, i64
  }
  costate.store %least#1, %y[] : !costate.array<i64, 0>
}
