// RUN: costate-opt %s --differentiate-reverse=final-state | FileCheck %s

// RULE: needed-values
// Overwritten, but the reverse does not need the old value.
// CHECK: @linear.grad
costate.kernel @linear(%x: !costate.array<f64, 1>) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  %two = arith.constant 2.0 : f64
  costate.range (%i) in (%n) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %w = arith.mulf %v, %two : f64
    costate.store %w, %x[%i] : !costate.array<f64, 1>
  }
}

// RULE: final-state
// Slice t is read, slice t+1 written, in a loop, and by a scalar argument.
// CHECK: @time.grad
costate.kernel @time(%u: !costate.array<f64, 2>) {
  %n = costate.extent %u[1] : !costate.array<f64, 2>
  %m = costate.extent %u[0] : !costate.array<f64, 2>
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  costate.range (%i) in (%n) {
    scf.for %t = %zero to %m step %one : i64 {
      %s = arith.addi %t, %one : i64
      %v = costate.load %u[%t, %i] : !costate.array<f64, 2>
      %w = costate.sin %v : f64
      costate.store %w, %u[%s, %i] : !costate.array<f64, 2>
    }
  }
}

// RULE: final-state
// CHECK: @step.grad
costate.kernel @step(%u: !costate.array<f64, 2>, %at: i32) {
  %n = costate.extent %u[1] : !costate.array<f64, 2>
  %one32 = arith.constant 1 : i32
  %next = arith.addi %at, %one32 : i32
  %from = arith.extsi %at : i32 to i64
  %to = arith.extsi %next : i32 to i64
  costate.range (%i) in (%n) {
    %v = costate.load %u[%from, %i] : !costate.array<f64, 2>
    %w = costate.sin %v : f64
    costate.store %w, %u[%to, %i] : !costate.array<f64, 2>
  }
}

// RULE: final-state
// Written first, read later.
// CHECK: @reload.grad
costate.kernel @reload(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>, %s: !costate.array<f64, 0>) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%n) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %w = costate.sin %v : f64
    costate.store %w, %y[%i] : !costate.array<f64, 1>
  }
  costate.range (%i) in (%n) {
    %v = costate.load %y[%i] : !costate.array<f64, 1>
    %w = costate.sin %v : f64
    costate.atomic_add %w, %s[] : !costate.array<f64, 0>
  }
}

// RULE: final-state
// Through time in the outer of two loops; the inner one may touch any element
// of the slice.
// CHECK: @sweep.grad
costate.kernel @sweep(%u: !costate.array<f64, 2>, %to: !costate.array<i64, 1>) {
  %n = costate.extent %u[1] : !costate.array<f64, 2>
  %m = costate.extent %u[0] : !costate.array<f64, 2>
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  scf.for %t = %zero to %m step %one : i64 {
    %s = arith.addi %t, %one : i64
    scf.for %i = %zero to %n step %one : i64 {
      %j = costate.load %to[%i] : !costate.array<i64, 1>
      %v = costate.load %u[%t, %j] : !costate.array<f64, 2>
      %w = costate.sin %v : f64
      costate.store %w, %u[%s, %i] : !costate.array<f64, 2>
    }
  }
}

// RULE: final-state
// Through time in a loop that may be left early: a while with a counter.
// CHECK: @until.grad
costate.kernel @until(%u: !costate.array<f64, 1>) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %f9 = arith.constant 9.0 : f64
  %no = arith.constant false
  %r:2 = scf.while (%t = %zero, %done = %no) : (i64, i1) -> (i64, i1) {
    %true = arith.constant true
    %go = arith.xori %done, %true : i1
    scf.condition(%go) %t, %done : i64, i1
  } do {
  ^bb0(%t: i64, %done: i1):
    %s = arith.addi %t, %one : i64
    %v = costate.load %u[%t] : !costate.array<f64, 1>
    %w = costate.exp %v : f64
    costate.store %w, %u[%s] : !costate.array<f64, 1>
    %big = arith.cmpf ogt, %w, %f9 : f64
    scf.yield %s, %big : i64, i1
  }
}

