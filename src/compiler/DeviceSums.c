// How the threads of a grid add up numbers, in an order that only the grid
// decides: lanes, warps, blocks. For device code, see CMakeLists.txt: as
// bitcode for GPUs, and compiled for the host as one. `memory` is that of the
// block, base/DeviceWords.h says how much is used of it.

#define INLINE __attribute__((always_inline))
#define COLLECTIVE __attribute__((convergent))

enum { warpSize = 32, mostWarps = 32 };

COLLECTIVE double costate_device_warp_add(double value);
COLLECTIVE void costate_device_block_barrier(void);
long costate_device_block_threads(void);

typedef struct {
  unsigned number, thread, threads;
} Block;

INLINE static Block blockOf(long thread) {
  unsigned threads = costate_device_block_threads();
  return (Block){(unsigned)thread / threads, (unsigned)thread % threads,
                 threads};
}

// In the first thread. Two rows in turn: while it reads one, other warps may
// be at the next.
INLINE static double blockSum(Block block, double *memory, long turn,
                              double value) {
  double *row = memory + turn % 2 * mostWarps;
  double sum = costate_device_warp_add(value);
  if (block.thread % warpSize == 0)
    row[block.thread / warpSize] = sum;
  costate_device_block_barrier();
  if (block.thread)
    return 0;
  for (unsigned warp = 1; warp * warpSize < block.threads; ++warp)
    sum += row[warp];
  return sum;
}

// What a block adds up, in its first thread; 0 in others. All of its threads
// call this, for one sum after another.
INLINE double costate_device_block_sum(long thread, double *memory, long k,
                                       double value) {
  if (k == 0) // the memory may have been used for something else
    costate_device_block_barrier();
  return blockSum(blockOf(thread), memory, k, value);
}

// Leaves what a block adds to sum `k` at partials[k * count + first + block].
// All of its threads call this, for one sum after another.
INLINE void costate_device_add_up(double *partials, long count, long first,
                                  long thread, double *memory, long k,
                                  double value) {
  Block block = blockOf(thread);
  double sum = costate_device_block_sum(thread, memory, k, value);
  if (block.thread == 0)
    partials[k * count + first + block.number] = sum;
}

// Whether all other blocks of the grid have been here. Clears the ticket.
INLINE static _Bool isLast(Block block, long threads, unsigned long *ticket,
                           double *memory) {
  unsigned long *last = (unsigned long *)(memory + 2 * mostWarps);
  if (block.thread == 0) {
    unsigned blocks = (unsigned)threads / block.threads;
    // LLVM forgets the order of atomics on NVIDIA GPUs, but not fences.
    __atomic_thread_fence(__ATOMIC_ACQ_REL);
    *last = __atomic_add_fetch(ticket, 1, __ATOMIC_RELAXED) == blocks;
    __atomic_thread_fence(__ATOMIC_ACQ_REL);
    if (*last)
      *ticket = 0;
  }
  costate_device_block_barrier();
  return *last;
}

// What a thread adds of the partial sums from here on; several are under way at
// a time.
INLINE static double stride(const double *at, const double *end,
                            unsigned step) {
  double sum = 0;
  for (; end - at > 3 * (long)step; at += 4 * step) {
    double a = at[0], b = at[step], c = at[2 * step], d = at[3 * step];
    sum = sum + a + b + c + d;
  }
  for (; at < end; at += step)
    sum += *at;
  return sum;
}

// The last block of the grid to come here adds up all partial sums. All threads
// call this; nothing happens if there is no ticket. Whether this thread has
// written the sums.
long costate_device_finish_sums(const double *partials, long count,
                                unsigned long *ticket, long thread,
                                long threads, double *memory, long sums,
                                double *to) {
  Block block = blockOf(thread);
  if (!ticket || !isLast(block, threads, ticket, memory))
    return 0;
  for (long k = 0; k < sums; ++k) {
    const double *row = partials + k * count;
    double own = stride(row + block.thread, row + count, block.threads);
    double sum = blockSum(block, memory, sums + k, own);
    if (block.thread == 0)
      to[k] = sum;
  }
  return block.thread == 0;
}
