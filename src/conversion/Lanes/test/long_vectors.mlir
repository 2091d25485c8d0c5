// RUN: costate-opt %s --mark-reductions --sum-in-ranges --outline-ranges --form-lanes=bits=512 | FileCheck %s
// RUN: costate-opt %s --mark-reductions --sum-in-ranges --outline-ranges --form-lanes=bits=256 | FileCheck %s --check-prefix=HALF

// Iterations wait for each other: four vectors take as long as one. Counts of 32
// bits are compared as such.
// CHECK-LABEL: llvm.func internal @short.chunk0
// CHECK-SAME:    costate.vector_lanes = 64
// CHECK:         %[[COUNTS:.*]] = arith.trunci %{{.*}} : vector<64xi64> to vector<64xi32>
// CHECK:         "llvm.intr.vector.reduce.umax"(%[[COUNTS]]) : (vector<64xi32>) -> i32
// CHECK:         %[[LIMITS:.*]] = arith.xori %[[COUNTS]]
// CHECK:         scf.for
// CHECK:           arith.cmpi slt, %{{.*}}, %[[LIMITS]] : vector<64xi32>
// CHECK:           math.fma %{{.*}} : vector<64xf32>
// HALF-LABEL: llvm.func internal @short.chunk0
// HALF-SAME:    costate.vector_lanes = 32
costate.kernel @short(%x: !costate.array<f32, 1>, %n: !costate.array<i32, 1>) {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %a = arith.constant 0.95 : f32
  %size = costate.extent %x[0] : !costate.array<f32, 1>
  costate.range (%i) in (%size) {
    %v = costate.load %x[%i] : !costate.array<f32, 1>
    %narrow = costate.load %n[%i] : !costate.array<i32, 1>
    %hi = arith.extsi %narrow : i32 to i64
    %count = costate.trip_count %c0 to %hi by %c1
    %r = scf.for %k = %c0 to %count step %c1 iter_args(%w = %v) -> f32 : i64 {
      %s = math.fma %w, %a, %a : f32
      scf.yield %s : f32
    }
    costate.store %r, %x[%i] : !costate.array<f32, 1>
  }
}

// Masks are as wide as what they select.
// CHECK-LABEL: llvm.func internal @wide.chunk0
// CHECK-SAME:    costate.vector_lanes = 64
// CHECK:         arith.cmpi slt, %{{.*}} : vector<64xi64>
// HALF-LABEL: llvm.func internal @wide.chunk0
// HALF-SAME:    costate.vector_lanes = 16
costate.kernel @wide(%x: !costate.array<f64, 1>, %n: !costate.array<i32, 1>) {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %a = arith.constant 0.95 : f64
  %size = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%size) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %narrow = costate.load %n[%i] : !costate.array<i32, 1>
    %hi = arith.extsi %narrow : i32 to i64
    %count = costate.trip_count %c0 to %hi by %c1
    %r = scf.for %k = %c0 to %count step %c1 iter_args(%w = %v) -> f64 : i64 {
      %s = math.fma %w, %a, %a : f64
      scf.yield %s : f64
    }
    costate.store %r, %x[%i] : !costate.array<f64, 1>
  }
}

// Without masks more vectors wait for each other.
// CHECK-LABEL: llvm.func internal @together.chunk0
// CHECK-SAME:    costate.vector_lanes = 64
// HALF-LABEL: llvm.func internal @together.chunk0
// HALF-SAME:    costate.vector_lanes = 32
costate.kernel @together(%x: !costate.array<f64, 1>, %n: i64) {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %a = arith.constant 0.95 : f64
  %size = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%size) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %r = scf.for %k = %c0 to %n step %c1 iter_args(%w = %v) -> f64 : i64 {
      %s = math.fma %w, %a, %a : f64
      scf.yield %s : f64
    }
    costate.store %r, %x[%i] : !costate.array<f64, 1>
  }
}

// What saves has four: records take memory.
// CHECK-LABEL: llvm.func internal @saves.chunk0
// CHECK-SAME:    costate.vector_lanes = 64
// CHECK:         arith.cmpi slt, %{{.*}} : vector<64xi64>
costate.kernel @saves(%x: !costate.array<f32, 1>, %n: !costate.array<i64, 1>) {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %size = costate.extent %x[0] : !costate.array<f32, 1>
  costate.range (%i) in (%size) {
    %v = costate.load %x[%i] : !costate.array<f32, 1>
    %count = costate.load %n[%i] : !costate.array<i64, 1>
    %r = scf.for %k = %c0 to %count step %c1 iter_args(%a = %v) -> f32 : i64 {
      %s = costate.sin %a : f32
      tape.push record(0) %a : f32
      scf.yield %s : f32
    }
    tape.pivot
    %g = scf.for %k = %c0 to %count step %c1 iter_args(%a = %r) -> f32 : i64 {
      %p = tape.pop record(0) : f32
      %c = costate.cos %p : f32
      %m = costate.strong_mul %a, %c : f32
      scf.yield %m : f32
    }
    costate.store %g, %x[%i] : !costate.array<f32, 1>
  }
}

// Iterations that do not wait for each other fill one vector as well as two.
// CHECK-LABEL: llvm.func internal @independent.chunk0
// CHECK-SAME:    costate.vector_lanes = 16
costate.kernel @independent(%x: !costate.array<f32, 1>, %y: !costate.array<f32, 1>) {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %size = costate.extent %x[0] : !costate.array<f32, 1>
  %count = costate.extent %y[0] : !costate.array<f32, 1>
  costate.range (%i) in (%size) {
    %v = costate.load %x[%i] : !costate.array<f32, 1>
    %zero = arith.constant 0.0 : f32
    %r = scf.for %k = %c0 to %count step %c1 iter_args(%sum = %zero) -> f32 : i64 {
      %w = costate.load %y[%k] : !costate.array<f32, 1>
      %p = arith.mulf %v, %w : f32
      %s = costate.sin %p : f32
      %q = costate.exp %s : f32
      %next = arith.addf %sum, %q : f32
      scf.yield %next : f32
    }
    costate.store %r, %x[%i] : !costate.array<f32, 1>
  }
}

// Sums of a row are those of 16 partial ones: of 64 lanes one quarter
// after the other.
// CHECK-LABEL: llvm.func internal @sums.chunk0
// CHECK:         scf.for {{.*}} iter_args(%[[SUMS:.*]] = %{{.*}}) -> (vector<16xf64>)
// CHECK:           %[[FIRST:.*]] = llvm.shufflevector %[[TERMS:.*]], %{{.*}} [0, 1, 2,
// CHECK:           %[[SUM:.*]] = arith.addf %[[SUMS]], %[[FIRST]] : vector<16xf64>
// CHECK:           %[[KEPT:.*]] = arith.select %{{.*}}, %[[SUM]], %[[SUMS]]
// CHECK:           %[[SECOND:.*]] = llvm.shufflevector %[[TERMS]], %{{.*}} [16, 17, 18,
// CHECK:           arith.addf %[[KEPT]], %[[SECOND]] : vector<16xf64>
costate.kernel @sums(%x: !costate.array<f32, 1>, %y: !costate.array<f32, 0>, %n: i64) {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %size = costate.extent %x[0] : !costate.array<f32, 1>
  costate.range (%i) in (%size) {
    %v = costate.load %x[%i] : !costate.array<f32, 1>
    %r = scf.for %k = %c0 to %n step %c1 iter_args(%a = %v) -> f32 : i64 {
      %s = costate.sin %a : f32
      scf.yield %s : f32
    }
    costate.atomic_add %r, %y[] : !costate.array<f32, 0>
  }
}
