#pragma once
/// What device code and the runtime share about tapes of warps. C, since device
/// code is C as well.

// NOLINTBEGIN
#ifdef __cplusplus
extern "C" {
#endif

/// Of a block that runs tiles.
enum { TAPE_BLOCK_THREADS = 256 };

/// Where the tapes of a kernel are, as far as its code knows.
/// A kernel that only sorts work items has none.
enum TapePlace {
  TapeAnywhere,
  TapeInShared,
  TapeOnHeap,
  TapeInDrain,
  TapeForSort
};

/// Of one function: the rows that the deepest tile of its last launch needs to
/// keep everything, and those that it can do with; tiles that went to the
/// drain, and those that did not fit there either.
struct TapeNeed {
  unsigned long long rows, minRows, listed, failed;
};

/// In the memory of the host: why launches do nothing.
struct TapeFailure {
  unsigned long long raised, function, tile, rows;
};

/// One per stream. Code, also in graphs, holds its address only.
struct TapeControl {
  unsigned long long heap, heapRows; ///< growth changes these two
  unsigned long long error;          ///< later launches do nothing
  unsigned long long errorFunction;
  unsigned long long next, listed, failed, ticket;
  unsigned long long seenRows, seenMinRows; ///< of the running launch
};

/// What a function that runs in tiles is called with, after its other words.
struct TapeCall {
  /// Filled by the host code of a kernel, where the host knows them: rows that
  /// any tile needs at most, and those that it can do with; else 0.
  unsigned long long hostRows, hostMinRows;
  struct TapeControl *control;
  struct TapeNeed *need;   ///< of this function, of the last launch
  struct TapeNeed *report; ///< the same, for the host
  struct TapeFailure *failure;
  unsigned long long *list, *failed; ///< room for every tile; null: no drain
  unsigned long long function;
  unsigned long long tiles, workItems;
  const unsigned *order;             ///< of work items; null: as they are
  const unsigned long long *ordered; ///< how many the order has
  unsigned long long blocks, blockThreads;
  unsigned long long drains;     ///< run what is on the list
  unsigned long long commits;    ///< no launch of the function comes after this
  unsigned long long lowMemory;  ///< loops leave rows to those after them
  unsigned long long sufficient; ///< there are rows for all loops
  unsigned long long inOrder;    ///< take tiles with a stride
  unsigned long long marksTiles; ///< list[tile] is not 0 if it is on the list
  unsigned long long sharedRows; ///< of a warp in shared memory; 0: on the heap
  unsigned long long drainRows;  ///< of a block in shared memory
  unsigned long long leastWarps, mostWarps; ///< that share the heap
  unsigned long long sortsOnly;             ///< runs no work items
};

/// What a thread keeps while it runs tiles; starts like other workers.
struct TapeWorker {
  char *top, *end, *base;
  long long workItem, lane;
  void *errors;
  unsigned long long rows, active;
  unsigned long long lowMemory, sufficient; ///< as in the call
  const struct TapeCall *call;
  unsigned long long tile;
  unsigned warp, warps, threadOfBlock, need, minRows;
  unsigned taken; ///< tiles that were taken before the next one
};

#ifdef __cplusplus
}
#endif
// NOLINTEND
