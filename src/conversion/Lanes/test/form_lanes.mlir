// RUN: costate-opt %s --outline-ranges --form-lanes="lanes=4 ordered=false" | FileCheck %s

// Lanes with fewer iterations keep what they have, and wait in the reverse of
// the loop until the records on the tape are theirs.
// CHECK-LABEL: llvm.func internal @ragged.chunk0
// CHECK-SAME:    costate.vector_lanes = 4
// CHECK:         scf.for %[[K:.*]] = %{{.*}} to %{{.*}} step %c4_i64
// CHECK:           %[[MASK:.*]] = arith.cmpi slt
// CHECK:           llvm.intr.masked.load %{{.*}}, %[[MASK]],
// CHECK:           %[[COUNTS:.*]] = arith.select %[[MASK]]
// CHECK:           %[[LONGEST:.*]] = "llvm.intr.vector.reduce.umax"(%[[COUNTS]])
// CHECK:           scf.for %{{.*}} = %{{.*}} to %[[LONGEST]] {{.*}} -> (vector<4xf32>, vector<4xf32>)
// CHECK:             %[[HERE:.*]] = arith.cmpi slt, %{{.*}}, %[[COUNTS]]
// CHECK:             tape.push record(0) %{{.*}} : vector<4xf32>
// CHECK-COUNT-2:     arith.select %[[HERE]]
// CHECK:           %[[WAIT:.*]] = arith.subi %{{.*}} : vector<4xi64>
// CHECK:           scf.for
// CHECK:             arith.cmpi sge, %{{.*}}, %[[WAIT]]
// CHECK:             tape.pop record(0) : vector<4xf32>
// CHECK:           llvm.intr.masked.store %{{.*}}, %[[MASK]]
// CHECK-NOT:     scf.for
// CHECK:         llvm.return
costate.kernel @ragged(%x: !costate.array<f32, 1>, %n: !costate.array<i64, 1>) {
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

// The side of a branch that has pushed last is the first to pop.
// CHECK-LABEL: llvm.func internal @branch.chunk0
// CHECK:         tape.push record(0)
// CHECK:         tape.push record(1)
// CHECK:         tape.pop record(1)
// CHECK:         tape.pop record(0)
costate.kernel @branch(%x: !costate.array<f32, 1>) {
  %zero = arith.constant 0.0 : f32
  %size = costate.extent %x[0] : !costate.array<f32, 1>
  costate.range (%i) in (%size) {
    %v = costate.load %x[%i] : !costate.array<f32, 1>
    %c = arith.cmpf olt, %v, %zero : f32
    scf.if %c {
      %s = costate.sin %v : f32
      tape.push record(0) %s : f32
    } else {
      %s = costate.cos %v : f32
      tape.push record(1) %s : f32
    }
    tape.pivot
    %g = scf.if %c -> f32 {
      %s = tape.pop record(0) : f32
      scf.yield %s : f32
    } else {
      %s = tape.pop record(1) : f32
      scf.yield %s : f32
    }
    costate.store %g, %x[%i] : !costate.array<f32, 1>
  }
}

// What all lanes share stays a scalar, and so does a record of it.
// CHECK-LABEL: llvm.func internal @shared.chunk0
// CHECK:         scf.for %{{.*}} step %c4_i64
// CHECK:         scf.for %[[J:.*]] = %{{.*}} to %{{.*}} step
// CHECK:           %[[P:.*]] = costate.load %{{.*}}[%[[J]]]
// CHECK:           tape.push record(0) %[[P]] : f32
// CHECK:         tape.pop record(0) : f32
// CHECK:         %[[SUM:.*]] = "llvm.intr.vector.reduce.fadd"
// CHECK:         costate.atomic_add %[[SUM]]
costate.kernel @shared(%x: !costate.array<f32, 1>, %p: !costate.array<f32, 1>,
                       %g: !costate.array<f32, 1>, %count: i64) {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %size = costate.extent %x[0] : !costate.array<f32, 1>
  costate.range (%i) in (%size) {
    scf.for %j = %c0 to %count step %c1 : i64 {
      %v = costate.load %p[%j] : !costate.array<f32, 1>
      tape.push record(0) %v : f32
    }
    tape.pivot
    scf.for %j = %c0 to %count step %c1 : i64 {
      %v = tape.pop record(0) : f32
      %w = costate.load %x[%i] : !costate.array<f32, 1>
      %m = arith.mulf %v, %w : f32
      costate.atomic_add %m, %g[%j] : !costate.array<f32, 1>
    }
  }
}

// An atomic with a result is made lane by lane.
// CHECK-LABEL: llvm.func internal @each.chunk0
// CHECK:         scf.while
// CHECK:           llvm.intr.cttz
// CHECK:           costate.atomic_fetch "add"
// CHECK:           llvm.insertelement
costate.kernel @each(%x: !costate.array<f32, 1>, %n: !costate.array<i32, 0>) {
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %size = costate.extent %x[0] : !costate.array<f32, 1>
  costate.range (%i) in (%size) {
    %v = costate.load %x[%i] : !costate.array<f32, 1>
    %c = arith.cmpf olt, %v, %zero : f32
    scf.if %c {
      %old = costate.atomic_fetch "add" %c1, %n[] : !costate.array<i32, 0>
      %f = arith.sitofp %old : i32 to f32
      costate.store %f, %x[%i] : !costate.array<f32, 1>
    }
  }
}

// 16 partial sums: 4 vectors, of which each is added to one after the other.
// CHECK-LABEL: llvm.func internal @sums.chunk0
// CHECK:         scf.for {{.*}} iter_args(%[[A:.*]] = %{{.*}}, %[[B:.*]] = %{{.*}}, %[[C:.*]] = %{{.*}}, %[[D:.*]] = %{{.*}}) -> (vector<4xf64>, vector<4xf64>, vector<4xf64>, vector<4xf64>)
// CHECK:           %[[SUM:.*]] = arith.addf %[[A]],
// CHECK:           scf.yield %[[B]], %[[C]], %[[D]], %[[SUM]]
// CHECK:         scf.for {{.*}} iter_args(%[[E:.*]] = %{{.*}}, %{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) ->
// CHECK:           %[[LAST:.*]] = arith.addf %[[E]],
// CHECK:           arith.select %{{.*}}, %[[LAST]], %[[E]]
costate.kernel @sums(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 0>) {
  %zero = arith.constant 0.0 : f64
  %size = costate.extent %x[0] : !costate.array<f64, 1>
  %sum = costate.range (%i) in (%size) -> f64 {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %c = arith.cmpf olt, %v, %zero : f64
    %t = scf.if %c -> f64 {
      %s = costate.sin %v : f64
      scf.yield %s : f64
    } else {
      scf.yield %v : f64
    }
    costate.yield %t : f64
  }
  costate.store %sum, %y[] : !costate.array<f64, 0>
}

// CHECK-LABEL: llvm.func internal @straight.chunk0
// CHECK-SAME:    costate.obstacle = "straight code, left to the loop vectoriser"
// CHECK-NOT:     vector<
costate.kernel @straight(%x: !costate.array<f64, 1>) {
  %size = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%size) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %s = arith.addf %v, %v : f64
    costate.store %s, %x[%i] : !costate.array<f64, 1>
  }
}

