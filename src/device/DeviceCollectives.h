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

// `bar.sync`: behind what NVIDIA's assembler (12.9, 13.0) makes of
// `barrier.sync`, lanes that came later than others of their warp read garbage.
INLINE COLLECTIVE void costate_device_block_barrier(void) {
  __nvvm_bar_sync(0);
}

INLINE long costate_device_block_threads(void) {
  return __nvvm_read_ptx_sreg_ntid_x();
}

// What kernels call (costate/detail/group_operations.def). The last argument is
// the place in the source.

INLINE int costate_device_block_thread_index(long site) {
  (void)site;
  return __nvvm_read_ptx_sreg_tid_x();
}

INLINE int costate_device_block_global_thread_index(long site) {
  (void)site;
  return __nvvm_read_ptx_sreg_ctaid_x() * __nvvm_read_ptx_sreg_ntid_x() +
         __nvvm_read_ptx_sreg_tid_x();
}

INLINE COLLECTIVE void costate_device_block_sync(long site) {
  (void)site;
  costate_device_block_barrier();
}

INLINE COLLECTIVE void costate_device_warp_sync(int mask, long site) {
  (void)site;
  __nvvm_bar_warp_sync(mask);
}

// Lanes that are past the ends of the warp: of these it is the own value.
#define SHUFFLES(suffix, number, fetch)                                        \
  INLINE COLLECTIVE number costate_device_warp_shuffle##suffix(                \
      int mask, number value, int lane, long site) {                           \
    (void)site;                                                                \
    return fetch(mask, value, lane & (warpSize - 1));                          \
  }                                                                            \
  INLINE COLLECTIVE number costate_device_warp_shuffle_xor##suffix(            \
      int mask, number value, int lanes, long site) {                          \
    (void)site;                                                                \
    return fetch(mask, value, (ownLane() ^ lanes) & (warpSize - 1));           \
  }                                                                            \
  INLINE COLLECTIVE number costate_device_warp_shuffle_up##suffix(             \
      int mask, number value, int lanes, long site) {                          \
    (void)site;                                                                \
    int from = ownLane() - lanes;                                              \
    return fetch(mask, value, from < 0 ? ownLane() : from);                    \
  }                                                                            \
  INLINE COLLECTIVE number costate_device_warp_shuffle_down##suffix(           \
      int mask, number value, int lanes, long site) {                          \
    (void)site;                                                                \
    int from = ownLane() + lanes;                                              \
    return fetch(mask, value, from >= warpSize ? ownLane() : from);            \
  }

INLINE static int ownLane(void) {
  return __nvvm_read_ptx_sreg_tid_x() % warpSize;
}

INLINE COLLECTIVE static int fetchInt(int mask, int value, int lane) {
  return __nvvm_shfl_sync_idx_i32(mask, value, lane, warpSize - 1);
}

INLINE COLLECTIVE static long fetchLong(int mask, long value, int lane) {
  int low = fetchInt(mask, (int)value, lane);
  int high = fetchInt(mask, (int)(value >> 32), lane);
  return (long)high << 32 | (unsigned)low;
}

SHUFFLES(, int, fetchInt)
SHUFFLES(_i64, long, fetchLong)

INLINE COLLECTIVE int costate_device_warp_all(int mask, int holds, long site) {
  (void)site;
  return __nvvm_vote_all_sync(mask, holds != 0);
}

INLINE COLLECTIVE int costate_device_warp_any(int mask, int holds, long site) {
  (void)site;
  return __nvvm_vote_any_sync(mask, holds != 0);
}

INLINE COLLECTIVE int costate_device_warp_ballot(int mask, int holds,
                                                 long site) {
  (void)site;
  return __nvvm_vote_ballot_sync(mask, holds != 0) & mask;
}

INLINE COLLECTIVE int costate_device_warp_unique(int mask, int holds,
                                                 long site) {
  int yes = costate_device_warp_ballot(mask, holds, site);
  return yes == 0 || yes == mask;
}

// The lanes with one value, then those with another one.
INLINE COLLECTIVE int costate_device_warp_match_any(int mask, int value,
                                                    long site) {
  unsigned same = 0;
#pragma clang loop unroll(disable)
  for (unsigned rest = mask; rest;) {
    int chosen = fetchInt(mask, value, __builtin_ctz(rest));
    unsigned lanes = costate_device_warp_ballot(mask, value == chosen, site);
    same = value == chosen ? lanes : same;
    rest &= ~lanes;
  }
  return same;
}

// The mask if all have the same, else 0.
INLINE COLLECTIVE int costate_device_warp_match_all(int mask, int value,
                                                    long site) {
  int chosen = fetchInt(mask, value, mask ? __builtin_ctz(mask) : 0);
  return costate_device_warp_all(mask, value == chosen, site) ? mask : 0;
}

unsigned activeLanes(void) __asm__("llvm.nvvm.activemask");

INLINE COLLECTIVE int costate_device_warp_active_mask(long site) {
  (void)site;
  return activeLanes();
}

// Of what this thread has written.
INLINE void costate_device_block_fence(long site) {
  (void)site;
  __nvvm_membar_cta();
}

INLINE void costate_device_grid_fence(long site) {
  (void)site;
  __nvvm_membar_gl();
}
