// Sorts the iterations of a range by depth, the deepest ones first: counts how
// many of each block fall into each bucket, and in a second launch gives each
// its place. Which of a bucket comes first is left to chance. Linked into
// device code as bitcode, and into the runtime for the device simt. All threads
// of a block call these functions together. Layouts: base/DeviceSort.h.

#include "base/DeviceSort.h"

#ifdef __NVPTX__
#define SORT_INLINE __attribute__((always_inline))
#else
#define SORT_INLINE
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define SORT_COLLECTIVE __attribute__((convergent))
SORT_COLLECTIVE unsigned long long
costate_device_warp_max(unsigned long long value);
SORT_COLLECTIVE double costate_device_warp_add(double value);
SORT_COLLECTIVE void costate_device_block_barrier(void);
long costate_device_block_threads(void);

static unsigned sortBucket(unsigned long long depth) {
  enum { exact = 32, mantissa = 5 };
  unsigned power, bucket;
  if (depth < exact)
    return (unsigned)depth;
  power = 63 - (unsigned)__builtin_clzll(depth) - mantissa;
  bucket = exact * (power + 1) + (unsigned)(depth >> power) % exact;
  return bucket < SortBuckets ? bucket : SortBuckets - 1;
}

// Whether all other blocks of the grid have been here. Clears the ticket.
SORT_INLINE static unsigned sortIsLast(const struct SortWorker *worker) {
  struct SortControl *control = worker->call->control;
  costate_device_block_barrier();
  if (worker->thread == 0) {
    unsigned long long before;
    // LLVM forgets the order of atomics on NVIDIA GPUs, but not fences.
    __atomic_thread_fence(__ATOMIC_ACQ_REL);
    before = __atomic_fetch_add(&control->ticket, 1, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_ACQ_REL);
    worker->memory->last = before + 1 == worker->call->blocks;
    if (worker->memory->last)
      control->ticket = 0;
  }
  costate_device_block_barrier();
  return worker->memory->last;
}

// Where the iterations of this block start in each bucket.
SORT_INLINE static void sortFindPlaces(const struct SortWorker *worker) {
  struct SortMemory *memory = worker->memory;
  const struct SortCall *call = worker->call;
  const unsigned *bases = call->bases + worker->block * SortBuckets;
  for (unsigned long long b = worker->thread; b < SortBuckets;
       b += worker->threads)
    memory->counts[b] = call->control->totals[b];
  costate_device_block_barrier();
  for (unsigned long long g = worker->thread; g < SortGroups;
       g += worker->threads) {
    unsigned sum = 0;
    for (unsigned k = 0; k < 32; ++k)
      sum += memory->counts[32 * g + k];
    memory->groups[g] = sum;
  }
  costate_device_block_barrier();
  for (unsigned long long b = worker->thread; b < SortBuckets;
       b += worker->threads) {
    unsigned start = bases[b];
    for (unsigned long long c = b + 1; c % 32; ++c)
      start += memory->counts[c];
    for (unsigned long long g = b / 32 + 1; g < SortGroups; ++g)
      start += memory->groups[g];
    memory->bins[b] = start;
  }
}

// How many iterations each thread of the block looks at.
SORT_INLINE unsigned long long
costate_device_sort_begin(struct SortWorker *worker,
                          const struct SortCall *call,
                          unsigned long long thread, char *memory) {
  worker->call = call;
  worker->memory = (struct SortMemory *)memory;
  worker->threads = (unsigned long long)costate_device_block_threads();
  worker->block = thread / worker->threads;
  worker->thread = thread % worker->threads;
  worker->turns = worker->rounds = worker->deepest = worker->passing = 0;
  if (call->places) {
    sortFindPlaces(worker);
  } else {
    for (unsigned long long b = worker->thread; b < SortBuckets;
         b += worker->threads)
      worker->memory->bins[b] = 0;
    if (worker->thread == 0)
      worker->memory->turns = worker->memory->rounds = worker->memory->deepest =
          worker->memory->passing = 0;
  }
  costate_device_block_barrier();
  return call->rounds;
}

