// RUN: costate-opt %s --outline-ranges --expand-checks --expand-tape --convert-scf-to-cf --convert-kernel-to-llvm | FileCheck %s
// RUN: costate-opt %s --outline-ranges --expand-checks --expand-tape --convert-scf-to-cf --convert-kernel-to-llvm=maths=sse2 | FileCheck %s --check-prefix=SSE2
// RUN: costate-opt %s --outline-ranges --expand-checks --expand-tape --convert-scf-to-cf --convert-kernel-to-llvm=maths=neon | FileCheck %s
// RUN: costate-opt %s --outline-ranges --expand-checks --expand-tape --convert-scf-to-cf --convert-kernel-to-llvm=maths=libm | FileCheck %s --check-prefix=LIBM
// RUN: costate-opt %s --outline-ranges --expand-checks --expand-tape --convert-scf-to-cf --convert-kernel-to-llvm=maths=libclc | FileCheck %s --check-prefix=LIBCLC
// RUN: costate-opt %s --outline-ranges --convert-scf-to-cf --convert-kernel-to-llvm=deterministic | FileCheck %s --check-prefix=ORDERED
// RUN: costate-opt %s --outline-ranges --convert-scf-to-cf '--convert-kernel-to-llvm=maths=libclc fast-math' | FileCheck %s --check-prefix=FAST
// RUN: not costate-opt %s --convert-kernel-to-llvm=maths=abacus 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// UNKNOWN: unknown family of functions: abacus

// CHECK: llvm.func @costate_host_expd1(f64) -> f64
// CHECK-SAME: "vector-function-abi-variant", "_ZGV_LLVM_N2v_costate_host_expd1(costate_host_expd2),_ZGV_LLVM_N4v_costate_host_expd1(costate_host_expd4),_ZGV_LLVM_N8v_costate_host_expd1(costate_host_expd8),_ZGV_LLVM_N16v_costate_host_expd1(costate_host_expd16)"
// CHECK-LABEL: llvm.func @maths.entry(
// CHECK: llvm.call @costate_host_expd1
// SSE2: llvm.func @Sleef_cinz_expd1_u10purec(f64) -> f64
// SSE2-SAME: "vector-function-abi-variant", "_ZGV_LLVM_N2v_Sleef_cinz_expd1_u10purec(Sleef_cinz_expd2_u10sse2)"
// SSE2-LABEL: llvm.func @maths.entry(
// SSE2: llvm.call @Sleef_cinz_expd1_u10purec
// CHECK: llvm.call @pow(
// CHECK: llvm.intr.sqrt
// CHECK: llvm.fdiv
// LIBM-LABEL: llvm.func @maths.entry(
// LIBM: llvm.call @exp(
// LIBCLC: llvm.func @_Z3powdd(f64, f64) -> f64
// LIBCLC-SAME: passthrough = ["nobuiltin"]
// LIBCLC-LABEL: llvm.func @maths.entry(
// LIBCLC: llvm.call @_Z3expd(
// LIBCLC: llvm.call @_Z3powdd(
costate.kernel @maths(%x: f64, %y: !costate.array<f64, 0>) {
  %0 = costate.exp %x : f64
  %1 = costate.powf %0, %x : f64
  %2 = costate.rsqrt %1 : f64
  costate.store %2, %y[] : !costate.array<f64, 0>
}

