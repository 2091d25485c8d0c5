// Tapes of warps, as device code sees them: which rows a warp has, which tiles
// of as many work items as a warp has lanes it runs, and what becomes of those that do not fit.
// Linked into device code as bitcode, and into the runtime for the device simt.
// All lanes of a warp call these functions together; what they return is the
// same for all of them. Layouts: base/DeviceWords.h, base/DeviceTape.h.

#include "base/DeviceTape.h"
#include "base/DeviceAtomics.h"
#include "base/DeviceLanes.h"

#ifdef __NVPTX__
#define TAPE_INLINE __attribute__((always_inline))
#else
#define TAPE_INLINE
#endif

#define TAPE_ALL (~0ull)
// A word for each lane.
#define rowBytes (4 * deviceLanes)

#ifdef __cplusplus
extern "C" {
#endif

#define TAPE_COLLECTIVE __attribute__((convergent))
TAPE_COLLECTIVE unsigned long long
costate_device_warp_max(unsigned long long value);
TAPE_COLLECTIVE void costate_device_block_barrier(void);
TAPE_COLLECTIVE void costate_device_warp_barrier(void);

static void tapeRaise(unsigned long long *cell, unsigned long long value) {
  unsigned long long old = __atomic_load_n(cell, __ATOMIC_RELAXED);
  while (old < value &&
         !__atomic_compare_exchange_n(cell, &old, value, 0, __ATOMIC_RELAXED,
                                      __ATOMIC_RELAXED))
    ;
}

static void tapeFence(void) {
#ifdef __NVPTX__
  __nvvm_membar_gl();
#else
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

// Single precision, as processors of a GPU have few units of double: what
// follows from it need only be the same everywhere, not exact.
static float tapeRoot(float value) {
#ifdef __NVPTX__
  return __nvvm_sqrt_rn_f(value);
#else
  return __builtin_sqrtf(value);
#endif
}

static unsigned tapeCeil(float value) {
  unsigned whole = (unsigned)value;
  return whole + (whole < value);
}

//===-- Loops that are too deep -------------------------------------------===//

// Trip counts and rows that are as large stand for all larger ones.
#define TAPE_MOST ((1u << 30) - 1)

// Iterations from one checkpoint to the next that need the minimum of rows, or
// nearly.
TAPE_INLINE unsigned costate_device_tape_segment(unsigned iterations,
                                                 unsigned unit,
                                                 unsigned checkpoint) {
  float each = unit == checkpoint ? 1.0f : (float)checkpoint / (float)unit;
  unsigned segment = tapeCeil(tapeRoot(each * (float)iterations));
  segment = segment < iterations ? segment : iterations;
  return segment ? segment : 1;
}

static unsigned long long tapeRowsOf(unsigned kept, unsigned rest,
                                     unsigned unit, unsigned checkpoint) {
  unsigned segment = costate_device_tape_segment(rest, unit, checkpoint);
  unsigned pieces = (rest + segment - 1) / segment;
  return (unsigned long long)(kept + segment) * unit +
         (unsigned long long)checkpoint * pieces;
}

// As many first iterations as leave enough rows for the rest: x = sqrt(rest),
//   unit x^2 - 2 sqrt(checkpoint unit) x
//     = iterations unit + unit + checkpoint - rows.
// Where rounding makes that too few rows, a few iterations more.
TAPE_INLINE unsigned costate_device_tape_kept(unsigned iterations,
                                              unsigned unit,
                                              unsigned checkpoint,
                                              unsigned rows) {
  unsigned long long needed =
      (unsigned long long)iterations * unit + unit + checkpoint;
  float c = checkpoint, over = needed > rows ? (float)(needed - rows) : 0;
  float root = tapeRoot(c) + tapeRoot(c + over);
  float most = root * root / (float)unit;
  unsigned rest = most < (float)iterations ? tapeCeil(most) : iterations;
  if (iterations >= TAPE_MOST)
    return ~0u;
  while (rest && tapeRowsOf(iterations - rest, rest, unit, checkpoint) > rows) {
    if (rest >= iterations)
      return ~0u;
    rest += rest / 64 + 1;
    rest = rest < iterations ? rest : iterations;
  }
  return iterations - rest;
}

TAPE_INLINE unsigned costate_device_tape_min_rows(unsigned iterations,
                                                  unsigned unit,
                                                  unsigned checkpoint) {
  unsigned long long rows =
      tapeRowsOf(0, iterations, unit, checkpoint) + unit + checkpoint;
  return rows < TAPE_MOST ? rows : TAPE_MOST;
}

//===-- Warps and tiles ---------------------------------------------------===//

// As many warps as the heap can give `minRows` rows, and enough to keep the
// device busy.
TAPE_INLINE static void tapePlan(const struct TapeControl *control,
                                 const struct TapeCall *call,
                                 unsigned long long minRows, unsigned *warps,
                                 unsigned long long *rows) {
  unsigned long long fit =
      minRows ? control->heapRows / minRows : call->mostWarps;
  if (fit < call->leastWarps)
    fit = call->leastWarps;
  *warps = fit < call->mostWarps ? fit : call->mostWarps;
  *rows = control->heapRows / *warps;
  *rows = *rows < TAPE_MOST ? *rows : TAPE_MOST - 1;
}

TAPE_INLINE static void tapeBeginShared(struct TapeWorker *worker,
                                        char *memory) {
  worker->rows = worker->call->sharedRows;
  worker->base = memory + worker->threadOfBlock / deviceLanes * worker->rows * rowBytes;
  worker->tile = worker->warp;
}

TAPE_INLINE static void tapeBeginHeap(struct TapeWorker *worker) {
  const struct TapeCall *call = worker->call;
  struct TapeControl *control = call->control;
  unsigned long long minRows =
      call->hostMinRows ? call->hostMinRows : call->need->minRows;
  tapePlan(control, call, minRows, &worker->warps, &worker->rows);
  worker->base = (char *)control->heap + worker->warp * worker->rows * rowBytes;
  worker->tile = worker->warp < worker->warps ? worker->warp : TAPE_ALL;
}

// The next place on the list of a drain, from `place` on.
static unsigned long long tapeListed(const struct TapeCall *call,
                                     unsigned long long place,
                                     unsigned long long step) {
  unsigned long long end =
      call->marksTiles ? call->tiles : call->control->listed;
  while (call->marksTiles && place < end && !call->list[place])
    place += step;
  return place < end ? place : TAPE_ALL;
}

// With as many rows loops of thousands of iterations find a way.
#define TAPE_SOME_ROWS 1792

// Where more tiles can run at a time: in shared memory or on the heap. Loops
// may find a way with fewer rows than they ask for, if there are not so many.
TAPE_INLINE static void tapeBeginDrain(struct TapeWorker *worker,
                                       char *memory) {
  const struct TapeCall *call = worker->call;
  struct TapeControl *control = call->control;
  unsigned long long rows = control->seenMinRows ? control->seenMinRows : 1;
  unsigned long long blocks = worker->warps / (call->blockThreads / deviceLanes);
  unsigned long long warpsOfBlock = call->blockThreads / deviceLanes;
  if (rows > call->drainRows && rows > control->heapRows) {
    unsigned long long some =
        control->heapRows < TAPE_SOME_ROWS ? control->heapRows : TAPE_SOME_ROWS;
    rows = control->heapRows / blocks;
    rows = rows > call->drainRows ? rows : call->drainRows;
    rows = rows > some ? rows : some;
    rows = rows ? rows : 1;
  }
  unsigned long long here = call->drainRows / rows;
  here = here < warpsOfBlock ? here : warpsOfBlock;
  unsigned long long onHeap = control->heapRows / rows;
  onHeap = onHeap < worker->warps ? onHeap : worker->warps;
  if (here && here * blocks >= onHeap) {
    worker->rows = call->drainRows / here;
    worker->base = memory + worker->threadOfBlock / deviceLanes * worker->rows * rowBytes;
    worker->warps = here * blocks;
  } else if (onHeap) {
    worker->rows = control->heapRows / onHeap;
    worker->rows = worker->rows < TAPE_MOST ? worker->rows : TAPE_MOST - 1;
    worker->base = (char *)control->heap + worker->warp * worker->rows * rowBytes;
    worker->warps = onHeap;
  } else {
    worker->warps = 1; // reports every tile
    worker->rows = 0;
    worker->base = 0;
  }
  worker->tile = worker->warp < worker->warps
                     ? tapeListed(call, worker->warp, worker->warps)
                     : TAPE_ALL;
}

#ifndef __NVPTX__
// On GPUs there are kernels of each function with constants instead of these
// calls: where tapes lie in shared memory, and for drains.
unsigned long long costate_device_tape_place(void) { return TapeAnywhere; }
unsigned long long costate_device_tape_drains(const struct TapeWorker *worker) {
  return worker->call->drains;
}
#endif

TAPE_INLINE void costate_device_tape_begin(struct TapeWorker *worker,
                                           const struct TapeCall *call,
                                           unsigned long long thread,
                                           unsigned long long threads,
                                           char *memory,
                                           unsigned long long place) {
#ifdef __NVPTX__
  unsigned block = __nvvm_read_ptx_sreg_ctaid_x();
  unsigned blocks = __nvvm_read_ptx_sreg_nctaid_x();
  worker->threadOfBlock = __nvvm_read_ptx_sreg_tid_x();
  worker->warps = blocks * (__nvvm_read_ptx_sreg_ntid_x() / deviceLanes);
#else
  unsigned block = thread / call->blockThreads;
  unsigned blocks = threads / call->blockThreads;
  worker->threadOfBlock = thread % call->blockThreads;
  worker->warps = threads / deviceLanes;
#endif
  worker->call = call;
  // Fewer warps than there are still spread over all multiprocessors.
  worker->warp = worker->threadOfBlock / deviceLanes * blocks + block;
  worker->lane = worker->threadOfBlock % deviceLanes;
  worker->need = worker->minRows = 0;
  worker->lowMemory = call->lowMemory;
  worker->sufficient = call->sufficient;
  if (place == TapeForSort || call->sortsOnly) {
    worker->tile = TAPE_ALL;
    return;
  }
  if (place == TapeInShared)
    tapeBeginShared(worker, memory);
  else if (place == TapeOnHeap)
    tapeBeginHeap(worker);
  else if (place == TapeInDrain || call->drains)
    tapeBeginDrain(worker, memory);
  else if (call->sharedRows)
    tapeBeginShared(worker, memory);
  else
    tapeBeginHeap(worker);
  if (call->control->error)
    worker->tile = TAPE_ALL;
}

static unsigned long long tapeWorkItems(const struct TapeCall *call) {
  return call->order ? *call->ordered : call->workItems;
}

// The tile that the warp runs now; none: all ones.
TAPE_INLINE unsigned long long
costate_device_tape_tile(const struct TapeWorker *worker) {
  const struct TapeCall *call = worker->call;
  if (worker->tile == TAPE_ALL)
    return TAPE_ALL;
  if (call->drains && !call->marksTiles)
    return call->list[worker->tile];
  return deviceLanes * worker->tile < tapeWorkItems(call) ? worker->tile : TAPE_ALL;
}

// The one that the lane has in a tile; 0 if it has none.
TAPE_INLINE unsigned long long
costate_device_tape_work_item(struct TapeWorker *worker,
                              unsigned long long tile) {
  const struct TapeCall *call = worker->call;
  unsigned long long place = deviceLanes * tile + worker->lane;
  worker->active = place < tapeWorkItems(call);
  if (!worker->active)
    return 0;
  return call->order ? call->order[place] : place;
}

// What lanes of the warp have read and written of its rows comes before what
// any of them does to these rows from here on: a row may hold words of another
// width then, which are other lanes'.
TAPE_INLINE void costate_device_tape_fence(void) {
  costate_device_warp_barrier();
}

// NVIDIA's assembler for CUDA would load rows right before their use, one after
// the other; it takes no load across a barrier. Elsewhere this does nothing.
TAPE_INLINE void costate_device_tape_ahead(void) {
#if !defined(COSTATE_TRANSLATED)
  costate_device_warp_barrier();
#endif
}

TAPE_INLINE unsigned long long
costate_device_tape_next(struct TapeWorker *worker) {
  const struct TapeCall *call = worker->call;
  costate_device_tape_fence();
  if (call->drains || call->inOrder) {
    worker->tile += worker->warps;
  } else {
    unsigned long long got = 0;
    if (worker->lane == 0)
      got =
          worker->warps +
          (call->hostRows ? worker->taken : deviceAdd(&call->control->next, 1));
    got = costate_device_warp_max(got);
    worker->tile = got ? got : TAPE_ALL; // the first lane has ended
  }
  if (call->drains)
    worker->tile = tapeListed(call, worker->tile, worker->warps);
  return costate_device_tape_tile(worker);
}

// After the forward sweep of a tile.
TAPE_INLINE void costate_device_tape_report(struct TapeWorker *worker,
                                            unsigned long long fits,
                                            unsigned long long need,
                                            unsigned long long minRows) {
  const struct TapeCall *call = worker->call;
  unsigned rows = need, few = minRows;
  worker->need = worker->need > rows ? worker->need : rows;
  worker->minRows = worker->minRows > few ? worker->minRows : few;
#if defined(__NVPTX__) && !defined(COSTATE_TRANSLATED)
  // Here, and not after the reverse sweep with all that they follow from.
  __asm__ volatile("" : "+r"(worker->need), "+r"(worker->minRows));
#endif
  struct TapeControl *control = call->control;
  // The answer takes its time. Where tiles are as long as each other none is
  // taken from a warp that would come to it sooner.
  if (call->hostRows && !call->drains && !call->inOrder && worker->lane == 0)
    worker->taken = deviceAdd(&control->next, 1);
  if (fits || worker->lane)
    return;
  unsigned long long tile = costate_device_tape_tile(worker);
  if (call->drains)
    call->failed[deviceAdd(&control->failed, 1)] = tile;
  else if (call->list && call->marksTiles)
    call->list[tile] = 1;
  else if (call->list)
    call->list[deviceAdd(&control->listed, 1)] = tile;
  else
    deviceAdd(&control->listed, 1);
}

// The last block leaves what the host and the next launch need.
static void tapeCommit(const struct TapeCall *call) {
  struct TapeControl *control = call->control;
  struct TapeNeed need = {control->seenRows ? control->seenRows : 1,
                          control->seenMinRows ? control->seenMinRows : 1,
                          control->listed, control->failed};
  const unsigned long long *failed = call->failed;
  if (!call->drains) { // nobody drains the list
    need.failed = need.listed;
    failed = call->list;
  }
  if (!control->error) {
    *call->need = need;
    *call->report = need;
  }
  if (need.failed && !control->error) {
    control->errorFunction = call->function;
    control->error = 1;
    call->failure->function = call->function;
    call->failure->tile = failed ? failed[0] : 0;
    call->failure->rows = need.minRows;
    call->failure->raised = 1;
  }
  control->seenRows = control->seenMinRows = 0;
  control->next = control->listed = control->failed = control->ticket = 0;
}

TAPE_INLINE void costate_device_tape_end(struct TapeWorker *worker) {
  const struct TapeCall *call = worker->call;
  struct TapeControl *control = call->control;
  if (call->sortsOnly)
    return;
  if (worker->lane == 0) {
    tapeRaise(&control->seenRows, worker->need);
    tapeRaise(&control->seenMinRows, worker->minRows);
  }
  if (!call->commits)
    return;
  tapeFence();
  costate_device_block_barrier();
  if (worker->threadOfBlock)
    return;
  tapeFence();
  if (deviceAdd(&control->ticket, 1) + 1 == call->blocks)
    tapeCommit(call);
}

#ifdef __cplusplus
}
#endif