// RULE: final-state
// Elements of different work items that do not meet: every second one, another
// slice, fewer work items than the distance.
// CHECK: @apart.grad
costate.kernel @apart(%x: !costate.array<f64, 1>, %u: !costate.array<f64, 2>, %t: i64) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  %one = arith.constant 1 : i64
  %two = arith.constant 2 : i64
  %s = arith.addi %t, %one : i64
  costate.range (%i) in (%n) {
    %even = arith.muli %i, %two : i64
    %odd = arith.addi %even, %one : i64
    %v = costate.load %x[%odd] : !costate.array<f64, 1>
    costate.store %v, %x[%even] : !costate.array<f64, 1>
    %j = arith.addi %i, %one : i64
    %w = costate.load %u[%t, %j] : !costate.array<f64, 2>
    costate.store %w, %u[%s, %i] : !costate.array<f64, 2>
  }
  costate.range (%i) in (%two) {
    %j = arith.addi %i, %two : i64
    %v = costate.load %x[%j] : !costate.array<f64, 1>
    costate.store %v, %x[%i] : !costate.array<f64, 1>
  }
}

// RULE: final-state
// A later part overwrites another constant element, and another row of a scalar
// argument.
// CHECK: @other_element.grad
costate.kernel @other_element(%x: !costate.array<f64, 1>, %u: !costate.array<f64, 2>, %t: i64, %s: !costate.array<f64, 0>) {
  %n = costate.extent %u[1] : !costate.array<f64, 2>
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %next = arith.addi %t, %one : i64
  %f0 = arith.constant 0.0 : f64
  %v = costate.load %x[%zero] : !costate.array<f64, 1>
  %w = costate.sin %v : f64
  costate.atomic_add %w, %s[] : !costate.array<f64, 0>
  costate.range (%i) in (%n) {
    %a = costate.load %u[%t, %i] : !costate.array<f64, 2>
    %b = costate.sin %a : f64
    costate.atomic_add %b, %s[] : !costate.array<f64, 0>
  }
  costate.range (%i) in (%n) {
    costate.store %f0, %u[%next, %i] : !costate.array<f64, 2>
  }
  costate.store %f0, %x[%one] : !costate.array<f64, 1>
}

// RULE: final-state
// The same work item stores first and reads then.
// CHECK: @own_store.grad
costate.kernel @own_store(%x: !costate.array<f64, 1>, %at: !costate.array<i64, 1>, %s: !costate.array<f64, 0>) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  %f0 = arith.constant 2.0 : f64
  costate.range (%i) in (%n) {
    %j = costate.load %at[%i] : !costate.array<i64, 1>
    costate.store %f0, %x[%j] : !costate.array<f64, 1>
    %v = costate.load %x[%j] : !costate.array<f64, 1>
    %w = costate.sin %v : f64
    costate.atomic_add %w, %s[] : !costate.array<f64, 0>
  }
}

// RULE: final-state
// One side of a branch does not run after the other.
// CHECK: @sides.grad
costate.kernel @sides(%x: !costate.array<f64, 1>, %c: i1, %s: !costate.array<f64, 0>) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  %f0 = arith.constant 0.0 : f64
  costate.range (%i) in (%n) {
    scf.if %c {
      %v = costate.load %x[%i] : !costate.array<f64, 1>
      %w = costate.sin %v : f64
      costate.atomic_add %w, %s[] : !costate.array<f64, 0>
    } else {
      costate.store %f0, %x[%i] : !costate.array<f64, 1>
    }
  }
}

// RULE: final-state
// With strides: even elements are read, odd ones stored; or what is stored was
// read in earlier iterations only.
// CHECK: @strides.grad
costate.kernel @strides(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %two = arith.constant 2 : i64
  %four = arith.constant 4 : i64
  scf.for %t = %zero to %n step %one : i64 {
    %even = arith.muli %t, %two : i64
    %odd = arith.addi %even, %one : i64
    %v = costate.load %x[%even] : !costate.array<f64, 1>
    %w = costate.sin %v : f64
    costate.store %w, %x[%odd] : !costate.array<f64, 1>
    %ahead = arith.addi %even, %four : i64
    %a = costate.load %y[%even] : !costate.array<f64, 1>
    %b = costate.sin %a : f64
    costate.store %b, %y[%ahead] : !costate.array<f64, 1>
  }
}

