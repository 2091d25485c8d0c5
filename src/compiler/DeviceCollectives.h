#pragma once
// What collectives of all GPUs have in common, in C: they are NVIDIA's, or look
// like them. All threads that meet call such a function together.

#include "base/RangeSums.h"

#define INLINE __attribute__((always_inline))
#define COLLECTIVE __attribute__((convergent))

enum { allLanes = -1, warpSize = 32 };

COLLECTIVE unsigned maximum(unsigned, int) __asm__("llvm.nvvm.redux.sync.umax");

INLINE COLLECTIVE static double shuffleDown(double value, int lanes) {
  long bits = __builtin_bit_cast(long, value);
  int low = __nvvm_shfl_sync_down_i32(allLanes, (int)bits, lanes, 31);
  int high = __nvvm_shfl_sync_down_i32(allLanes, (int)(bits >> 32), lanes, 31);
  return __builtin_bit_cast(double, (long)high << 32 | (unsigned)low);
}

// In the first lane; `kind`: see base/RangeSums.h.
COLLECTIVE double costate_device_warp_fold(double value, long kind);

INLINE COLLECTIVE double costate_device_warp_add(double value) {
  return costate_device_warp_fold(value, costateFloatSums);
}

INLINE COLLECTIVE void costate_device_block_barrier(void) {
  __nvvm_barrier_sync(0);
}

INLINE long costate_device_block_threads(void) {
  return __nvvm_read_ptx_sreg_ntid_x();
}