// Of f32, `fast-math` takes NVIDIA's instructions; of f64 it has none, and LLVM's
// own division would lose quotients by large numbers.
// FAST: llvm.func @_Z3sind(f64)
// FAST-NOT: @_Z3sinf
// FAST-LABEL: llvm.func @approximate.entry(
// FAST: llvm.call_intrinsic "llvm.nvvm.sin.approx.f"
// FAST: llvm.call_intrinsic "llvm.nvvm.cos.approx.f"
// FAST: %[[X:.*]] = llvm.fmul %{{.*}}, %{{.*}} : f32
// FAST: llvm.call_intrinsic "llvm.nvvm.ex2.approx"(%[[X]])
// FAST: llvm.call_intrinsic "llvm.nvvm.ex2.approx"
// FAST: %[[L:.*]] = llvm.call_intrinsic "llvm.nvvm.lg2.approx.f"
// FAST: llvm.fmul %[[L]], %{{.*}} : f32
// FAST: llvm.call_intrinsic "llvm.nvvm.lg2.approx.f"
// FAST: llvm.call_intrinsic "llvm.nvvm.lg2.approx.f"
// FAST: llvm.call_intrinsic "llvm.nvvm.rsqrt.approx.f"
// FAST: llvm.call_intrinsic "llvm.nvvm.div.full"
// FAST: llvm.intr.sqrt(%{{.*}}) {fastmathFlags = #llvm.fastmath<{{.*}}afn
// FAST: llvm.call @_Z3sind(
// FAST: llvm.fdiv {{.*}} : f64
costate.kernel @approximate(%x: f32, %d: f64, %y: !costate.array<f32, 0>, %z: !costate.array<f64, 0>) {
  %0 = costate.sin %x : f32
  %1 = costate.cos %0 : f32
  %2 = costate.exp %1 : f32
  %3 = costate.exp2 %2 : f32
  %4 = costate.log %3 : f32
  %5 = costate.log2 %4 : f32
  %6 = costate.log10 %5 : f32
  %7 = costate.rsqrt %6 : f32
  %8 = arith.divf %7, %x : f32
  %9 = math.sqrt %8 : f32
  costate.store %9, %y[] : !costate.array<f32, 0>
  %10 = costate.sin %d : f64
  %11 = arith.divf %10, %d : f64
  costate.store %11, %z[] : !costate.array<f64, 0>
}

// Serial code adds without atomics; so do an exclusive addition and a thread
// that is alone. Adding 0 changes nothing but an element of -0.
// CHECK-LABEL: llvm.func @adds.entry(
// CHECK: llvm.fadd
// CHECK-NOT: llvm.atomicrmw
// CHECK-LABEL: llvm.func internal @adds.chunk0(
// CHECK: llvm.icmp "ne"
// CHECK: %[[FLAG:.*]] = llvm.load %{{.*}} : !llvm.ptr -> i64
// CHECK: %[[ALONE:.*]] = llvm.icmp "ne" %[[FLAG]]
// CHECK: llvm.cond_br %[[ALONE]], ^[[PLAIN:.*]], ^[[SHARED:[^ ]*]]
// CHECK: ^[[PLAIN]]:
// CHECK: llvm.fadd
// CHECK: ^[[SHARED]]:
// CHECK: %[[IS_ZERO:.*]] = llvm.fcmp "oeq" %[[V:.*]], %{{.*}} : f64
// CHECK: llvm.cond_br %[[IS_ZERO]], ^[[LOOK:.*]], ^[[ADD:[^ ]*]]
// CHECK: ^[[LOOK]]:
// CHECK: %[[SIGN:.*]] = llvm.mlir.constant(-9223372036854775808 : i64)
// CHECK: %[[NOW:.*]] = llvm.load %[[PLACE:.*]] atomic monotonic {{.*}} -> i64
// CHECK: %[[CHANGES:.*]] = llvm.icmp "eq" %[[NOW]], %[[SIGN]]
// CHECK: llvm.cond_br %[[CHANGES]], ^[[ADD]], ^[[END:.*]]
// CHECK: ^[[ADD]]:
// CHECK: llvm.atomicrmw fadd %[[PLACE]], %[[V]] monotonic
// CHECK: llvm.br ^[[END]]
// CHECK: llvm.atomicrmw add %{{.*}}, %{{.*}} monotonic
// CHECK: llvm.fadd
// ORDERED-LABEL: llvm.func internal @adds.chunk0(
// ORDERED: llvm.call @costate_add_later_f64
// ORDERED: llvm.atomicrmw add
// ORDERED-NOT: costate_add_later
costate.kernel @adds(%n: i64, %x: !costate.array<f64, 1>, %k: !costate.array<i32, 0>, %v: f64, %w: i32) {
  %c0 = arith.constant 0 : i64
  costate.atomic_add %v, %x[%c0] : !costate.array<f64, 1>
  costate.range (%i) in (%n) {
    costate.atomic_add %v, %x[%c0] : !costate.array<f64, 1>
    costate.atomic_add %w, %k[] : !costate.array<i32, 0>
    costate.atomic_add exclusive %v, %x[%i] : !costate.array<f64, 1>
  }
}