// RULE: needed-values
// What is carried from one iteration to the next, and never used, needs nothing.
// CHECK: @carried.grad
costate.kernel @carried(%x: !costate.array<f64, 1>) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  costate.range (%i) in (%n) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %p = scf.for %k = %zero to %n step %one iter_args(%q = %v) -> (f64) : i64 {
      %w = costate.load %x[%i] : !costate.array<f64, 1>
      %r = arith.mulf %q, %w : f64
      scf.yield %r : f64
    }
    %d = arith.addf %v, %v : f64
    costate.store %d, %x[%i] : !costate.array<f64, 1>
  }
}

// RULE: ranges
// Iterations of serial code: row t is read, row t+1 written, by any work item.
// CHECK: @iterations.grad
costate.kernel @iterations(%u: !costate.array<f64, 2>) {
  %n = costate.extent %u[1] : !costate.array<f64, 2>
  %m = costate.extent %u[0] : !costate.array<f64, 2>
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  scf.for %t = %zero to %m step %one : i64 {
    %s = arith.addi %t, %one : i64
    costate.range (%i) in (%n) {
      %v = costate.load %u[%t, %zero] : !costate.array<f64, 2>
      %w = costate.sin %v : f64
      costate.store %w, %u[%s, %i] : !costate.array<f64, 2>
    }
  }
}

// RULE: ranges
// The same with a 32-bit counter, which cannot wrap.
// CHECK: @iterations_of_while.grad
costate.kernel @iterations_of_while(%u: !costate.array<f64, 2>, %stop: !costate.array<f64, 1>) {
  %n = costate.extent %u[1] : !costate.array<f64, 2>
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %most = arith.constant 9 : i32
  %first = arith.constant 0 : i64
  %limit = arith.constant 1.0 : f64
  %off = arith.constant false
  %end:2 = scf.while (%t = %zero, %done = %off) : (i32, i1) -> (i32, i1) {
    %more = scf.if %done -> (i1) {
      scf.yield %off : i1
    } else {
      %below = arith.cmpi slt, %t, %most : i32
      scf.yield %below : i1
    }
    scf.condition(%more) %t, %done : i32, i1
  } do {
  ^bb0(%t: i32, %done: i1):
    %row = arith.extsi %t : i32 to i64
    %next = arith.addi %t, %one : i32
    %below = arith.extsi %next : i32 to i64
    costate.range (%i) in (%n) {
      %v = costate.load %u[%row, %first] : !costate.array<f64, 2>
      %w = costate.sin %v : f64
      costate.store %w, %u[%below, %i] : !costate.array<f64, 2>
    }
    %v = costate.load %u[%below, %first] : !costate.array<f64, 2>
    %is = arith.cmpf olt, %v, %limit : f64
    scf.yield %next, %is : i32, i1
  }
}

// RULE: final-state
// Slice 0 is read, slices after it are written: an index of a loop is never
// negative.
// CHECK: @first.grad
costate.kernel @first(%u: !costate.array<f64, 2>, %s: !costate.array<f64, 0>) {
  %n = costate.extent %u[1] : !costate.array<f64, 2>
  %m = costate.extent %u[0] : !costate.array<f64, 2>
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  costate.range (%i) in (%n) {
    %v = costate.load %u[%zero, %i] : !costate.array<f64, 2>
    %w = costate.sin %v : f64
    costate.atomic_add %w, %s[] : !costate.array<f64, 0>
  }
  scf.for %t = %zero to %m step %one : i64 {
    %next = arith.addi %t, %one : i64
    costate.range (%i) in (%n) {
      %v = costate.load %u[%t, %i] : !costate.array<f64, 2>
      %w = costate.sin %v : f64
      costate.store %w, %u[%next, %i] : !costate.array<f64, 2>
    }
  }
}