// A branch that undoes two others, between which the way there computes
// something: its records are not in one order.
// CHECK-LABEL: llvm.func internal @joined.chunk0
// CHECK-SAME:    costate.obstacle = "a branch that undoes several other ones"
costate.kernel @joined(%x: !costate.array<f32, 1>, %shared: i1) {
  %zero = arith.constant 0.0 : f32
  %size = costate.extent %x[0] : !costate.array<f32, 1>
  costate.range (%i) in (%size) {
    %v = costate.load %x[%i] : !costate.array<f32, 1>
    %c = arith.cmpf olt, %v, %zero : f32
    scf.if %c {
      %s = costate.sin %v : f32
      tape.push record(0) %s : f32
    } else {
      %s = costate.cos %v : f32
      tape.push record(1) %s : f32
    }
    scf.if %c {
      %s = costate.exp %v : f32
      tape.push record(2) %s : f32
    } else {
      %s = costate.log %v : f32
      tape.push record(3) %s : f32
    }
    tape.pivot
    %g = scf.if %c -> f32 {
      %s = tape.pop record(2) : f32
      %t = tape.pop record(0) : f32
      %m = costate.strong_mul %s, %t : f32
      scf.yield %m : f32
    } else {
      %s = tape.pop record(3) : f32
      %t = tape.pop record(1) : f32
      %m = costate.strong_mul %s, %t : f32
      scf.yield %m : f32
    }
    costate.store %g, %x[%i] : !costate.array<f32, 1>
  }
}

// Lanes that take the same side have the records of that side only.
// CHECK-LABEL: llvm.func internal @joined_shared.chunk0
// CHECK-SAME:    costate.vector_lanes = 4
costate.kernel @joined_shared(%x: !costate.array<f32, 1>, %shared: i1) {
  %zero = arith.constant 0.0 : f32
  %size = costate.extent %x[0] : !costate.array<f32, 1>
  costate.range (%i) in (%size) {
    %v = costate.load %x[%i] : !costate.array<f32, 1>
    scf.if %shared {
      %s = costate.sin %v : f32
      tape.push record(0) %s : f32
    } else {
      %s = costate.cos %v : f32
      tape.push record(1) %s : f32
    }
    scf.if %shared {
      %s = costate.exp %v : f32
      tape.push record(2) %s : f32
    } else {
      %s = costate.log %v : f32
      tape.push record(3) %s : f32
    }
    tape.pivot
    %g = scf.if %shared -> f32 {
      %s = tape.pop record(2) : f32
      %t = tape.pop record(0) : f32
      %m = costate.strong_mul %s, %t : f32
      scf.yield %m : f32
    } else {
      %s = tape.pop record(3) : f32
      %t = tape.pop record(1) : f32
      %m = costate.strong_mul %s, %t : f32
      scf.yield %m : f32
    }
    costate.store %g, %x[%i] : !costate.array<f32, 1>
  }
}

