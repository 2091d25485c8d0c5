// RUN: costate-opt %s --place-tapes --canonicalize --cse | FileCheck %s

// Iterations of two rows, of a segment that may start anywhere: one and then two, as
// the bits of their number say, then batches of four; within a batch the last
// iteration first, with what that iteration has written.
// CHECK:         tape.report
// CHECK:         scf.for {{.*}}, %[[FIRST:.*]] = %{{.*}}, %[[END:.*]] = %{{.*}}) -> (f64, i32, i32)
// CHECK:           %[[START:.*]] = arith.select %{{.*}}, %c0_i32, %{{.*}} : i32
// CHECK:           tape.write
// CHECK:           %[[HERE:.*]] = arith.minui %[[OWN:.*]], %[[END]]
// CHECK-NEXT:      %[[AFTER:.*]] = arith.maxui %[[HERE]], %[[FIRST]]
// CHECK-NEXT:      %[[MINE:.*]] = arith.subi %[[AFTER]], %[[FIRST]]
// CHECK-NEXT:      %[[COUNT:.*]] = arith.subi %[[END]], %[[FIRST]]

// CHECK-NEXT:      %[[BIT:.*]] = arith.andi %[[COUNT]], %c1_i32
// CHECK-NEXT:      %[[SOME:.*]] = arith.cmpi ne, %[[BIT]], %c0_i32
// CHECK-NEXT:      %[[ONE:.*]] = scf.if %[[SOME]]
// CHECK-NEXT:        %[[ROWS:.*]] = arith.muli %[[COUNT]], %c2_i32
// CHECK-NEXT:        %[[ROW:.*]] = arith.addi %[[START]], %[[ROWS]]
// CHECK-NEXT:        %[[AT:.*]] = arith.subi %[[ROW]], %c2_i32
// CHECK-NEXT:        %[[READ:.*]] = tape.read %[[AT]]
// CHECK-NEXT:        %[[MORE:.*]] = arith.subi %[[MINE]], %[[COUNT]]
// CHECK-NEXT:        %[[RUNS:.*]] = arith.cmpi sgt, %[[MORE]], %c-1_i32
// CHECK-NEXT:        %[[PLACE:.*]] = arith.subi %[[COUNT]], %c1_i32
// CHECK-NEXT:        %[[LAST:.*]] = arith.subi %[[OWN]], %c1_i32
// CHECK-NEXT:        %[[FROM:.*]] = arith.subi %[[LAST]], %[[FIRST]]
// CHECK-NEXT:        %[[K:.*]] = arith.subi %[[FROM]], %[[PLACE]]
// CHECK-NEXT:        arith.extui %[[K]]
// CHECK:             arith.addf %[[READ]],
// CHECK:             arith.select %[[RUNS]],

// CHECK:           %[[EVEN:.*]] = arith.andi %[[COUNT]], %c-2_i32
// CHECK-NEXT:      %[[BIT:.*]] = arith.andi %[[COUNT]], %c2_i32
// CHECK-NEXT:      %[[SOME:.*]] = arith.cmpi ne, %[[BIT]], %c0_i32
// CHECK-NEXT:      %[[TWO:.*]] = scf.if %[[SOME]]
// CHECK-NEXT:        %[[ROWS:.*]] = arith.muli %[[EVEN]], %c2_i32
// CHECK-NEXT:        %[[ROW:.*]] = arith.addi %[[START]], %[[ROWS]]
// CHECK-NEXT:        %[[AT:.*]] = arith.subi %[[ROW]], %c2_i32
// CHECK-NEXT:        %[[READ:.*]] = tape.read %[[AT]]
// CHECK-NEXT:        %[[AT:.*]] = arith.subi %[[ROW]], %c4_i32
// CHECK-NEXT:        %[[NEXT:.*]] = tape.read %[[AT]]
// CHECK-NEXT:        tape.ahead
// CHECK:             arith.addf %[[READ]],
// CHECK:             arith.addf %[[NEXT]],

// CHECK:           %[[FOURS:.*]] = arith.andi %[[COUNT]], %c-4_i32
// CHECK-NEXT:      %[[ROWS:.*]] = arith.muli %[[FOURS]], %c2_i32
// CHECK-NEXT:      %[[ROW:.*]] = arith.addi %[[START]], %[[ROWS]]
// CHECK-NEXT:      scf.while (%{{.*}} = %[[TWO]], %[[LEFT:.*]] = %[[FOURS]], %[[TO:.*]] = %[[ROW]])
// CHECK-NEXT:        arith.cmpi ugt, %[[LEFT]], %c0_i32
// CHECK:           ^bb0(%{{.*}}: f64, %[[LEFT:.*]]: i32, %[[TO:.*]]: i32):
// CHECK:             %[[AT:.*]] = arith.subi %[[TO]], %c8_i32
// CHECK-NEXT:        %[[READ:.*]] = tape.read %[[AT]]
// CHECK:             %[[PLACE:.*]] = arith.subi %[[LEFT]], %c4_i32
// CHECK:             arith.addf %[[READ]],
// CHECK:             scf.yield %{{.*}}, %[[PLACE]], %[[AT]] : f64, i32, i32
costate.kernel @iterations(%x: !costate.array<f64, 1>, %n: !costate.array<i64, 1>, %g: !costate.array<f64, 1>) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %f1 = arith.constant 1.0 : f64
  %e = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%e) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %t = costate.load %n[%i] : !costate.array<i64, 1>
    %r = scf.for %k = %zero to %t step %one iter_args(%a = %v) -> (f64) : i64 {
      %q = costate.sin %a : f64
      tape.push record(0) %a : f64
      scf.yield %q : f64
    } {tape.pair = 0 : i64}
    tape.pivot
    %s = scf.for %k = %zero to %t step %one iter_args(%h = %f1) -> (f64) : i64 {
      %a = tape.pop record(0) : f64
      %w = arith.sitofp %k : i64 to f64
      %c = arith.addf %a, %w : f64
      %m = costate.strong_mul %h, %c : f64
      scf.yield %m : f64
    } {tape.pair = 0 : i64}
    costate.atomic_add exclusive %s, %g[%i] : !costate.array<f64, 1>
  }
}
