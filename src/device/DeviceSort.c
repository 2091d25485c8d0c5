// Sorts the work items of a range by depth, the deepest ones first, before the
// same launch runs them, or in a launch of its own: blocks take chunks of them,
// count how many fall into each bucket, wait until all chunks are counted, give
// each work item its place, and wait until all have one. Which of a bucket
// comes first is left to chance. Linked into device code as bitcode, and into
// the runtime for the device simt. All threads of a block call these functions
// together, and the answers of `begin` and `next` are the same for all.
// Layouts: base/DeviceSort.h.
//
// A block waits when no chunk is left to be taken, and has counted its own
// ones, and then when it has placed them. So what it waits for is held by
// blocks that run and do not wait, however few of them run at a time.

#include "base/DeviceSort.h"
#include "base/DeviceAtomics.h"
#include "base/DeviceLanes.h"

#ifdef __NVPTX__
#define SORT_INLINE __attribute__((always_inline))
#else
#define SORT_INLINE
#include <sched.h>
#endif

#define SORT_NONE (~0u)

#ifdef __cplusplus
extern "C" {
#endif

#define SORT_COLLECTIVE __attribute__((convergent))
SORT_COLLECTIVE unsigned long long
costate_device_warp_max(unsigned long long value);
SORT_COLLECTIVE double costate_device_warp_add(double value);
SORT_COLLECTIVE void costate_device_block_barrier(void);

static unsigned sortBucket(unsigned depth) {
  enum { exact = 32, mantissa = 5 };
  unsigned power, bucket;
  if (depth < exact)
    return depth;
  power = 31 - (unsigned)__builtin_clz(depth) - mantissa;
  bucket = exact * (power + 1) + (depth >> power) % exact;
  return bucket < SortBuckets ? bucket : SortBuckets - 1;
}

static unsigned long long sortLoad(const unsigned long long *cell) {
  return __atomic_load_n(cell, __ATOMIC_RELAXED);
}

// Says that `counted` chunks are, and asks for another one. In one thread.
SORT_INLINE static unsigned sortProgress(const struct SortWorker *worker,
                                         unsigned counted) {
  unsigned long long *progress = &worker->call->control->progress;
  return (unsigned)(deviceAddInOrder(progress, 1ull << 32 | counted) >> 32);
}

// The buckets of a thread.
#define SORT_EACH_BUCKET(b)                                                    \
  _Pragma("clang loop unroll(disable)") for (unsigned b = worker->thread;      \
                                             b < SortBuckets;                  \
                                             b += worker->threads)

// `starts`: how many are in deeper buckets than each. Threads need to wait for
// each other before they read those of others.
SORT_INLINE static void sortScan(const struct SortWorker *worker,
                                 const unsigned *counts, unsigned *starts) {
  struct SortMemory *memory = worker->memory;
  SORT_EACH_BUCKET(b) {
    unsigned group = b / 32, own = 0;
#pragma clang loop unroll(full)
    for (unsigned k = 0; k < 32; ++k) {
      unsigned count = counts[32 * group + k];
      own += k > b % 32 ? count : 0;
    }
    if (b % 32 == 0)
      memory->groups[group] = own + counts[b];
    starts[b] = own;
  }
  costate_device_block_barrier();
  SORT_EACH_BUCKET(b) {
    unsigned deeper = 0;
#pragma clang loop unroll(disable)
    for (unsigned g = b / 32 + 1; g < SortGroups; ++g)
      deeper += memory->groups[g];
    starts[b] += deeper;
  }
}

// Before a chunk is counted.
SORT_INLINE static void sortClear(struct SortWorker *worker) {
  SORT_EACH_BUCKET(b) worker->memory->bins[b] = 0;
  worker->iterations = worker->rounds = worker->passing = worker->deepest = 0;
  costate_device_block_barrier();
}

// The block has read all that it needs of the control, which the last one
// clears.
SORT_INLINE static void sortLeave(struct SortWorker *worker) {
  if (worker->thread)
    return;
  worker->left = (unsigned)deviceAddInOrder(&worker->call->control->left, 1);
}

SORT_INLINE static void sortEnd(const struct SortWorker *worker) {
  struct SortControl *control = worker->call->control;
  if (worker->thread == 0) {
    worker->memory->isLast = worker->left + 1 == worker->call->blocks;
    if (worker->reports)
      *worker->call->report = (struct SortReport){
          worker->iterations, worker->rounds, worker->deepest, worker->passing,
          worker->call->workItems};
  }
  costate_device_block_barrier();
  if (!worker->memory->isLast)
    return;
  SORT_EACH_BUCKET(b) control->totals[b] = 0;
  if (worker->thread == 0) {
    control->iterations = control->rounds = control->passing =
        control->deepest = 0;
    control->progress = control->left = 0;
  }
}

// Whether there is anything to count for this block. `place`: a TapePlace.
SORT_INLINE unsigned long long costate_device_sort_begin(
    struct SortWorker *worker, const struct SortCall *call,
    unsigned long long thread, char *memory, unsigned long long place) {
  worker->call = call;
#ifdef COSTATE_VULKAN
  worker->runs = place == TapeForSort && call->chunks != 0;
#else
  worker->runs = place != TapeInDrain && call->chunks != 0;
#endif
  if (!worker->runs)
    return 0;
  worker->memory = (struct SortMemory *)memory;
  worker->keys = (unsigned *)(worker->memory + 1);
  worker->sorted = worker->keys + call->chunk;
#ifdef __NVPTX__
  worker->thread = __nvvm_read_ptx_sreg_tid_x();
  worker->threads = __nvvm_read_ptx_sreg_ntid_x();
#else
  worker->thread = (unsigned)(thread % call->blockThreads);
  worker->threads = (unsigned)call->blockThreads;
#endif
  worker->latest = SORT_NONE;
  worker->places = worker->counted = worker->left = 0;
  if (worker->thread == 0)
    worker->memory->chunk = sortProgress(worker, 0);
  sortClear(worker);
  worker->chunk = worker->memory->chunk;
  worker->kept = call->keeps ? worker->chunk : SORT_NONE;
  worker->reports = worker->chunk == 0;
  if (worker->chunk < call->chunks)
    return 1;
  sortLeave(worker);
  sortEnd(worker);
  return 0;
}

// How many work items of a chunk each thread looks at.
SORT_INLINE unsigned long long
costate_device_sort_rounds(const struct SortWorker *worker) {
  return (worker->call->chunk + worker->threads - 1) / worker->threads;
}

// The work item that this thread looks at now; all ones: none.
SORT_INLINE unsigned long long
costate_device_sort_work_item(const struct SortWorker *worker,
                              unsigned long long round) {
  const struct SortCall *call = worker->call;
  unsigned long long place = round * worker->threads + worker->thread;
  unsigned long long item = worker->chunk * call->chunk + place;
  return place < call->chunk && item < call->workItems ? item : ~0ull;
}

// `depth`: 0 for no item; less: the item has no effect, and no place.
SORT_INLINE void costate_device_sort_take(struct SortWorker *worker,
                                          unsigned long long round,
                                          unsigned long long item,
                                          unsigned long long depth) {
  const struct SortCall *call = worker->call;
  const unsigned long long deepest = 1ull << 31;
  unsigned isThere = item != ~0ull, passes = isThere && !(depth >> 63);
  unsigned bucket, place = 0;
  if (depth > deepest)
    depth = passes ? deepest : 0;
  if (!worker->places) {
    unsigned long long most = costate_device_warp_max(depth);
    worker->iterations += depth;
    worker->rounds += isThere ? most : 0;
    worker->deepest = worker->deepest > most ? worker->deepest : most;
    worker->passing += passes;
  }
  bucket = sortBucket((unsigned)depth);
  if (passes && call->order)
    place =
        __atomic_fetch_add(&worker->memory->bins[bucket], 1, __ATOMIC_RELAXED);
  if (worker->places) {
    if (passes)
      call->order[place] = (unsigned)item;
  } else if (worker->kept == worker->chunk && isThere) {
    unsigned long long k = round * worker->threads + worker->thread;
    worker->keys[k] = passes ? bucket << 16 | place : SORT_NONE;
  }
}

// What the warps of the block have counted beside buckets goes to the totals.
// Threads meet between the two.
SORT_INLINE static void sortLeaveStats(const struct SortWorker *worker) {
  struct SortMemory *memory = worker->memory;
  unsigned warp = worker->thread / deviceLanes;
  double iterations = costate_device_warp_add((double)worker->iterations);
  double rounds = costate_device_warp_add((double)worker->rounds);
  double passing = costate_device_warp_add((double)worker->passing);
  if (worker->thread % deviceLanes)
    return;
  memory->stats[0][warp] = (unsigned long long)iterations;
  memory->stats[1][warp] = (unsigned long long)rounds;
  memory->stats[2][warp] = (unsigned long long)passing;
  memory->stats[3][warp] = worker->deepest;
}

SORT_INLINE static void sortAddStats(const struct SortWorker *worker) {
  struct SortControl *control = worker->call->control;
  const unsigned long long *row = worker->memory->stats[worker->thread % 4];
  unsigned long long sum = 0, most = 0;
  if (worker->thread >= SortStats)
    return;
  for (unsigned warp = 0; warp < worker->threads / deviceLanes; ++warp) {
    sum += row[warp];
    most = most > row[warp] ? most : row[warp];
  }
  if (worker->thread < 3)
    deviceAdd(&control->iterations + worker->thread, sum);
  else
    __atomic_fetch_max(&control->deepest, most, __ATOMIC_RELAXED);
}

// Takes its part of each bucket for the chunk.
SORT_INLINE static void sortAddCounts(const struct SortWorker *worker) {
  const struct SortCall *call = worker->call;
  unsigned *bases =
      call->bases + (unsigned long long)worker->chunk * SortBuckets;
  SORT_EACH_BUCKET(b) {
    unsigned count = worker->memory->bins[b], base = 0;
    if (count)
      base = __atomic_fetch_add(&call->control->totals[b], count,
                                __ATOMIC_RELAXED);
    bases[b] = base;
  }
}

// Brings the kept chunk in order, so that its neighbours there are neighbours
// in the whole order. `moved` says where each of its buckets starts.
SORT_INLINE static void sortKept(const struct SortWorker *worker) {
  const struct SortCall *call = worker->call;
  unsigned long long first = worker->chunk * call->chunk;
  for (unsigned long long k = worker->thread;
       k < call->chunk && first + k < call->workItems; k += worker->threads) {
    unsigned key = worker->keys[k], bucket = key >> 16;
    if (key != SORT_NONE)
      worker->sorted[worker->memory->moved[bucket] + key % 65536] =
          bucket << 16 | (unsigned)k;
  }
}

// What a chunk has counted becomes known to all. Whether there is another one.
SORT_INLINE static unsigned sortFinishChunk(struct SortWorker *worker) {
  const struct SortCall *call = worker->call;
  struct SortMemory *memory = worker->memory;
  unsigned isKept = worker->kept == worker->chunk;
  ++worker->counted;
  sortLeaveStats(worker);
  costate_device_block_barrier();
  sortAddStats(worker);
  if (call->order)
    sortAddCounts(worker);
  if (isKept) {
    sortScan(worker, memory->bins, memory->moved);
    if (worker->thread == 0)
      memory->size = memory->moved[0] + memory->bins[0];
  }
  costate_device_block_barrier();
  if (worker->thread == 0) {
    memory->chunk = sortProgress(worker, 1);
    if (call->order && !isKept)
      call->before[worker->chunk] = worker->latest;
  }
  if (isKept)
    sortKept(worker);
  else
    worker->latest = worker->chunk;
  costate_device_block_barrier();
  if (memory->chunk >= call->chunks)
    return 0;
  worker->chunk = memory->chunk;
  sortClear(worker);
  return 1;
}

// Until `chunks` are counted or placed, as the low half of `cell` says.
SORT_INLINE static void sortWaitFor(const struct SortWorker *worker,
                                    const unsigned long long *cell) {
  if (worker->thread == 0)
    while ((unsigned)deviceLoadInOrder(cell) < worker->call->chunks)
#ifdef __NVPTX__
      ;
#else
      sched_yield();
#endif
  costate_device_block_barrier();
}

// Takes from the control what is needed of it.
SORT_INLINE static void sortBeginPlaces(struct SortWorker *worker) {
  struct SortControl *control = worker->call->control;
  struct SortMemory *memory = worker->memory;
  worker->places = 1;
  SORT_EACH_BUCKET(b)
  memory->bins[b] = __atomic_load_n(&control->totals[b], __ATOMIC_RELAXED);
  if (worker->reports && worker->thread == 0) {
    worker->iterations = sortLoad(&control->iterations);
    worker->rounds = sortLoad(&control->rounds);
    worker->passing = sortLoad(&control->passing);
    worker->deepest = sortLoad(&control->deepest);
    control->ordered = worker->passing;
  }
  costate_device_block_barrier();
  sortLeave(worker);
  sortScan(worker, memory->bins, memory->starts);
}

SORT_INLINE static void sortPlaceKept(const struct SortWorker *worker) {
  const struct SortCall *call = worker->call;
  struct SortMemory *memory = worker->memory;
  const unsigned *bases =
      call->bases + (unsigned long long)worker->kept * SortBuckets;
  unsigned first = (unsigned)(worker->kept * call->chunk);
  SORT_EACH_BUCKET(b)
  memory->moved[b] = memory->starts[b] - memory->moved[b] + bases[b];
  costate_device_block_barrier();
  for (unsigned k = worker->thread; k < memory->size; k += worker->threads) {
    unsigned key = worker->sorted[k];
    call->order[memory->moved[key >> 16] + k] = first + key % 65536;
  }
}

// The chunk of the block that was counted last, of those that are left.
SORT_INLINE static void sortBeginChunk(struct SortWorker *worker) {
  const struct SortCall *call = worker->call;
  struct SortMemory *memory = worker->memory;
  const unsigned *bases;
  costate_device_block_barrier();
  worker->chunk = worker->latest;
  worker->latest = call->before[worker->chunk];
  bases = call->bases + (unsigned long long)worker->chunk * SortBuckets;
  SORT_EACH_BUCKET(b) memory->bins[b] = memory->starts[b] + bases[b];
  costate_device_block_barrier();
}

// After all rounds. Whether there are more: chunks to be counted, or those
// that are not kept once more, to be placed.
SORT_INLINE unsigned long long
costate_device_sort_next(struct SortWorker *worker) {
  if (!worker->places) {
    if (sortFinishChunk(worker))
      return 1;
    sortWaitFor(worker, &worker->call->control->progress);
    sortBeginPlaces(worker);
    if (worker->kept != SORT_NONE)
      sortPlaceKept(worker);
  }
  if (worker->call->order && worker->latest != SORT_NONE) {
    sortBeginChunk(worker);
    return 1;
  }
  sortEnd(worker);
  return 0;
}

// After all chunks: the order is there, and the memory of the block is free.
SORT_INLINE void costate_device_sort_end(const struct SortWorker *worker) {
  struct SortControl *control = worker->call->control;
  if (!worker->runs)
    return;
  costate_device_block_barrier();
  if (!worker->call->order)
    return;
  if (worker->thread == 0)
    deviceAddInOrder(&control->placed, worker->counted);
  sortWaitFor(worker, &control->placed);
  if (worker->thread == 0 &&
      deviceAddInOrder(&control->passed, 1) + 1 == worker->call->blocks)
    control->placed = control->passed = 0;
}

#ifdef __cplusplus
}
#endif
