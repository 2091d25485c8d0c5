// How the threads of a block wait for each other on Vulkan devices. For bitcode
// that is linked into device code, see CMakeLists.txt. What looks like NVIDIA's
// becomes operations of SPIR-V (conversion/LLVMToSPIRV). Where subgroups do not
// have 32 lanes a block is one warp, whose threads meet at its barriers.

#include "DeviceCollectives.h"

#define SHARED __attribute__((address_space(3)))

_Bool costate_device_has_warps(void);
_Bool costate_device_reconverges(void);

// Of lanes that are a block.
static SHARED unsigned long exchanged[warpSize];

INLINE static int laneOf(void) {
  return __nvvm_read_ptx_sreg_tid_x() % warpSize;
}

INLINE COLLECTIVE static void exchange(unsigned long value) {
  costate_device_block_barrier();
  exchanged[__nvvm_read_ptx_sreg_tid_x()] = value;
  costate_device_block_barrier();
}

INLINE COLLECTIVE static unsigned long maxOfBlock(unsigned long value) {
  unsigned long most = 0;
  exchange(value);
#pragma clang loop unroll(disable)
  for (int lane = 0; lane < warpSize; ++lane)
    most = exchanged[lane] > most ? exchanged[lane] : most;
  return most;
}

INLINE COLLECTIVE unsigned long costate_device_warp_max(unsigned long value) {
  if (!costate_device_has_warps())
    return maxOfBlock(value);
  unsigned low = value, high = value >> 32;
  unsigned long most = maximum(high, allLanes);
  return most << 32 | maximum(high == most ? low : 0, allLanes);
}

INLINE COLLECTIVE static double valueAfter(double value, int lanes) {
  if (costate_device_has_warps())
    return shuffleDown(value, lanes);
  exchange(__builtin_bit_cast(unsigned long, value));
  int from = laneOf() + lanes;
  return __builtin_bit_cast(double, exchanged[from < warpSize ? from : 0]);
}

INLINE COLLECTIVE double costate_device_warp_fold(double value, long kind) {
  int thread = __nvvm_read_ptx_sreg_tid_x();
  int lane = thread % warpSize;
  int lanes = __nvvm_read_ptx_sreg_ntid_x() - (thread - lane);
  for (int step = warpSize / 2; step; step /= 2) {
    double other = valueAfter(value, step);
    value = costateAddUp(kind, value,
                         lane + step < lanes ? other : costateNoSum(kind));
  }
  return value;
}

// Of the lanes of a subgroup that are here together.
COLLECTIVE _Bool costate_subgroup_all_equal(unsigned value);
COLLECTIVE _Bool costate_subgroup_elect(void);
COLLECTIVE float costate_subgroup_add_f32(float value);
COLLECTIVE double costate_subgroup_add_f64(double value);

INLINE COLLECTIVE static _Bool allEqual(unsigned long value) {
  _Bool low = costate_subgroup_all_equal((unsigned)value);
  _Bool high = costate_subgroup_all_equal((unsigned)(value >> 32));
  return low && high;
}

// Adds to an element that is likely the same for all lanes that are here: then
// one of them adds the sum. Without reconvergence they may not be the same
// lanes in each step.
#define ADD_COMMON(number, suffix)                                             \
  INLINE COLLECTIVE void costate_device_add_common_##suffix(number *place,     \
                                                            number value) {    \
    if (costate_device_reconverges() && allEqual((unsigned long)place)) {      \
      value = costate_subgroup_add_##suffix(value);                            \
      if (!costate_subgroup_elect())                                           \
        return;                                                                \
    }                                                                          \
    __atomic_fetch_add(place, value, __ATOMIC_RELAXED);                        \
  }
ADD_COMMON(float, f32)
ADD_COMMON(double, f64)

// Blocks do not add up.
INLINE COLLECTIVE void costate_device_add_in_block_f32(float *place,
                                                       float value,
                                                       long elements) {
  (void)elements;
  costate_device_add_common_f32(place, value);
}

INLINE COLLECTIVE void costate_device_add_in_block_f64(double *place,
                                                       double value,
                                                       long elements) {
  (void)elements;
  costate_device_add_common_f64(place, value);
}

INLINE void costate_device_begin_in_block(void) {}
INLINE void costate_device_end_in_block(void) {}

// Of lanes, and of what they have written.
INLINE COLLECTIVE void costate_device_warp_barrier(void) {
  if (costate_device_has_warps())
    __nvvm_bar_warp_sync(allLanes);
  else
    costate_device_block_barrier();
}
