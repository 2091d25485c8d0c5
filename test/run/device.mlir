// What GPUs run, as text, without one.
// RUN: costate-run %s --emit ptx | FileCheck %s --check-prefix=PTX
// PTX: .target sm_90
// PTX: .entry wave
// PTX: mul{{.*}}.f64
// RUN: costate-run %s --emit ptx --chip sm_80 | FileCheck %s --check-prefix=CHIP
// CHIP: .target sm_80
// RUN: costate-run %s --emit spirv | FileCheck %s --check-prefix=SPIRV
// SPIRV-DAG: OpCapability Shader
// SPIRV-DAG: OpCapability Float64
// SPIRV: OpEntryPoint GLCompute {{.*}} "wave
// SPIRV: OpFMul %double
// SPIRV: OpReturn
// RUN: costate-run %s --emit spirv --grad --chip "vulkan1.2;subgroup=8;f64;i64atomics" | FileCheck %s --check-prefix=LEAST
// LEAST-NOT: OpCapability GroupNonUniform
// LEAST: OpEntryPoint GLCompute {{.*}} "wave
// RUN: costate-run %s --emit spirv | spirv-as --target-env vulkan1.3 - -o %t.spv && spirv-val --target-env vulkan1.3 %t.spv

// RUN: costate-run %s --emit metal --grad --chip "metal3.2;f64" | FileCheck %s --check-prefix=METAL
// METAL: // bytes of block memory: 0
// METAL: #pragma METAL fp math_mode(safe)
// METAL: kernel void f_wave{{.*}}(COSTATE_PARAMETERS) {
// METAL: costate_f64_mul(
// METAL: costate_store64(
// RUN: costate-run %s --emit amdgcn | FileCheck %s --check-prefix=AMD
// RUN: costate-run %s --emit amdgcn --grad --chip gfx1201 | FileCheck %s --check-prefix=AMD
// AMD: "wave{{.*}}$kernel":
// AMD: v_mul_f64
// AMD: s_endpgm
// RUN: not costate-run %s --emit metal 2>&1 | FileCheck %s --check-prefix=WIDE
// WIDE: device.mlir:[[#]]:{{.*}} error: this device has no floats of 64 bits (f64)

// RUN: not costate-run %s --emit ptx --chip vulkan 2>&1 | FileCheck %s --check-prefix=WRONG
// WRONG: `vulkan` is no chip for ptx, as `sm_90` is
// RUN: not costate-run %s --emit spirv --chip sm_90 2>&1 | FileCheck %s --check-prefix=OTHER
// OTHER: `sm_90` is no chip for spirv, as `vulkan1.3;subgroup=32;
// RUN: not costate-run %s --emit ir --chip sm_90 2>&1 | FileCheck %s --check-prefix=IR
// IR: --chip is for --emit of device code: ptx, amdgcn, spirv, metal
// RUN: not costate-run %s --chip sm_90 2>&1 | FileCheck %s --check-prefix=ALONE
// ALONE: --chip requires --emit

costate.kernel @wave(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%n) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %s = arith.mulf %v, %v : f64
    costate.store %s, %y[%i] : !costate.array<f64, 1>
  }
}