// A minimum compares before it exchanges; unsigned integers compare unsigned.
// CHECK-LABEL: llvm.func @extrema.entry(
// CHECK-NOT: llvm.cmpxchg
// CHECK-LABEL: llvm.func internal @extrema.chunk0(
// CHECK: %[[FIRST:.*]] = llvm.load %{{.*}} atomic monotonic {{.*}} -> i64
// CHECK: llvm.br ^[[TEST:bb[0-9]+]](%[[FIRST]] : i64)
// CHECK: ^[[TEST]](%[[OLD:.*]]: i64):
// CHECK: %[[ELEMENT:.*]] = llvm.bitcast %[[OLD]] : i64 to f64
// CHECK: llvm.fcmp "ord"
// CHECK: llvm.fcmp "ult" %{{.*}}, %[[ELEMENT]]
// CHECK: llvm.cond_br %{{.*}}, ^[[EXCHANGE:bb[0-9]+]], ^[[END:bb[0-9]+]]
// CHECK: ^[[EXCHANGE]]:
// CHECK: %[[FOUND:.*]] = llvm.cmpxchg %{{.*}}, %[[OLD]], %{{.*}} monotonic monotonic
// CHECK: %[[SEEN:.*]] = llvm.extractvalue %[[FOUND]][0]
// CHECK: llvm.cond_br %{{.*}}, ^[[END]], ^[[TEST]](%[[SEEN]] : i64)
// CHECK: llvm.icmp "ugt"
// CHECK: llvm.atomicrmw xchg %{{.*}}, %{{.*}} monotonic {{.*}}f64
costate.kernel @extrema(%n: i64, %x: !costate.array<f64, 1>, %k: !costate.array<ui32, 0>, %v: f64, %w: i32) {
  %c0 = arith.constant 0 : i64
  costate.atomic_min %v, %x[%c0] : !costate.array<f64, 1>
  costate.range (%i) in (%n) {
    costate.atomic_min %v, %x[%c0] : !costate.array<f64, 1>
    costate.atomic_max exclusive %w, %k[] : !costate.array<ui32, 0>
    %g = costate.atomic_take %x[%i] : !costate.array<f64, 1>
    costate.atomic_add exclusive %g, %x[%i] : !costate.array<f64, 1>
  }
}

// Bools take a byte; strong_mul is a select, between the product and the adjoint
// where instructions have conditions; conversions saturate.
// LIBCLC-LABEL: llvm.func @scalars.entry(
// LIBCLC: %[[P:.*]] = llvm.fmul %[[G:.*]], %{{.*}} : f64
// LIBCLC: %[[Z:.*]] = llvm.fcmp "oeq" %[[G]], %[[ZERO:.*]] : f64
// LIBCLC: llvm.select %[[Z]], %[[G]], %[[P]]
// LIBCLC: %[[Q:.*]] = llvm.fmul
// LIBCLC: llvm.select %{{.*}}, %{{.*}}, %[[Q]]
// CHECK-LABEL: llvm.func @scalars.entry(
// CHECK: %[[BYTE:.*]] = llvm.load %{{.*}} : !llvm.ptr -> i8
// CHECK: llvm.icmp "ne" %[[BYTE]]
// CHECK: %[[P:.*]] = llvm.fmul
// CHECK: %[[COUNTS:.*]] = llvm.fcmp "une"
// CHECK: llvm.select %[[COUNTS]], %[[P]], %{{.*}}
// CHECK: %[[Q:.*]] = llvm.fmul
// CHECK: %[[ZG:.*]] = llvm.fcmp "oeq"
// CHECK: %[[ZF:.*]] = llvm.fcmp "oeq"
// CHECK: %[[ANY:.*]] = llvm.or %[[ZG]], %[[ZF]]
// CHECK: llvm.select %[[ANY]], %{{.*}}, %[[Q]]
// CHECK: llvm.call_intrinsic "llvm.fptosi.sat"
// CHECK: llvm.zext %{{.*}} : i1 to i8
costate.kernel @scalars(%b: !costate.array<i1, 0>, %g: f64, %f: f64, %y: !costate.array<i32, 0>, %z: !costate.array<f64, 0>) {
  %0 = costate.load %b[] : !costate.array<i1, 0>
  %1 = costate.strong_mul %g, %f : f64
  costate.store %1, %z[] : !costate.array<f64, 0>
  %3 = costate.strong_mul symmetric %g, %f : f64
  costate.store %3, %z[] : !costate.array<f64, 0>
  %2 = costate.to_int %g : f64 to i32
  costate.store %2, %y[] : !costate.array<i32, 0>
  costate.store %0, %b[] : !costate.array<i1, 0>
}

