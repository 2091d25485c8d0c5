// RUN: costate-opt %s --prune | FileCheck %s

// %s only feeds itself; so does the load after it.
// CHECK-LABEL: costate.kernel @carried
// CHECK:         scf.for {{.*}} iter_args(%{{[a-z0-9]+}} = %{{[a-z0-9_]+}}) -> (f64)
// CHECK-NOT:       costate.load
// CHECK:         costate.store
costate.kernel @carried(%x: !costate.array<f64, 1>, %v: f64) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  %s, %w = scf.for %k = %zero to %n step %one iter_args(%a = %v, %b = %v) -> (f64, f64) : i64 {
    %l = costate.load %x[%k] : !costate.array<f64, 1>
    %c = arith.addf %a, %l : f64
    %d = arith.mulf %b, %b : f64
    scf.yield %c, %d : f64, f64
  }
  costate.store %w, %x[%zero] : !costate.array<f64, 1>
}

// CHECK-LABEL: costate.kernel @forwarded
// CHECK:         scf.while (%{{.*}} = %{{.*}}) : (i64) -> i64
costate.kernel @forwarded(%x: !costate.array<i64, 1>, %v: f64, %m: i64) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %f, %k = scf.while (%a = %v, %i = %zero) : (f64, i64) -> (f64, i64) {
    %c = arith.cmpi slt, %i, %m : i64
    scf.condition(%c) %a, %i : f64, i64
  } do {
  ^bb0(%a: f64, %i: i64):
    %b = costate.sin %a : f64
    %j = arith.addi %i, %one : i64
    scf.yield %b, %j : f64, i64
  }
  costate.store %k, %x[%zero] : !costate.array<i64, 1>
}

// CHECK-LABEL: costate.kernel @branches
// CHECK:         scf.if %{{.*}} -> (f64) {
// CHECK-NEXT:      scf.yield
costate.kernel @branches(%x: !costate.array<f64, 0>, %c: i1, %v: f64) {
  %p, %q = scf.if %c -> (f64, f64) {
    %s = costate.sin %v : f64
    scf.yield %s, %v : f64, f64
  } else {
    %t = costate.cos %v : f64
    %u = costate.exp %v : f64
    scf.yield %t, %u : f64, f64
  }
  costate.store %q, %x[] : !costate.array<f64, 0>
}

// CHECK-LABEL: costate.kernel @nothing
// CHECK-NEXT:    costate.return
costate.kernel @nothing(%x: !costate.array<f64, 1>) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%n) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %w = costate.sin %v : f64
  }
}

// Nobody uses %q and the second record after their pops.
// CHECK-LABEL: costate.kernel @records
// CHECK:         tape.push record(0) %{{.*}} : f64
// CHECK-NOT:     tape.push
// CHECK:         tape.pop record(0) : f64
// CHECK-NOT:     tape.pop
costate.kernel @records(%x: !costate.array<f64, 1>, %n: i64) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  scf.for %k = %zero to %n step %one : i64 {
    %v = costate.load %x[%k] : !costate.array<f64, 1>
    %w = costate.sin %v : f64
    tape.push record(0) %v, %w : f64, f64
  }
  scf.for %k = %zero to %n step %one : i64 {
    %v = costate.load %x[%k] : !costate.array<f64, 1>
    tape.push record(1) %v : f64
  }
  tape.pivot
  scf.for %k = %zero to %n step %one : i64 {
    %v = tape.pop record(1) : f64
    %w = costate.cos %v : f64
  }
  scf.for %k = %zero to %n step %one : i64 {
    %p, %q = tape.pop record(0) : f64, f64
    costate.store %p, %x[%k] : !costate.array<f64, 1>
  }
}

// Passes may see that one end of a record is never reached before they see it
// of the other one.
// CHECK-LABEL: costate.kernel @one_end
// CHECK-NOT:     tape.push
// CHECK:         tape.pop record(1) : f64
costate.kernel @one_end(%x: !costate.array<f64, 1>, %n: i64, %never: i1) {
  %zero = arith.constant 0 : i64
  scf.if %never {
    %v = costate.load %x[%zero] : !costate.array<f64, 1>
    tape.push record(0) %v : f64
  }
  tape.pivot
  scf.if %never {
    %p = tape.pop record(1) : f64
    costate.store %p, %x[%zero] : !costate.array<f64, 1>
  }
}
