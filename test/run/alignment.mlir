// Each element is loaded and stored at once, not in halves.
// RUN: costate-run %s --emit llvm | FileCheck %s --check-prefix=LLVM
// LLVM: load i64, ptr %{{.*}}, align 8
// LLVM: store i64 %{{.*}}, align 8
// RUN: costate-run %s --emit ptx | FileCheck %s --check-prefix=PTX
// PTX-NOT: ld.global.b32
// PTX: ld.global.b64
// PTX-NOT: st.global.b32
// PTX: st.global.b64
// RUN: costate-run %s --emit spirv | FileCheck %s --check-prefix=SPIRV
// SPIRV-NOT: OpLoad %ulong %{{.*}} 4{{$}}
// SPIRV: OpLoad %ulong %{{.*}} Aligned{{.*}} 8{{$}}
// SPIRV-NOT: OpStore %{{.*}} 4{{$}}
// SPIRV: OpStore %{{.*}} Aligned{{.*}} 8{{$}}

costate.kernel @copy(%from: !costate.array<i64, 1>, %to: !costate.array<ui64, 1>) {
  %n = costate.extent %from[0] : !costate.array<i64, 1>
  costate.range (%i) in (%n) {
    %x = costate.load %from[%i] : !costate.array<i64, 1>
    costate.store %x, %to[%i] : !costate.array<ui64, 1>
  }
  costate.return
}
