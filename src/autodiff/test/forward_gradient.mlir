// RUN: costate-opt %s --differentiate-reverse --canonicalize --cse --differentiate-forward --canonicalize --cse | FileCheck %s
// RUN: costate-opt %s --differentiate-reverse="active=0,1" --canonicalize --cse --differentiate-forward="active=0,1,4,5" --canonicalize --cse | FileCheck %s --check-prefix=SHARP
// RUN: costate-opt %s --differentiate-reverse --differentiate-forward | costate-opt --mlir-print-op-generic | costate-opt | FileCheck %s --check-prefix=AGAIN

// What a gradient saves has tangents, which stand after it in the record.
// AGAIN-LABEL: costate.kernel @iterate.grad.jvp
// AGAIN:         tape.push record(0) {{.*}} : f64, f64, f64, f64

// CHECK-LABEL: costate.kernel @iterate.grad.jvp
// CHECK-SAME:    %[[GX:[a-z0-9]+]]: !costate.array<f64, 1> {costate.adjoint_of = 0 : i64}, %[[GY:[a-z0-9]+]]: !costate.array<f64, 1> {costate.adjoint_of = 1 : i64}
// CHECK-SAME:    %[[DX:[a-z0-9]+]]: !costate.array<f64, 1> {costate.tangent_of = 0 : i64}
// CHECK-SAME:    %[[DGX:[a-z0-9]+]]: !costate.array<f64, 1> {costate.tangent_of = 4 : i64}, %[[DGY:[a-z0-9]+]]: !costate.array<f64, 1> {costate.tangent_of = 5 : i64}
// CHECK:         scf.for {{.*}} iter_args(%[[A:[a-z0-9]+]] = %{{.*}}, %[[DA:[a-z0-9]+]] = %{{.*}})
// CHECK:           %[[SIN:.*]] = costate.sin %[[A]]
// CHECK:           %[[COS:.*]] = costate.cos %[[A]]
// CHECK:           %[[DSIN:.*]] = costate.strong_mul %[[DA]], %[[COS]]
// CHECK:           tape.push record(0) %[[A]], %[[SIN]], %[[DA]], %[[DSIN]] : f64, f64, f64, f64
// CHECK:         tape.pivot
// CHECK:         costate.load %[[GY]]
// CHECK:         costate.load %[[DGY]]
// CHECK:         costate.store %{{.*}}, %[[GY]]
// CHECK:         costate.store %{{.*}}, %[[DGY]]
// CHECK:         scf.for {{.*}} -> (f64, f64)
// CHECK:           tape.pop record(0) : f64, f64, f64, f64
// CHECK:         costate.atomic_add exclusive %{{.*}}, %[[GX]]
// CHECK:         costate.atomic_add exclusive %{{.*}}, %[[DGX]]
costate.kernel @iterate(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>, %z: !costate.array<i32, 1>, %n: i64) {
  %e = costate.extent %x[0] : !costate.array<f64, 1>
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  costate.range (%i) in (%e) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %r = scf.for %k = %zero to %n step %one iter_args(%a = %v) -> (f64) : i64 {
      %q = costate.sin %a : f64
      %p = arith.mulf %a, %q : f64
      scf.yield %p : f64
    }
    costate.store %r, %y[%i] : !costate.array<f64, 1>
  }
}

// Only %w has a tangent on the tape: %b comes from %c, and %p serves for nothing
// but the comparison of the maximum.
// SHARP-LABEL: costate.kernel @sharp.grad.jvp
// SHARP:         scf.for {{.*}} iter_args(%[[A:[a-z0-9]+]] = %{{.*}}, %[[B:[a-z0-9]+]] = %{{.*}}, %[[W:[a-z0-9]+]] = %{{.*}}, %[[DW:[a-z0-9]+]] = %{{.*}})
// SHARP:           %[[P:.*]] = arith.mulf %[[A]], %[[B]]
// SHARP:           tape.push record(0) %[[B]], %[[W]], %[[P]], %[[DW]] : f64, f64, f64, f64
costate.kernel @sharp(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>, %c: !costate.array<f64, 1>, %n: i64) {
  %e = costate.extent %x[0] : !costate.array<f64, 1>
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  costate.range (%i) in (%e) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %u = costate.load %c[%i] : !costate.array<f64, 1>
    %r:3 = scf.for %k = %zero to %n step %one iter_args(%a = %v, %b = %u, %w = %v) -> (f64, f64, f64) : i64 {
      %p = arith.mulf %a, %b : f64
      %m = arith.maxnumf %p, %b : f64
      %s = costate.sin %b : f64
      %q = arith.mulf %w, %w : f64
      scf.yield %m, %s, %q : f64, f64, f64
    }
    %t = arith.addf %r#0, %r#2 : f64
    costate.store %t, %y[%i] : !costate.array<f64, 1>
  }
}

// A serial value that all work items use: its adjoint is a sum over the range,
// and so is the tangent of that.
// CHECK-LABEL: costate.kernel @shared.grad.jvp
// CHECK:         %[[SUMS:.*]]:2 = costate.range {{.*}} -> (f64, f64)
// CHECK:           costate.yield %{{.*}}, %{{.*}} : f64, f64
// CHECK-COUNT-2: costate.atomic_add
costate.kernel @shared(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>, %z: !costate.array<i32, 1>, %n: i64) {
  %e = costate.extent %x[0] : !costate.array<f64, 1>
  %zero = arith.constant 0 : i64
  %s = costate.load %x[%zero] : !costate.array<f64, 1>
  %t = costate.sin %s : f64
  costate.range (%i) in (%e) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %w = arith.mulf %v, %t : f64
    costate.atomic_add exclusive %w, %y[%i] : !costate.array<f64, 1>
  }
}

// What the forward sweep does to a scratch array, and the tangents of that.
// CHECK-LABEL: costate.kernel @cube.grad.jvp
// CHECK:         costate.load {{.*}}costate.replayed = 1
// CHECK-NEXT:    costate.load {{.*}}costate.replayed = 1
// CHECK:         costate.store {{.*}}costate.replayed = 1
// CHECK-NEXT:    costate.store {{.*}}costate.replayed = 1
// CHECK:         tape.push
// CHECK-NOT:     replayed
costate.kernel @cube(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>, %z: !costate.array<i32, 1>, %n: i64) {
  %e = costate.extent %x[0] : !costate.array<f64, 1>
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  costate.range (%i) in (%e) {
    scf.for %k = %zero to %n step %one : i64 {
      %v = costate.load %x[%i] : !costate.array<f64, 1>
      %w = arith.mulf %v, %v : f64
      costate.store %w, %x[%i] : !costate.array<f64, 1>
    }
  }
}
