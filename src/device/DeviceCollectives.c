// How the threads of an NVIDIA GPU wait for each other. For bitcode that is
// linked into device code, see CMakeLists.txt; runtime/simt/Block.cpp does the
// same on the host. Threads that have ended are not waited for.

#include "DeviceCommonSums.h"

unsigned reflect(const char *) __asm__("__nvvm_reflect");

// Older chips: from the highest bit on, lanes with a 0 drop out where another
// one has a 1. Unlike shuffles, votes do not read lanes that have ended.
static unsigned maximumByVotes(unsigned value) {
  unsigned most = 0;
  _Bool stays = 1;
  for (int bit = 31; bit >= 0; --bit) {
    _Bool has = stays && value >> bit & 1;
    if (!__nvvm_vote_any_sync(allLanes, has))
      continue;
    most |= 1u << bit;
    stays = has;
  }
  return most;
}

INLINE static unsigned warpMax(unsigned value) {
  return reflect("__CUDA_ARCH") >= 800 ? maximum(value, allLanes)
                                       : maximumByVotes(value);
}

INLINE unsigned long costate_device_warp_max(unsigned long value) {
  unsigned low = value, high = value >> 32;
  unsigned long most = 0;
  _Bool isNarrow = __builtin_constant_p(high) && high == 0;
  if (!isNarrow && __nvvm_vote_any_sync(allLanes, high != 0))
    most = warpMax(high);
  return most << 32 | warpMax(high == most ? low : 0);
}

INLINE double costate_device_warp_fold(double value, long kind) {
  int thread = __nvvm_read_ptx_sreg_tid_x();
  int lane = thread % warpSize;
  int lanes = __nvvm_read_ptx_sreg_ntid_x() - (thread - lane);
  if (lanes >= warpSize) {
    for (int step = warpSize / 2; step; step /= 2)
      value = costateAddUp(kind, value, shuffleDown(value, step));
    return value;
  }
#pragma clang loop unroll(disable)
  for (int step = warpSize / 2; step; step /= 2) {
    double other = shuffleDown(value, step);
    value = costateAddUp(kind, value,
                         lane + step < lanes ? other : costateNoSum(kind));
  }
  return value;
}

INLINE static long longOf(unsigned lanes, long value, int lane) {
  int low = __nvvm_shfl_sync_idx_i32(lanes, (int)value, lane, 31);
  int high = __nvvm_shfl_sync_idx_i32(lanes, (int)(value >> 32), lane, 31);
  return (long)high << 32 | (unsigned)low;
}

INLINE static double doubleOf(unsigned lanes, double value, int lane) {
  long bits = longOf(lanes, __builtin_bit_cast(long, value), lane);
  return __builtin_bit_cast(double, bits);
}

INLINE static float floatOf(unsigned lanes, float value, int lane) {
  int bits = __builtin_bit_cast(int, value);
  bits = __nvvm_shfl_sync_idx_i32(lanes, bits, lane, 31);
  return __builtin_bit_cast(float, bits);
}

// Of lanes that are here: if all of them add to `place`, makes `value` their
// sum and says which they are; else 0. So it does where all of them add 0,
// which nobody needs to add.
#define ADD_UP_COMMON(number, suffix, valueOf)                                 \
  INLINE static unsigned addUpCommon_##suffix(number *place, number *value) {  \
    unsigned lanes = activeLanes();                                            \
    int lane = __nvvm_read_ptx_sreg_tid_x() % warpSize;                        \
    int first = __builtin_ctz(lanes);                                          \
    if (!__nvvm_vote_any_sync(lanes, *value != 0))                             \
      return 0;                                                                \
    _Bool same = longOf(lanes, (long)place, first) == (long)place;             \
    if (!__nvvm_vote_all_sync(lanes, same))                                    \
      return 0;                                                                \
    number own = *value, sum = own;                                            \
    if (lanes == (unsigned)allLanes) {                                         \
      for (int step = warpSize / 2; step; step /= 2)                           \
        sum += valueOf(lanes, sum, lane ^ step);                               \
    } else {                                                                   \
      sum = 0;                                                                 \
      for (unsigned rest = lanes; rest; rest &= rest - 1)                      \
        sum += valueOf(lanes, own, __builtin_ctz(rest));                       \
    }                                                                          \
    *value = sum;                                                              \
    return lanes;                                                              \
  }
ADD_UP_COMMON(float, f32, floatOf)
ADD_UP_COMMON(double, f64, doubleOf)

INLINE static _Bool isFirstOf(unsigned lanes) {
  return __nvvm_read_ptx_sreg_tid_x() % warpSize == __builtin_ctz(lanes);
}

// Adds to an element that is likely the same for all lanes that are here: then
// one of them adds the sum, to memory or to what the block adds up. Lanes of
// which one takes a way of its own would part.
#define ADD_COMMON(number, suffix, addInBlock)                                 \
  INLINE void costate_device_add_common_##suffix(number *place,                \
                                                 number value) {               \
    unsigned lanes = addUpCommon_##suffix(place, &value);                      \
    if (lanes ? isFirstOf(lanes) : value != 0)                                 \
      __atomic_fetch_add(place, value, __ATOMIC_RELAXED);                      \
  }                                                                            \
  INLINE void costate_device_add_in_block_##suffix(                            \
      number *place, number value, long elements) {                            \
    unsigned lanes = addUpCommon_##suffix(place, &value);                      \
    if (!lanes) {                                                              \
      if (value != 0)                                                          \
        __atomic_fetch_add(place, value, __ATOMIC_RELAXED);                    \
      return;                                                                  \
    }                                                                          \
    if (isFirstOf(lanes))                                                      \
      addInBlock(place, value, elements);                                      \
    __nvvm_bar_warp_sync(lanes);                                               \
  }
ADD_COMMON(float, f32, costateAddCommonF32)
ADD_COMMON(double, f64, costateAddCommonF64)

// Of lanes, and of what they have written.
INLINE void costate_device_warp_barrier(void) {
  __nvvm_bar_warp_sync(allLanes);
}
