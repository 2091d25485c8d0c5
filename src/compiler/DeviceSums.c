// How the threads of a grid add up numbers, in an order that only the grid
// decides: lanes, warps, blocks. For device code, see CMakeLists.txt: as
// bitcode for GPUs, and compiled for the host as one. `memory` is that of the
// block, base/DeviceWords.h says how much is used of it.

#include "base/DeviceAtomics.h"
#include "base/RangeSums.h"

#define INLINE __attribute__((always_inline))
#define COLLECTIVE __attribute__((convergent))

enum { warpSize = 32, mostWarps = 32 };

COLLECTIVE double costate_device_warp_fold(double value, long kind);
COLLECTIVE void costate_device_block_barrier(void);
long costate_device_block_threads(void);

typedef struct {
  unsigned number, thread, threads;
} Block;

INLINE static Block blockOf(long thread) {
  unsigned threads = costate_device_block_threads();
#ifdef __NVPTX__
  return (Block){__nvvm_read_ptx_sreg_ctaid_x(), __nvvm_read_ptx_sreg_tid_x(),
                 threads};
#else
  return (Block){(unsigned)thread / threads, (unsigned)thread % threads,
                 threads};
#endif
}

INLINE static unsigned blocksOf(Block block, long threads) {
#ifdef __NVPTX__
  return __nvvm_read_ptx_sreg_nctaid_x();
#else
  return (unsigned)threads / block.threads;
#endif
}

// In the first thread. Two rows in turn: while it reads one, other warps may
// be at the next.
INLINE static double blockSum(Block block, double *memory, long turn, long kind,
                              double value) {
  double *row = memory + turn % 2 * mostWarps;
  double sum = costate_device_warp_fold(value, kind);
  if (block.thread % warpSize == 0)
    row[block.thread / warpSize] = sum;
  costate_device_block_barrier();
  double none = costateNoSum(kind);
  if (block.thread >= warpSize)
    return none;
  sum = costate_device_warp_fold(
      block.thread * warpSize < block.threads ? row[block.thread] : none, kind);
  return block.thread ? none : sum;
}

// What a block adds up, in its first thread; 0 in others. All of its threads
// call this, for one sum after another.
INLINE static double sumInBlock(long thread, double *memory, long k, long kind,
                                double value) {
  if (k == 0) // the memory may have been used for something else
    costate_device_block_barrier();
  return blockSum(blockOf(thread), memory, k, kind, value);
}

INLINE double costate_device_block_sum(long thread, double *memory, long k,
                                       double value) {
  return sumInBlock(thread, memory, k, costateFloatSums, value);
}

// Leaves what a block adds to sum `k` at partials[k * count + first + block].
// All of its threads call this, for one sum after another.
INLINE void costate_device_add_up(double *partials, long count, long first,
                                  long thread, double *memory, long k,
                                  long kind, double value) {
  Block block = blockOf(thread);
  double sum = sumInBlock(thread, memory, k, kind, value);
  if (block.thread == 0)
    partials[k * count + first + block.number] = sum;
}

// The same in all threads of a block: whoever comes here has read it in front
// of the barrier of the next turn.
INLINE static double blockLeast(Block block, double *memory, long turn,
                                double value) {
  double least = blockSum(block, memory, turn, costateIntegerMinima, value);
  double *row = memory + turn % 2 * mostWarps;
  if (block.thread == 0)
    row[0] = least;
  costate_device_block_barrier();
  return row[0];
}

typedef struct {
  double words[2]; // the key and its place, of i64
} Pair;

INLINE static long bitsOf(double word) {
  return __builtin_bit_cast(long, word);
}

// The least pair of a block, in its first thread.
INLINE static Pair blockPair(Block block, double *memory, long turn, Pair own) {
  double key = blockLeast(block, memory, turn, own.words[0]);
  double place = bitsOf(own.words[0]) == bitsOf(key)
                     ? own.words[1]
                     : costateNoSum(costateIntegerMinima);
  place = blockSum(block, memory, turn + 1, costateIntegerMinima, place);
  return (Pair){{key, place}};
}

// Like costate_device_add_up, for the two words of a pair.
INLINE void costate_device_add_up_pair(double *partials, long count, long first,
                                       long thread, double *memory, double key,
                                       double place) {
  Block block = blockOf(thread);
  costate_device_block_barrier(); // as in sumInBlock
  Pair least = blockPair(block, memory, 0, (Pair){{key, place}});
  for (long k = 0; k < 2 && block.thread == 0; ++k)
    partials[k * count + first + block.number] = least.words[k];
}

// Whether all other blocks of the grid have been here. Clears the ticket.
INLINE static _Bool isLast(Block block, long threads,
                           unsigned long long *ticket, double *memory) {
  unsigned long *last = (unsigned long *)(memory + 2 * mostWarps);
  if (block.thread == 0) {
    *last = deviceAddInOrder(ticket, 1) + 1 == blocksOf(block, threads);
    if (*last)
      *ticket = 0;
  }
  costate_device_block_barrier();
  return *last;
}

// What a thread adds of the partial sums; several are under way at a time.
INLINE static double stride(const double *row, unsigned count, unsigned first,
                            unsigned step, long kind) {
  enum { atOnce = 4 };
  double none = costateNoSum(kind), sum = none;
  for (unsigned at = first; at < count; at += atOnce * step) {
    double terms[atOnce];
#pragma clang loop unroll(full)
    for (unsigned k = 0; k < atOnce; ++k)
      terms[k] = at + k * step < count ? row[at + k * step] : none;
#pragma clang loop unroll(full)
    for (unsigned k = 0; k < atOnce; ++k)
      sum = costateAddUp(kind, sum, terms[k]);
  }
  return sum;
}

INLINE static Pair stridePairs(const double *partials, long count,
                               Block block) {
  double none = costateNoSum(costateLeastPair);
  Pair least = {{none, none}};
  for (long at = block.thread; at < count; at += block.threads) {
    double other[] = {partials[at], partials[count + at]};
    costateAddAll(costateLeastPair, 2, least.words, other);
  }
  return least;
}

INLINE static void finishPair(const double *partials, long count, Block block,
                              double *memory, double *to) {
  Pair own = stridePairs(partials, count, block);
  Pair least = blockPair(block, memory, 2, own);
  for (long k = 0; k < 2 && block.thread == 0; ++k)
    to[k] = least.words[k];
}

// The last block of the grid to come here adds up all partial sums. All threads
// call this; nothing happens if there is no ticket. Whether this thread has
// written the sums.
INLINE long costate_device_finish_sums(const double *partials, long count,
                                unsigned long long *ticket, long thread,
                                long threads, double *memory, long sums,
                                long kind, double *to) {
  Block block = blockOf(thread);
  if (!ticket || !isLast(block, threads, ticket, memory))
    return 0;
  if (kind == costateLeastPair)
    finishPair(partials, count, block, memory, to);
  for (long k = 0; k < sums && kind != costateLeastPair; ++k) {
    const double *row = partials + k * count;
    double own =
        stride(row, (unsigned)count, block.thread, block.threads, kind);
    double sum = blockSum(block, memory, sums + k, kind, own);
    if (block.thread == 0)
      to[k] = sum;
  }
  return block.thread == 0;
}
