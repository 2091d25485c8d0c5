// How the threads of an AMD GPU wait for each other, with warps of 32 or 64
// lanes. For bitcode that is linked into device code, see CMakeLists.txt. What
// looks like NVIDIA's becomes AMD's later (targets/amd/Intrinsics.cpp), with
// warps of 32. Threads that have ended are not waited for.

#include "DeviceCommonSums.h"

#include "base/DeviceLanes.h"

typedef unsigned long Lanes; // a bit each

// Of the lanes that are here; of the others a lane reads 0.
COLLECTIVE Lanes lanesWith(_Bool) __asm__("llvm.amdgcn.ballot.i64");
COLLECTIVE int readFrom(int byte, int) __asm__("llvm.amdgcn.ds.bpermute");
// Of a lane that is the same for all.
COLLECTIVE int readOne(int, int lane) __asm__("llvm.amdgcn.readlane.i32");

INLINE static int ownOf(int thread) { return thread & (deviceLanes - 1); }

INLINE static Lanes allOfWarp(void) { return ~0ul >> (64 - deviceLanes); }

INLINE COLLECTIVE static long longFrom(long value, int lane) {
  int low = readFrom(lane << 2, (int)value);
  int high = readFrom(lane << 2, (int)(value >> 32));
  return (long)high << 32 | (unsigned)low;
}

INLINE COLLECTIVE static double doubleFrom(double value, int lane) {
  long bits = longFrom(__builtin_bit_cast(long, value), lane);
  return __builtin_bit_cast(double, bits);
}

INLINE COLLECTIVE static float floatFrom(float value, int lane) {
  int bits = readFrom(lane << 2, __builtin_bit_cast(int, value));
  return __builtin_bit_cast(float, bits);
}

INLINE COLLECTIVE static long longOf(long value, int lane) {
  int low = readOne((int)value, lane);
  int high = readOne((int)(value >> 32), lane);
  return (long)high << 32 | (unsigned)low;
}

INLINE COLLECTIVE static double doubleOf(double value, int lane) {
  long bits = longOf(__builtin_bit_cast(long, value), lane);
  return __builtin_bit_cast(double, bits);
}

INLINE COLLECTIVE static float floatOf(float value, int lane) {
  int bits = readOne(__builtin_bit_cast(int, value), lane);
  return __builtin_bit_cast(float, bits);
}

INLINE static unsigned larger(unsigned a, unsigned b) { return a > b ? a : b; }

// Lanes that have ended would cut others off, so that all look at each one.
INLINE COLLECTIVE static unsigned warpMax(unsigned value) {
  Lanes here = lanesWith(1);
  unsigned most = value;
  int own = ownOf(__nvvm_read_ptx_sreg_tid_x());
  if (here == allOfWarp()) {
    for (unsigned step = deviceLanes / 2; step; step /= 2)
      most = larger(most, readFrom((own ^ step) << 2, (int)most));
    return most;
  }
#pragma clang loop unroll(disable)
  for (Lanes rest = here; rest; rest &= rest - 1)
    most = larger(most, readOne((int)value, __builtin_ctzl(rest)));
  return most;
}

INLINE COLLECTIVE unsigned long costate_device_warp_max(unsigned long value) {
  unsigned low = value, high = value >> 32;
  unsigned long most = 0;
  if (lanesWith(high != 0))
    most = warpMax(high);
  return most << 32 | warpMax(high == most ? low : 0);
}

INLINE COLLECTIVE double costate_device_warp_fold(double value, long kind) {
  int thread = __nvvm_read_ptx_sreg_tid_x(), own = ownOf(thread);
  int lanes = __nvvm_read_ptx_sreg_ntid_x() - (thread - own);
  for (unsigned step = deviceLanes / 2; step; step /= 2) {
    int from = own + step;
    double other = doubleFrom(value, from & (deviceLanes - 1));
    value =
        costateAddUp(kind, value, from < lanes ? other : costateNoSum(kind));
  }
  return value;
}

// As NVIDIA's (DeviceCollectives.c): of lanes that are here, if all of them add
// to `place`, makes `value` their sum and says which they are; else 0, and
// where all of them add 0.
#define ADD_UP_COMMON(number, suffix, numberFrom, numberOf)                    \
  INLINE COLLECTIVE static Lanes addUpCommon_##suffix(number *place,           \
                                                      number *value) {         \
    Lanes here = lanesWith(1);                                                 \
    int own = ownOf(__nvvm_read_ptx_sreg_tid_x());                             \
    int first = __builtin_ctzl(here);                                          \
    if (!lanesWith(*value != 0))                                               \
      return 0;                                                                \
    if (lanesWith(longOf((long)place, first) != (long)place))                  \
      return 0;                                                                \
    number added = *value, sum = added;                                        \
    if (here == allOfWarp()) {                                                 \
      for (unsigned step = deviceLanes / 2; step; step /= 2)                   \
        sum += numberFrom(sum, own ^ step);                                    \
    } else {                                                                   \
      sum = 0;                                                                 \
      for (Lanes rest = here; rest; rest &= rest - 1)                          \
        sum += numberOf(added, __builtin_ctzl(rest));                          \
    }                                                                          \
    *value = sum;                                                              \
    return here;                                                               \
  }
ADD_UP_COMMON(float, f32, floatFrom, floatOf)
ADD_UP_COMMON(double, f64, doubleFrom, doubleOf)

INLINE static _Bool isFirstOf(Lanes lanes) {
  return ownOf(__nvvm_read_ptx_sreg_tid_x()) == __builtin_ctzl(lanes);
}

// Adds to an element that is likely the same for all lanes that are here: then
// one of them adds the sum, to memory or to what the block adds up.
#define ADD_COMMON(number, suffix, addInBlock)                                 \
  INLINE COLLECTIVE void costate_device_add_common_##suffix(number *place,     \
                                                            number value) {    \
    Lanes lanes = addUpCommon_##suffix(place, &value);                         \
    if (lanes ? isFirstOf(lanes) : value != 0)                                 \
      __atomic_fetch_add(place, value, __ATOMIC_RELAXED);                      \
  }                                                                            \
  INLINE COLLECTIVE void costate_device_add_in_block_##suffix(                 \
      number *place, number value, long elements) {                            \
    Lanes lanes = addUpCommon_##suffix(place, &value);                         \
    if (!lanes) {                                                              \
      if (value != 0)                                                          \
        __atomic_fetch_add(place, value, __ATOMIC_RELAXED);                    \
      return;                                                                  \
    }                                                                          \
    if (isFirstOf(lanes))                                                      \
      addInBlock(place, value, elements);                                      \
    costate_device_warp_barrier();                                             \
  }

// Of lanes, and of what they have written.
INLINE COLLECTIVE void costate_device_warp_barrier(void) {
  __nvvm_bar_warp_sync(allLanes);
}

ADD_COMMON(float, f32, costateAddCommonF32)
ADD_COMMON(double, f64, costateAddCommonF64)
