// RUN: costate-opt %s --outline-ranges --form-lanes="lanes=4 ordered=false" | FileCheck %s

// Lanes that have left go on with 0 where functions are slow for some numbers,
// and keep their results apart.
// CHECK-LABEL: llvm.func internal @counted.chunk0
// CHECK:         %[[LOOP:.*]]:2 = scf.for {{.*}} iter_args(%{{.*}} = %[[V:.*]], %[[LAST:.*]] = %[[V]])
// CHECK:           %[[HERE:.*]] = arith.cmpi slt
// CHECK:           %[[S:.*]] = costate.sin
// CHECK:           %[[ZERO:.*]] = arith.constant dense<0.000000e+00>
// CHECK:           %[[NEXT:.*]] = arith.select %[[HERE]], %[[S]], %[[ZERO]]
// CHECK:           %[[RESULT:.*]] = arith.select %[[HERE]], %[[S]], %[[LAST]]
// CHECK:           scf.yield %[[NEXT]], %[[RESULT]]
// CHECK:         masked.store %[[LOOP]]#1
costate.kernel @counted(%x: !costate.array<f32, 1>, %n: !costate.array<i64, 1>) {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %size = costate.extent %x[0] : !costate.array<f32, 1>
  costate.range (%i) in (%size) {
    %v = costate.load %x[%i] : !costate.array<f32, 1>
    %count = costate.load %n[%i] : !costate.array<i64, 1>
    %r = scf.for %k = %c0 to %count step %c1 iter_args(%a = %v) -> f32 : i64 {
      %s = costate.sin %a : f32
      scf.yield %s : f32
    }
    costate.store %r, %x[%i] : !costate.array<f32, 1>
  }
}

// CHECK-LABEL: llvm.func internal @until.chunk0
// CHECK:         scf.while (%[[MASK:.*]] = %{{.*}}, %{{.*}} = %{{.*}}, %{{.*}} = %{{.*}})
// CHECK:         } do {
// CHECK:         ^bb0(%[[STAY:.*]]: vector<4xi1>, {{.*}}):
// CHECK:           %[[Q:.*]] = arith.divf
// CHECK:           arith.select %[[STAY]], %[[Q]], %{{.*}}
// CHECK:           scf.yield
costate.kernel @until(%x: !costate.array<f32, 1>) {
  %three = arith.constant 3.0 : f32
  %size = costate.extent %x[0] : !costate.array<f32, 1>
  costate.range (%i) in (%size) {
    %v = costate.load %x[%i] : !costate.array<f32, 1>
    %r = scf.while (%a = %v) : (f32) -> f32 {
      %more = arith.cmpf ogt, %a, %three : f32
      scf.condition(%more) %a : f32
    } do {
    ^bb0(%a: f32):
      %q = arith.divf %a, %three : f32
      scf.yield %q : f32
    }
    costate.store %r, %x[%i] : !costate.array<f32, 1>
  }
}

// Short iterations have no mask as long as no lane has left.
// CHECK-LABEL: llvm.func internal @fast.chunk0
// CHECK:         %[[LONGEST:.*]] = "llvm.intr.vector.reduce.umax"
// CHECK:         %[[FEWER:.*]] = "llvm.intr.vector.reduce.umax"
// CHECK:         %[[SHORTEST:.*]] = arith.subi %[[LONGEST]], %[[FEWER]]
// CHECK:         %[[FIRST:.*]] = scf.for {{.*}} to %[[SHORTEST]] {{.*}} -> (vector<4xf32>)
// CHECK-NOT:       arith.select
// CHECK:           scf.yield
// CHECK:         scf.for {{.*}} = %[[SHORTEST]] to %[[LONGEST]] {{.*}} iter_args({{.*}} = %[[FIRST]]) -> (vector<4xf32>)
// CHECK:           arith.select
costate.kernel @fast(%x: !costate.array<f32, 1>, %n: !costate.array<i64, 1>) {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %size = costate.extent %x[0] : !costate.array<f32, 1>
  costate.range (%i) in (%size) {
    %v = costate.load %x[%i] : !costate.array<f32, 1>
    %count = costate.load %n[%i] : !costate.array<i64, 1>
    %r = scf.for %k = %c0 to %count step %c1 iter_args(%a = %v) -> f32 : i64 {
      %s = arith.mulf %a, %a : f32
      scf.yield %s : f32
    }
    costate.store %r, %x[%i] : !costate.array<f32, 1>
  }
}
