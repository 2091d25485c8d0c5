// RUN: costate-run %s --emit ptx | FileCheck %s --check-prefix=PTX
// RUN: costate-run %s --emit spirv --chip "vulkan1.3;subgroup=32;warps;shuffle;ballot;vote;arithmetic;f64;memorymodel" | FileCheck %s --check-prefix=SPIRV
// RUN: not costate-run %s --emit spirv --chip "vulkan1.3;subgroup=8;f64" 2>&1 | FileCheck %s --check-prefix=LACKS
// RUN: not costate-run %s --arg "f32[2]=1,2" 2>&1 | FileCheck %s --check-prefix=CPU
// RUN: not costate-run %s --grad --arg "f32[2]=1,2" 2>&1 | FileCheck %s --check-prefix=GRAD
// RUN: not costate-run %s --interpret --arg "f32[2]=1,2" 2>&1 | FileCheck %s --check-prefix=INTERPRET

// What work items of a block do together, on each kind of GPU; shared arrays
// are in the memory of the block.

// PTX:     .extern .shared .align 16 .b8 costate_block_memory[];
// PTX:     .entry together
// PTX:     .maxntid 64
// PTX:     st.shared.b32
// PTX:     bar.sync 0;
// PTX:     atom.shared.add.f32
// PTX:     shfl.sync.idx.b32
// PTX:     vote.sync.ballot.b32
// PTX:     bar.sync 0;

// SPIRV-DAG: OpCapability GroupNonUniformShuffle
// SPIRV-DAG: OpCapability GroupNonUniformBallot
// SPIRV:     OpControlBarrier
// SPIRV:     OpGroupNonUniformShuffle
// SPIRV:     OpGroupNonUniformBallot
// SPIRV:     OpControlBarrier

// LACKS: blocks.mlir:[[#]]:{{.*}} error: `warp.shuffle_down` needs subgroups of 32 threads
// CPU:   blocks.mlir:[[#]]:{{.*}} error: a shared array is for GPUs: on the CPU there are no blocks
// GRAD:  blocks.mlir:[[#]]:{{.*}} error: a shared array has no derivative
// INTERPRET: blocks.mlir:[[#]]{{.*}} the interpreter does not know `costate.shared`
costate.kernel @together(%x: !costate.array<f32, 1>) {
  %n = costate.extent %x[0] : !costate.array<f32, 1>
  costate.range (%i) in (%n) attributes {costate.block_dim = 64 : i64} {
    %mask = arith.constant -1 : i32
    %two = arith.constant 2 : i32
    %a = costate.shared : !costate.local<f32, 64>
    %t = costate.group "block.thread_index"() : () -> i32
    %k = arith.extsi %t : i32 to i64
    %v = costate.load %x[%i] : !costate.array<f32, 1>
    costate.local_store %v, %a[%k] : !costate.local<f32, 64>
    costate.group "block.sync"() : () -> ()
    %old = costate.shared_update "add" %v, %a[%k] : !costate.local<f32, 64>
    %other = costate.group "warp.shuffle_down"(%mask, %old, %two) : (i32, f32, i32) -> f32
    %less = arith.cmpf olt, %other, %v : f32
    %lanes = costate.group "warp.ballot"(%mask, %less) : (i32, i1) -> i32
    %number = arith.sitofp %lanes : i32 to f32
    costate.store %number, %x[%i] : !costate.array<f32, 1>
  }
}
