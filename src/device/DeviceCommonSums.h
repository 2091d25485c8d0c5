#pragma once
// Where blocks keep sums of common elements, in C: what NVIDIA's and AMD's
// GPUs do alike.

#include "DeviceCollectives.h"

#include "base/CommonSums.h"

// In front of additions in blocks, and behind them: all threads of the block
// call these.
INLINE void costate_device_begin_in_block(void) {
  costateClearCommon(__nvvm_read_ptx_sreg_tid_x(),
                     __nvvm_read_ptx_sreg_ntid_x());
  costate_device_block_barrier();
}

INLINE void costate_device_end_in_block(void) {
  costate_device_block_barrier();
  costateFlushCommon(__nvvm_read_ptx_sreg_tid_x(),
                     __nvvm_read_ptx_sreg_ntid_x());
}
