// How the threads of an NVIDIA GPU wait for each other. For bitcode that is
// linked into device code, see CMakeLists.txt; runtime/simt/Block.cpp does the
// same on the host. Threads that have ended are not waited for.

#include "DeviceCollectives.h"

unsigned reflect(const char *) __asm__("__nvvm_reflect");
unsigned activeLanes(void) __asm__("llvm.nvvm.activemask");

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

// Adds to an element that is likely the same for all lanes that are here: then
// one of them adds the sum.
#define ADD_COMMON(number, suffix, valueOf)                                    \
  INLINE void costate_device_add_common_##suffix(number *place,                \
                                                 number value) {               \
    unsigned lanes = activeLanes();                                            \
    int lane = __nvvm_read_ptx_sreg_tid_x() % warpSize;                        \
    int first = __builtin_ctz(lanes);                                          \
    _Bool same = longOf(lanes, (long)place, first) == (long)place;             \
    if (!__nvvm_vote_all_sync(lanes, same)) {                                  \
      __atomic_fetch_add(place, value, __ATOMIC_RELAXED);                      \
      return;                                                                  \
    }                                                                          \
    if (lanes == (unsigned)allLanes) {                                         \
      for (int step = warpSize / 2; step; step /= 2)                           \
        value += valueOf(lanes, value, lane ^ step);                           \
    } else {                                                                   \
      number own = value;                                                      \
      value = 0;                                                               \
      for (unsigned rest = lanes; rest; rest &= rest - 1)                      \
        value += valueOf(lanes, own, __builtin_ctz(rest));                     \
    }                                                                          \
    if (lane == first)                                                         \
      __atomic_fetch_add(place, value, __ATOMIC_RELAXED);                      \
  }
ADD_COMMON(float, f32, floatOf)
ADD_COMMON(double, f64, doubleOf)

// Of lanes, and of what they have written.
INLINE void costate_device_warp_barrier(void) {
  __nvvm_bar_warp_sync(allLanes);
}