// The iteration that this thread looks at now; all ones: none.
SORT_INLINE unsigned long long
costate_device_sort_item(const struct SortWorker *worker,
                         unsigned long long round) {
  unsigned long long rounds = worker->call->rounds;
  unsigned long long item =
      (worker->block * rounds + round) * worker->threads + worker->thread;
  return item < worker->call->iterations ? item : ~0ull;
}

// `depth`: 0 for no item; less: the item has no effect, and no place.
SORT_INLINE void costate_device_sort_take(struct SortWorker *worker,
                                          unsigned long long item,
                                          unsigned long long depth) {
  const struct SortCall *call = worker->call;
  const unsigned long long deepest = 1ull << 31;
  unsigned isThere = item != ~0ull, passes = isThere && !(depth >> 63);
  if (depth > deepest)
    depth = passes ? deepest : 0;
  if (!call->places) {
    unsigned long long most = costate_device_warp_max(depth);
    worker->turns += depth;
    worker->rounds += isThere ? most : 0;
    worker->deepest = worker->deepest > most ? worker->deepest : most;
    worker->passing += passes;
  }
  if (passes && call->order) {
    unsigned *bin = &worker->memory->bins[sortBucket(depth)];
    unsigned place = __atomic_fetch_add(bin, 1, __ATOMIC_RELAXED);
    if (call->places)
      call->order[place] = (unsigned)item;
  }
}

static void sortAdd(unsigned long long *cell, unsigned long long value) {
  __atomic_fetch_add(cell, value, __ATOMIC_RELAXED);
}

static void sortRaise(unsigned long long *cell, unsigned long long value) {
  unsigned long long old = __atomic_load_n(cell, __ATOMIC_RELAXED);
  while (old < value &&
         !__atomic_compare_exchange_n(cell, &old, value, 0, __ATOMIC_RELAXED,
                                      __ATOMIC_RELAXED))
    ;
}

// What the block has counted goes to the totals.
SORT_INLINE static void sortAddCounts(const struct SortWorker *worker) {
  const struct SortCall *call = worker->call;
  struct SortControl *control = call->control;
  struct SortMemory *memory = worker->memory;
  double turns = costate_device_warp_add((double)worker->turns);
  double rounds = costate_device_warp_add((double)worker->rounds);
  double passing = costate_device_warp_add((double)worker->passing);
  if (worker->thread % 32 == 0) {
    sortAdd(&memory->turns, (unsigned long long)turns);
    sortAdd(&memory->rounds, (unsigned long long)rounds);
    sortAdd(&memory->passing, (unsigned long long)passing);
    sortRaise(&memory->deepest, worker->deepest);
  }
  costate_device_block_barrier();
  if (worker->thread == 0) {
    sortAdd(&control->turns, memory->turns);
    sortAdd(&control->rounds, memory->rounds);
    sortAdd(&control->passing, memory->passing);
    sortRaise(&control->deepest, memory->deepest);
  }
  if (!call->order)
    return;
  for (unsigned long long b = worker->thread; b < SortBuckets;
       b += worker->threads) {
    unsigned count = memory->bins[b], base = 0;
    if (count)
      base = __atomic_fetch_add(&control->totals[b], count, __ATOMIC_RELAXED);
    call->bases[worker->block * SortBuckets + b] = base;
  }
}

SORT_INLINE void costate_device_sort_end(const struct SortWorker *worker) {
  const struct SortCall *call = worker->call;
  struct SortControl *control = call->control;
  if (call->places) {
    if (sortIsLast(worker))
      for (unsigned long long b = worker->thread; b < SortBuckets;
           b += worker->threads)
        control->totals[b] = 0;
    return;
  }
  sortAddCounts(worker);
  if (sortIsLast(worker) && worker->thread == 0) {
    call->report->turns = control->turns;
    call->report->rounds = control->rounds;
    call->report->deepest = control->deepest;
    call->report->passing = control->passing;
    call->report->iterations = call->iterations;
    control->ordered = control->passing;
    control->turns = control->rounds = control->deepest = 0;
    control->passing = 0;
  }
}

#ifdef __cplusplus
}
#endif
