#pragma once
/// What a block of a GPU adds to few elements, in memory of its own, until it
/// ends: in C, and the same for the block that a thread of the host runs.

// NOLINTBEGIN

#ifdef __cplusplus
#define _Thread_local thread_local
#endif

#ifdef __NVPTX__
#define COSTATE_OF_BLOCK static __attribute__((address_space(3)))
#define COSTATE_IN_BLOCK __attribute__((address_space(3)))
#else
#define COSTATE_OF_BLOCK static _Thread_local
#define COSTATE_IN_BLOCK
#endif

#define COSTATE_INLINE static inline __attribute__((always_inline))

enum {
  costateCommonElements = 256,
  costateCommonTries = 4,
  costateCommonBytes = 16 * costateCommonElements
};

/// Addresses of elements, with bit 0 set for those of f64; 0: nobody's.
COSTATE_OF_BLOCK unsigned long costateCommonPlaces[costateCommonElements];
COSTATE_OF_BLOCK unsigned long costateCommonSums[costateCommonElements];

/// Of thread `thread` of `threads` of the block, which meet afterwards.
COSTATE_INLINE void costateClearCommon(unsigned thread, unsigned threads) {
  for (unsigned k = thread; k < costateCommonElements; k += threads)
    costateCommonPlaces[k] = costateCommonSums[k] = 0;
}

/// Where the block adds up for an element; neighbours are neighbours there.
/// Null if there is no room.
COSTATE_INLINE COSTATE_IN_BLOCK unsigned long *
costateCommonSum(unsigned long place, unsigned size) {
  unsigned first = (unsigned)(place / size);
#ifdef __clang__
#pragma clang loop unroll(disable)
#endif
  for (unsigned k = 0; k < costateCommonTries; ++k) {
    unsigned at = (first + 37 * k) % costateCommonElements;
    unsigned long found =
        __atomic_load_n(&costateCommonPlaces[at], __ATOMIC_RELAXED);
    if (found == 0)
      __atomic_compare_exchange_n(&costateCommonPlaces[at], &found, place, 0,
                                  __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    if (found == 0 || found == place)
      return &costateCommonSums[at];
  }
  return 0;
}

/// To an element of an array of `elements`.
COSTATE_INLINE void costateAddCommonF32(float *place, float value,
                                        long elements) {
  COSTATE_IN_BLOCK unsigned long *sum = 0;
  if (elements <= costateCommonElements)
    sum = costateCommonSum((unsigned long)place, sizeof value);
  if (sum)
    __atomic_fetch_add((COSTATE_IN_BLOCK float *)sum, value, __ATOMIC_RELAXED);
  else
    __atomic_fetch_add(place, value, __ATOMIC_RELAXED);
}

COSTATE_INLINE void costateAddCommonF64(double *place, double value,
                                        long elements) {
  COSTATE_IN_BLOCK unsigned long *sum = 0;
  if (elements <= costateCommonElements)
    sum = costateCommonSum((unsigned long)place | 1, sizeof value);
  if (sum)
    __atomic_fetch_add((COSTATE_IN_BLOCK double *)sum, value, __ATOMIC_RELAXED);
  else
    __atomic_fetch_add(place, value, __ATOMIC_RELAXED);
}

/// Takes what a block has added up to the elements. Its threads have met.
COSTATE_INLINE void costateFlushCommon(unsigned thread, unsigned threads) {
  for (unsigned k = thread; k < costateCommonElements; k += threads) {
    unsigned long place = costateCommonPlaces[k], sum = costateCommonSums[k];
    if (sum == 0)
      continue;
    if (place & 1)
      __atomic_fetch_add((double *)(place - 1), __builtin_bit_cast(double, sum),
                         __ATOMIC_RELAXED);
    else
      __atomic_fetch_add((float *)place,
                         __builtin_bit_cast(float, (unsigned)sum),
                         __ATOMIC_RELAXED);
  }
}

// NOLINTEND