// The sides of a branch may be swapped on the way back.
// CHECK-LABEL: llvm.func internal @swapped.chunk0
// CHECK:         tape.push record(0)
// CHECK:         tape.push record(1)
// CHECK:         tape.pop record(1)
// CHECK:         tape.pop record(0)
costate.kernel @swapped(%x: !costate.array<f32, 1>, %shared: i1) {
  %zero = arith.constant 0.0 : f32
  %size = costate.extent %x[0] : !costate.array<f32, 1>
  costate.range (%i) in (%size) {
    %v = costate.load %x[%i] : !costate.array<f32, 1>
    %c = arith.cmpf olt, %v, %zero : f32
    %n = arith.cmpf uge, %v, %zero : f32
    scf.if %c {
      %s = costate.sin %v : f32
      tape.push record(0) %s : f32
    }
    scf.if %n {
      %s = costate.cos %v : f32
      tape.push record(1) %s : f32
    }
    tape.pivot
    %g = scf.if %n -> f32 {
      %s = tape.pop record(1) : f32
      scf.yield %s : f32
    } else {
      %s = tape.pop record(0) : f32
      scf.yield %s : f32
    }
    costate.store %g, %x[%i] : !costate.array<f32, 1>
  }
}

// Counts by a first iteration or step of each lane are not there.
// CHECK-LABEL: llvm.func internal @from.chunk0
// CHECK-SAME:    costate.obstacle = "the bounds of a loop"
costate.kernel @from(%x: !costate.array<f32, 1>, %n: !costate.array<i64, 1>,
                     %count: i64) {
  %c1 = arith.constant 1 : i64
  %size = costate.extent %x[0] : !costate.array<f32, 1>
  costate.range (%i) in (%size) {
    %v = costate.load %x[%i] : !costate.array<f32, 1>
    %from = costate.load %n[%i] : !costate.array<i64, 1>
    %r = scf.for %k = %from to %count step %c1 iter_args(%a = %v) -> f32 : i64 {
      %s = costate.sin %a : f32
      scf.yield %s : f32
    }
    costate.store %r, %x[%i] : !costate.array<f32, 1>
  }
}

// So is a call of a function that writes, if all lanes pass the same; one that
// only computes is made once.
// CHECK-LABEL: llvm.func internal @calls.chunk0
// CHECK:         func.call @half
// CHECK:         llvm.intr.cttz
// CHECK:         func.call @add
func.func private @add(%f: !costate.array<f32, 0>, %a: f32) {
  costate.atomic_add %a, %f[] : !costate.array<f32, 0>
  return
}
func.func private @half(%a: f32) -> f32 {
  %half = arith.constant 0.5 : f32
  %b = arith.mulf %a, %half : f32
  return %b : f32
}
costate.kernel @calls(%x: !costate.array<f32, 1>, %f: !costate.array<f32, 0>, %a: f32) {
  %zero = arith.constant 0.0 : f32
  %size = costate.extent %x[0] : !costate.array<f32, 1>
  costate.range (%i) in (%size) {
    %v = costate.load %x[%i] : !costate.array<f32, 1>
    %c = arith.cmpf olt, %v, %zero : f32
    scf.if %c {
      %b = func.call @half(%a) : (f32) -> f32
      func.call @add(%f, %b) : (!costate.array<f32, 0>, f32) -> ()
    }
  }
}

// The stack of a thread has place for few elements of each lane.
// CHECK-LABEL: llvm.func internal @large.chunk0
// CHECK-SAME:    costate.obstacle = "private arrays of more than 64 KiB"
costate.kernel @large(%x: !costate.array<f64, 1>, %n: !costate.array<i64, 1>) {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %size = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%size) {
    %a = costate.local : !costate.local<f64, 8192>
    %b = costate.local : !costate.local<f64, 1>
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %count = costate.load %n[%i] : !costate.array<i64, 1>
    scf.for %k = %c0 to %count step %c1 : i64 {
      costate.local_store %v, %a[%k] : !costate.local<f64, 8192>
      costate.local_store %v, %b[%c0] : !costate.local<f64, 1>
    }
  }
}

// CHECK-LABEL: llvm.func internal @least.chunk0
// CHECK-SAME:    costate.obstacle = "a minimum over the range"
costate.kernel @least(%x: !costate.array<i64, 1>, %y: !costate.array<i64, 0>) {
  %n = costate.extent %x[0] : !costate.array<i64, 1>
  %least:2 = costate.range (%i) in (%n) -> (i64, i64) attributes {minima} {
    %v = costate.load %x[%i] : !costate.array<i64, 1>
    costate.yield %v, %i : i64, i64
  }
  costate.store %least#1, %y[] : !costate.array<i64, 0>
}