// Atomics that return what the element was.
// CHECK-LABEL: llvm.func internal @fetches.chunk0(
// CHECK:         llvm.atomicrmw add %{{.*}}, %{{.*}} monotonic
// CHECK:         llvm.atomicrmw _and
// CHECK:         llvm.atomicrmw _or
// CHECK:         llvm.atomicrmw _xor
// CHECK:         llvm.atomicrmw xchg
// CHECK:         llvm.icmp "ugt"
// CHECK:         llvm.cmpxchg
// CHECK:         llvm.atomicrmw fadd
// CHECK:         %[[BITS:.*]] = llvm.bitcast %{{.*}} : f64 to i64
// CHECK:         %[[FOUND:.*]] = llvm.cmpxchg %{{.*}}, %[[BITS]], %{{.*}} monotonic monotonic
// CHECK:         llvm.extractvalue %[[FOUND]][0]
costate.kernel @fetches(%x: !costate.array<ui32, 1>, %f: !costate.array<f64, 0>, %a: i32, %b: f64) {
  %n = costate.extent %x[0] : !costate.array<ui32, 1>
  costate.range (%i) in (%n) {
    %c = costate.atomic_fetch "add" %a, %x[%i] : !costate.array<ui32, 1>
    %d = costate.atomic_fetch "and" %c, %x[%i] : !costate.array<ui32, 1>
    %e = costate.atomic_fetch "or" %d, %x[%i] : !costate.array<ui32, 1>
    %g = costate.atomic_fetch "xor" %e, %x[%i] : !costate.array<ui32, 1>
    %h = costate.atomic_fetch "exchange" %g, %x[%i] : !costate.array<ui32, 1>
    %j = costate.atomic_fetch "max" %h, %x[%i] : !costate.array<ui32, 1>
    %k = costate.atomic_fetch "add" %b, %f[] : !costate.array<f64, 0>
    %l = costate.compare_exchange %b if %k, %f[] : !costate.array<f64, 0>
  }
}

// A bool is a byte: its neighbours are not touched.
// CHECK-LABEL: llvm.func @flags.entry(
// CHECK:         %[[V:.*]] = llvm.zext %{{.*}} : i1 to i8
// CHECK:         %[[OLD:.*]] = llvm.atomicrmw _or %{{.*}}, %[[V]] monotonic : !llvm.ptr, i8
// CHECK:         llvm.icmp "ne" %[[OLD]]
// CHECK:         llvm.cmpxchg %{{.*}}, %{{.*}}, %{{.*}} monotonic monotonic : !llvm.ptr, i8
costate.kernel @flags(%x: !costate.array<i1, 0>, %v: i1, %w: i1, %y: !costate.array<i1, 0>) {
  %a = costate.atomic_fetch "or" %v, %x[] : !costate.array<i1, 0>
  %b = costate.compare_exchange %a if %w, %x[] : !costate.array<i1, 0>
  costate.store %b, %y[] : !costate.array<i1, 0>
}
