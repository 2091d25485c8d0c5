// How the threads of a grid add up numbers, in an order that only the grid
// decides: lanes, warps, blocks. For device code, see CMakeLists.txt: as
// bitcode for GPUs, and compiled for the host as one. `memory` is that of the
// block, base/DeviceWords.h says how much is used of it.

#include "base/DeviceAtomics.h"
#include "base/DeviceLanes.h"
#include "base/RangeSums.h"

#define INLINE __attribute__((always_inline))
#define COLLECTIVE __attribute__((convergent))

#define warpSize deviceLanes
enum { mostWarps = 32, atOnce = 4 };
#ifdef COSTATE_VULKAN
enum { warpsFinish = 0 };
#else
enum { warpsFinish = 1 };
#endif

COLLECTIVE double costate_device_warp_fold(double value, long kind);
COLLECTIVE unsigned long costate_device_warp_max(unsigned long value);
COLLECTIVE void costate_device_warp_barrier(void);
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

// Of the warp of this thread.
INLINE static unsigned lanesOf(Block block) {
  unsigned left = block.threads - block.thread / warpSize * warpSize;
  return left < warpSize ? left : warpSize;
}

// In the first thread. Two rows alternate: while it reads one, other warps may
// be at the next.
INLINE static double blockSum(Block block, double *memory, long pass, long kind,
                              double value) {
  double *row = memory + pass % 2 * mostWarps;
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

INLINE static long bitsOf(double word) {
  return __builtin_bit_cast(long, word);
}

// Of partial sums that another block may wait for.
INLINE static double loadPart(const double *part) {
  long bits = __atomic_load_n((const long *)part, __ATOMIC_RELAXED);
  return __builtin_bit_cast(double, bits);
}

INLINE static void storePart(double *part, double sum) {
#ifdef COSTATE_VULKAN
  *part = sum;
#else
  __atomic_store_n((long *)part, bitsOf(sum), __ATOMIC_RELAXED);
#endif
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
  if (warpsFinish && kind == costateFloatSums && sum == 0)
    sum = -0.0; // the bits of 0 say that it has not come
  if (block.thread == 0)
    storePart(partials + k * count + first + block.number, sum);
}

// The same in all threads of a block: whoever comes here has read it in front
// of the barrier of the next pass.
INLINE static double blockLeast(Block block, double *memory, long pass,
                                double value) {
  double least = blockSum(block, memory, pass, costateIntegerMinima, value);
  double *row = memory + pass % 2 * mostWarps;
  if (block.thread == 0)
    row[0] = least;
  costate_device_block_barrier();
  return row[0];
}

typedef struct {
  double words[2]; // the key and its place, of i64
} Pair;

// The least pair of a block, in its first thread.
INLINE static Pair blockPair(Block block, double *memory, long pass, Pair own) {
  double key = blockLeast(block, memory, pass, own.words[0]);
  double place = bitsOf(own.words[0]) == bitsOf(key)
                     ? own.words[1]
                     : costateNoSum(costateIntegerMinima);
  place = blockSum(block, memory, pass + 1, costateIntegerMinima, place);
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

// For the first thread of a block: whether all others of the grid have been
// here. Clears the ticket.
INLINE static _Bool isLast(unsigned blocks, unsigned long long *ticket) {
  _Bool last = deviceAddInOrder(ticket, 1) + 1 == blocks;
  if (last)
    *ticket = 0;
  return last;
}

// The same for all threads of the first warp, the only ones to call this; they
// see what other blocks have left.
INLINE static _Bool isLastForWarp(Block block, unsigned blocks,
                                  unsigned long long *ticket) {
  _Bool last = 1;
  if (blocks > 1)
    last = costate_device_warp_max(block.thread == 0 && isLast(blocks, ticket));
  costate_device_warp_barrier();
  return last;
}

// The same for all threads of the block.
INLINE static _Bool isLastForBlock(Block block, unsigned blocks,
                                   unsigned long long *ticket, double *memory) {
  unsigned long *last = (unsigned long *)(memory + 2 * mostWarps);
  if (block.thread == 0)
    *last = blocks == 1 || isLast(blocks, ticket);
  costate_device_block_barrier();
  return *last;
}

// What a thread, or a lane, adds of the partial sums; several are under way at
// a time.
INLINE static double stride(const double *row, unsigned count, unsigned first,
                            unsigned step, long kind) {
  double none = costateNoSum(kind), sum = none;
  for (unsigned at = first; at < count; at += atOnce * step) {
    double terms[atOnce];
#pragma clang loop unroll(full)
    for (unsigned k = 0; k < atOnce; ++k) {
      unsigned place = at + k * step;
      if (warpsFinish) // a load without a branch
        terms[k] = row[place < count ? place : at];
      else
        terms[k] = place < count ? row[place] : none;
    }
#pragma clang loop unroll(full)
    for (unsigned k = 0; k < atOnce; ++k)
      sum = costateAddUp(kind, sum, at + k * step < count ? terms[k] : none);
  }
  return sum;
}

// The same of parts that are about to come: they are 0 until then, and here
// again.
INLINE static double strideAsTheyCome(double *row, unsigned count,
                                      unsigned first, unsigned step) {
  double sum = 0;
  for (unsigned at = first; at < count; at += atOnce * step) {
    double terms[atOnce];
    _Bool waits;
    do {
      waits = 0;
#pragma clang loop unroll(full)
      for (unsigned k = 0; k < atOnce; ++k) {
        unsigned place = at + k * step;
        terms[k] = loadPart(row + (place < count ? place : at));
        waits |= bitsOf(terms[k]) == 0;
      }
    } while (waits);
#pragma clang loop unroll(full)
    for (unsigned k = 0; k < atOnce; ++k)
      if (at + k * step < count) {
        sum += terms[k];
        storePart(row + at + k * step, 0);
      }
  }
  return sum;
}

// One sum of few parts, for the first warp of a block: others need not wait.
INLINE static long finishOne(double *partials, unsigned count, Block block,
                             unsigned blocks, unsigned long long *ticket,
                             long kind, double *to) {
  unsigned step = lanesOf(block);
  double sum;
  if (kind == costateFloatSums && (void *)ticket == (void *)partials) {
    if (block.number + 1 != blocks)
      return 0;
    costate_device_warp_barrier(); // the first lane has left that of the block
    sum = strideAsTheyCome(partials, count, block.thread, step);
  } else {
    if (!isLastForWarp(block, blocks, ticket))
      return 0;
    sum = stride(partials, count, block.thread, step, kind);
  }
  sum = costate_device_warp_fold(sum, kind);
  if (block.thread == 0)
    *to = sum;
  return block.thread == 0;
}

// Each warp takes some of the sums.
INLINE static void finishMany(const double *partials, unsigned count,
                              Block block, long sums, long kind, double *to) {
  unsigned step = lanesOf(block);
  unsigned lane = block.thread % warpSize;
  unsigned warps = (block.threads + warpSize - 1) / warpSize;
  for (long k = block.thread / warpSize; k < sums; k += warps) {
    double sum = stride(partials + k * count, count, lane, step, kind);
    sum = costate_device_warp_fold(sum, kind);
    if (lane == 0)
      to[k] = sum;
  }
  costate_device_block_barrier();
}

// One after the other.
INLINE static void finishSerially(const double *partials, unsigned count,
                                  Block block, double *memory, long sums,
                                  long kind, double *to) {
  for (long k = 0; k < sums; ++k) {
    const double *row = partials + k * count;
    double own = stride(row, count, block.thread, block.threads, kind);
    double sum = blockSum(block, memory, sums + k, kind, own);
    if (block.thread == 0)
      to[k] = sum;
  }
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

// The last block of the grid to come here adds up all partial sums, or, if the
// parts are what the ticket points to, the block with the highest number, which
// waits for them. All threads call this; nothing happens if there is no ticket.
// Whether this thread, the first of a block, shall use the sums.
INLINE long costate_device_finish_sums(double *partials, long count,
                                       unsigned long long *ticket, long thread,
                                       long threads, double *memory, long sums,
                                       long kind, double *to) {
  Block block = blockOf(thread);
  if (!ticket)
    return 0;
  unsigned blocks = blocksOf(block, threads);
  _Bool isOne = sums == 1 && kind != costateLeastPair;
  if (warpsFinish && isOne && count <= costateFewParts)
    return block.thread < warpSize &&
           finishOne(partials, (unsigned)count, block, blocks, ticket, kind,
                     to);
  if (!isLastForBlock(block, blocks, ticket, memory))
    return 0;
  if (kind == costateLeastPair)
    finishPair(partials, count, block, memory, to);
  else if (warpsFinish && !isOne)
    finishMany(partials, (unsigned)count, block, sums, kind, to);
  else
    finishSerially(partials, (unsigned)count, block, memory, sums, kind, to);
  return block.thread == 0;
}
