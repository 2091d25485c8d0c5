// A yardstick: the tapes of a gradient launch, written by hand.
//   nvcc -std=c++20 -O3 -arch=sm_90 -o tape_protocol tape_protocol.cu
//   ./tape_protocol [ITEMS [REPLAYS [CASES]]]
//
// The works are those of ../TapeWorks.cpp; the expensive body calls the sine
// that Costate compiles (sine.h). One JSON object per case on standard output,
// with the bench and the case that costate-bench has for it:
// - hand_ms: plain kernels that know the need; the best of storing all and of
//   sqrt checkpoints, with 16 K to 270 K threads.
// - columns: the protocol below, with a heap for all residents, with a part of
//   it, or with none ("shared xB").
// - protocol_ms: the best of the columns; protocol_adding_ms: where it reads
// the
//   seed and adds to the gradient, as Costate must.
// - pair_ms: one row of {primal, adjoint} per thread, 65,536 threads.
// Cases that end in -sorted count the items' depths and order the items by
// them, deepest first, in every launch. CASES: only those with this text in the
// name. On standard error the same for people, with what growth does.
//
// One launch is a fixed row of kernels, captured once in a graph: [size_tapes],
// sweep, drain.
// - A tape is a block of rows that belongs to a resident warp: 32 lanes side by
//   side, one row per record.
// - It lies in shared memory (nothing to size or to allocate), or in a fixed
//   heap; then the device decides how many warps are resident and how many rows
//   each has, from the heap cell and the need.
// - A tile (32 work items, one warp) that is too deep for its rows keeps its
//   first records and recomputes the rest from checkpoints, in place. From n
//   records down to 2 sqrt(n) rows that always fits; the time grows smoothly.
// - What does not fit even so goes on a list with its exact need; the drain,
//   always enqueued after, runs the list with fewer and longer tapes in shared
//   memory, or on the heap where more tiles can run at a time. If one tile fits
//   nowhere: the error cell, and later launches do nothing until the host
//   clears it. Gradients are written only after all has fitted.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include "sine.h"

using u32 = unsigned;
using u64 = unsigned long long;
#define CHECK(call)                                                            \
  do {                                                                         \
    cudaError_t failed_ = (call);                                              \
    if (failed_) {                                                             \
      fprintf(stderr, "%s:%d %s: %s\n", __FILE__, __LINE__, #call,             \
              cudaGetErrorString(failed_));                                    \
      exit(1);                                                                 \
    }                                                                          \
  } while (0)
#ifndef BATCH
#define BATCH 4
#endif
constexpr int batch = BATCH; // tape rows loaded ahead
constexpr u32 everyone = ~0u, threads = 256, warps_per_block = threads / 32;

// ---- what the host and the device share

struct Need {
  u32 rows, unit;
}; // records of the longest lane; records of the largest piece that checkpoints
   // cannot split
struct Entry {
  u32 tile;
  Need need;
};
struct Control { // one per stream; graphs hold its address only
  float *heap;
  u64 words;  // growth updates these two
  Need known; // exact need of the last launch
  Need seen;  // running maximum of this launch
  u32 next, listed, again, ticket;
  u32 error, error_tile, error_rows;
  u32 last_warps, last_rows, last_listed, last_again;
};
// Resident warps: all that fit, and enough to keep the device busy; the depth,
// where the host knows it; tiles taken by an atomic counter or in a fixed
// stride; bytes of shared memory per block of the drain; rows per warp of a
// sweep in shared memory, or 0.
struct Limits {
  u32 most, least;
  Need fixed;
  bool dynamic;
  u32 drain_bytes, shared_rows;
};
struct Plan {
  u32 warps, rows;
};
struct Tape {
  float *lane;
  u32 rows;
  template <bool Guard> __device__ void put(u32 p, float v) const {
    if (!Guard || p < rows)
      lane[p * 32] = v;
  }
  __device__ float get(u32 p) const { return lane[p * 32]; }
};
struct PairTape { // a row of {primal, adjoint} of one thread
  float2 *row;
  template <bool> __device__ void put(u32 p, float v) const {
    row[p] = make_float2(v, 0.f);
  }
  __device__ float get(u32 p) const {
    const float2 pair = row[p];
    return pair.x + pair.y;
  }
};
struct Lane {
  float v, scale, adjoint, scale_adjoint;
  u32 limit, trips;
  bool done;
};

__device__ u32 lane_id() { return threadIdx.x & 31; }
__device__ u32 warp_id() {
  return threadIdx.x / 32 * gridDim.x + blockIdx.x;
} // fewer residents still spread over all processors
__device__ Need larger(Need a, Need b) {
  return {max(a.rows, b.rows), max(a.unit, b.unit)};
}

// How a tape of too few rows is used: records [0, first) are kept; the rest is
// cut into pieces of `segment` records that are recomputed, last one first,
// from checkpoints of `words` rows each. The shortest such rest is taken.
struct Split {
  u32 first, segment;
  bool fits;
};
__device__ Split split(Need n, u32 rows, u32 words) {
  const float w = words,
              over = (float)((long long)n.rows + n.unit + words + 2 - rows);
  const u32 rest = min(
      n.rows, (u32)ceilf(2 * w + over + 2 * sqrtf(w * (w + max(over, 0.f)))));
  const u32 s = max(1u, (u32)ceilf(sqrtf(w * rest)));
  return {n.rows - rest, s,
          n.rows - rest + s + n.unit - 1 + words * (rest / s + 1) <= rows};
}
__device__ u32 min_rows(Need n, u32 words) {
  const u32 s = max(1u, (u32)ceilf(sqrtf((float)words * n.rows)));
  return min(n.rows, s + n.unit + 1 + words * (n.rows / s + 2));
}

// As many warps as can hold the deepest tile checkpointed, but never fewer than
// keep the device busy; equal shares of the heap.
__device__ Plan plan(u64 words, u32 rows, u32 least, u32 most) {
  const u64 fit = rows ? words / (32ull * rows) : most;
  const u32 warps = (u32)min((u64)most, max((u64)least, fit));
  return {warps, (u32)min(words / (32ull * warps), (u64)1 << 26)};
}

// ---- the work

// 0 a cheap body, 1 an expensive one; 2 the proof: a chaotic map, and for
// adjoint a fingerprint of every record in order. (The sine maps contract, so
// their gradients forget most records, or underflow: equal gradients alone
// would prove little about the tape.)
template <int A> struct Maths {
  static __device__ float sin(float v) {
    return A == 1 ? costateSine(v) : __sinf(v);
  }
  static __device__ float cos(float v) {
    return A == 1 ? costateCosine(v) : __cosf(v);
  }
  static __device__ float step(float v) {
    return A == 2 ? __fmul_rn(__fmul_rn(3.7f, v), __fsub_rn(1.f, v))
                  : __fmaf_rn(sin(v), 0.9f, 0.3f);
  }
  static __device__ float mix(float a, float v) {
    u32 x = (__float_as_uint(a) ^ __float_as_uint(v)) * 0x9E3779B1u;
    return __uint_as_float(x ^ x >> 15);
  }
  static __device__ float chain(float a, float v) {
    return A == 2 ? mix(a, v) : __fmul_rn(a, __fmul_rn(cos(v), 0.9f));
  }
};

// Where gradients begin and end: 1 and written, or with a seed read and added,
// as a compiler must.
struct Ends {
  const float *seed;
  __device__ float begin(u32 i) const { return seed ? seed[i] : 1.f; }
  __device__ void end(float *g, u32 i, float v) const {
    g[i] = seed ? g[i] + v : v;
  }
};

template <int A> struct Recurrence { // depth a constant or read from memory
  static constexpr bool sized = true;
  const float *x;
  const u32 *depth;
  float *gx;
  float *unused;
  u32 n, constant;
  Ends ends;
  __device__ Lane load(u32 i) const {
    Lane l{};
    if (i < n) {
      l.adjoint = ends.begin(i);
      l.v = x[i];
      l.limit = l.trips = depth ? depth[i] : constant;
    }
    return l;
  }
  __device__ bool more(const Lane &l, u32 k) const { return k < l.limit; }
  __device__ void step(Lane &l) const { l.v = Maths<A>::step(l.v); }
  __device__ void back(Lane &l, float v) const {
    l.adjoint = Maths<A>::chain(l.adjoint, v);
  }
  __device__ void store(u32 i, const Lane &l) const {
    if (i < n)
      ends.end(gx, i, l.adjoint);
  }
};

// A counting sort, deepest first: exact below 32, five bits of the mantissa above.
constexpr u32 buckets = 384, sort_threads = 1024;
struct Sorting {
  const u32 *depth;
  u32 *order, *counts, *taken; // counts and taken: of each bucket, 0 before a sort
};
__device__ u32 bucket_of(u32 depth) {
  if (depth < 32)
    return buckets - 1 - depth;
  const u32 top = 31 - __clz(depth);
  return buckets - 1 - min(buckets - 1, 32 * (top - 4) + ((depth >> (top - 5)) & 31));
}

template <int A> struct SortedRecurrence : Recurrence<A> {
  Sorting sorting;
  __device__ Lane load(u32 i) const {
    return i < this->n ? Recurrence<A>::load(sorting.order[i]) : Lane{};
  }
  __device__ void store(u32 i, const Lane &l) const {
    if (i < this->n)
      Recurrence<A>::store(sorting.order[i], l);
  }
};
template <class W, class = void> struct IsSorted : std::false_type {};
template <class W>
struct IsSorted<W, std::void_t<decltype(W::sorting)>> : std::true_type {};

template <int A>
struct FixedPoint { // while, break at convergence: the trip count is known only
                    // by running it
  static constexpr bool sized = false;
  const float *x;
  const float *scale;
  float *gx;
  float *gs;
  u32 n;
  Ends ends;
  __device__ Lane load(u32 i) const {
    Lane l{};
    l.done = i >= n;
    if (i < n) {
      l.adjoint = ends.begin(i);
      l.v = x[i];
      l.scale = scale[i];
    }
    return l;
  }
  __device__ bool more(const Lane &l, u32 k) const {
    return !l.done && k < 4000;
  }
  __device__ void step(Lane &l) const {
    float w = __fmul_rn(l.scale, Maths<A>::sin(l.v));
    l.done = fabsf(w - l.v) < 1e-5f;
    l.v = w;
  }
  __device__ void back(Lane &l, float v) const {
    if (A == 2) {
      l.adjoint = Maths<A>::mix(l.adjoint, v);
      l.scale_adjoint = Maths<A>::mix(l.scale_adjoint, l.adjoint);
      return;
    }
    l.scale_adjoint = __fmaf_rn(l.adjoint, Maths<A>::sin(v), l.scale_adjoint);
    l.adjoint = __fmul_rn(l.adjoint, __fmul_rn(l.scale, Maths<A>::cos(v)));
  }
  __device__ void store(u32 i, const Lane &l) const {
    if (i < n) {
      ends.end(gx, i, l.adjoint);
      ends.end(gs, i, l.scale_adjoint);
    }
  }
};

// One loop. The forward loop ends per lane; the reverse loop runs from the
// warp's maximum down, all lanes in the same row.
template <class Body> struct Loop : Body {
  static constexpr u32 checkpoint_words = 1;
  __device__ Need count(u32, const Lane &l) const {
    return {__reduce_max_sync(everyone, l.limit), 1};
  }
  template <bool Guard> __device__ Need forward(u32, Lane &l, Tape t) const {
    u32 k = 0;
    while (this->more(l, k)) {
      t.put<Guard>(k, l.v);
      this->step(l);
      k++;
    }
    l.trips = k;
    return {__reduce_max_sync(everyone, k), 1};
  }
  __device__ void reverse(u32, Lane &l, Tape t, Need n) const {
    reverse_range(l, t, 0, n.rows, l.trips);
  }
  __device__ void reverse_range(Lane &l, Tape t, u32 base, u32 rows,
                                u32 trips) const {
    int k = (int)rows;
    for (; k >= batch; k -= batch) { // the rows are known: load some ahead, use
                                     // those that are ours
      float v[batch];
#pragma unroll
      for (int j = 0; j < batch; j++)
        v[j] = t.get(base + k - 1 - j);
#pragma unroll
      for (int j = 0; j < batch; j++)
        if (k - 1 - j < (int)trips)
          this->back(l, v[j]);
    }
    for (k--; k >= 0; k--) {
      float v = t.get(base + k);
      if (k < (int)trips)
        this->back(l, v);
    }
  }
  // Sized work arrives with an empty tape; other work has just filled all rows
  // and counted on.
  __device__ bool recompute(u32, Lane &l, Tape t, Need n) const {
    const Split c = split(n, t.rows, 1);
    if (!c.fits)
      return false;
    const u32 trips = l.trips, s = c.segment,
              segments = (n.rows - c.first + s - 1) / s;
    u32 k = 0;
    if (Body::sized)
      for (; k < min(c.first, trips); k++) {
        t.put<false>(k, l.v);
        this->step(l);
      }
    else if (k = min(c.first, trips); k < trips)
      l.v = t.get(k);
    for (u32 g = 0; g + 1 < segments; g++) {
      if (k < trips)
        t.put<false>(c.first + s + g, l.v);
      for (const u32 end = min(trips, c.first + (g + 1) * s); k < end; k++)
        this->step(l);
    }
    for (u32 g = segments; g-- > 0;) {
      const u32 from = c.first + g * s,
                mine = trips > from ? min(s, trips - from) : 0;
      if (mine && g + 1 < segments)
        l.v = t.get(c.first + s + g);
      for (u32 j = 0; j < mine; j++) {
        t.put<false>(c.first + j, l.v);
        this->step(l);
      }
      reverse_range(l, t, c.first, min(s, n.rows - from), mine);
    }
    reverse_range(l, t, 0, c.first, min(trips, c.first));
    return true;
  }
  template <class T>
  __device__ void naive(u32, Lane &l, T t)
      const { // a stack pointer per lane: the yardstick and the reference
    int k = 0;
    while (this->more(l, k)) {
      t.template put<false>(k, l.v);
      this->step(l);
      k++;
    }
    for (k--; k >= 0; k--)
      this->back(l, t.get(k));
  }
};

template <int A>
struct Nest { // `outer` times: an inner loop of 0..15 iterations, then a step
              // of its own
  static constexpr bool sized = true;
  static constexpr u32 checkpoint_words = 2;
  const float *x;
  float *gx;
  float *unused;
  u32 n, outer;
  Ends ends;
  __device__ u32 iterations(u32 i, u32 k) const {
    u32 h = i * 2654435761u + k * 40503u;
    h ^= h >> 15;
    h *= 2246822519u;
    h ^= h >> 13;
    return i < n ? h % 16 : 0;
  }
  __device__ Lane load(u32 i) const {
    Lane l{};
    if (i < n) {
      l.adjoint = ends.begin(i);
      l.v = x[i];
    }
    return l;
  }
  __device__ void store(u32 i, const Lane &l) const {
    if (i < n)
      ends.end(gx, i, l.adjoint);
  }
  static __device__ float outer_chain(float a, float v) {
    return A == 2 ? Maths<A>::mix(a, v) : __fmul_rn(a, v);
  }
  __device__ Need count(u32 i, const Lane &) const {
    Need n{0, 1};
    for (u32 k = 0; k < outer; k++) {
      u32 m = __reduce_max_sync(everyone, iterations(i, k)) + 1;
      n.rows += m;
      n.unit = max(n.unit, m);
    }
    return n;
  }
  template <bool Guard, bool Store = true>
  __device__ u32 iteration(u32 i, Lane &l, Tape t, u32 k, u32 p) const {
    const u32 c = iterations(i, k);
    for (u32 j = 0; j < c; j++) {
      if (Store)
        t.put<Guard>(p + j, l.v);
      l.v = Maths<A>::step(l.v);
    }
    p += __reduce_max_sync(everyone,
                           c); // the lanes meet again: same row for all of them
    if (Store)
      t.put<Guard>(p, l.v);
    l.v = __fmaf_rn(__fmul_rn(l.v, l.v), 0.5f, 0.4f);
    return p + 1;
  }
  __device__ void undoIteration(u32 i, Lane &l, Tape t, u32 k, u32 &p) const {
    l.adjoint = outer_chain(l.adjoint, t.get(--p));
    const int c = iterations(i, k), m = __reduce_max_sync(everyone, (u32)c);
    p -= m;
#pragma unroll 4
    for (int j = m - 1; j >= 0; j--) {
      float v = t.get(p + j);
      if (j < c)
        l.adjoint = Maths<A>::chain(l.adjoint, v);
    }
  }
  template <bool Guard> __device__ Need forward(u32 i, Lane &l, Tape t) const {
    Need n{0, 1};
    for (u32 k = 0; k < outer; k++) {
      u32 p = iteration<Guard>(i, l, t, k, n.rows);
      n.unit = max(n.unit, p - n.rows);
      n.rows = p;
    }
    return n;
  }
  __device__ void reverse(u32 i, Lane &l, Tape t, Need n) const {
    for (u32 k = outer; k-- > 0;)
      undoIteration(i, l, t, k, n.rows);
  }
  __device__ bool recompute(u32 i, Lane &l, Tape t, Need n)
      const { // pieces are whole iterations; {v, k} of each, from the top down
    const Split c = split(n, t.rows, 2);
    if (!c.fits)
      return false;
    u32 k = 0, p = 0, segments = 0, deepest = 0;
    for (; k < outer &&
           p + __reduce_max_sync(everyone, iterations(i, k)) + 1 <= c.first;
         k++)
      p = iteration<false>(i, l, t, k, p);
    const u32 kept = k, bottom = p;
    for (u32 base = p; k < outer; k++) {
      if (k == kept || p - base >= c.segment) {
        base = p;
        segments++;
        if (2 * segments <= t.rows) {
          t.put<false>(t.rows - 2 * segments, l.v);
          t.put<false>(t.rows - 2 * segments + 1, __uint_as_float(k));
        }
      }
      p = iteration<false, false>(i, l, t, k, p);
      deepest = max(deepest, p - base);
    }
    if (bottom + deepest + 2 * segments > t.rows)
      return false;
    for (u32 end = outer; segments > 0; segments--) {
      l.v = t.get(t.rows - 2 * segments);
      const u32 from = __float_as_uint(t.get(t.rows - 2 * segments + 1));
      p = bottom;
      for (k = from; k < end; k++)
        p = iteration<false>(i, l, t, k, p);
      for (k = end; k-- > from;)
        undoIteration(i, l, t, k, p);
      end = from;
    }
    for (k = kept; k-- > 0;)
      undoIteration(i, l, t, k, p);
    return true;
  }
  template <class T> __device__ void naive(u32 i, Lane &l, T t) const {
    u32 p = 0;
    for (u32 k = 0; k < outer; k++) {
      u32 c = iterations(i, k);
      for (u32 j = 0; j < c; j++) {
        t.template put<false>(p++, l.v);
        l.v = Maths<A>::step(l.v);
      }
      t.template put<false>(p++, l.v);
      l.v = __fmaf_rn(__fmul_rn(l.v, l.v), 0.5f, 0.4f);
    }
    for (u32 k = outer; k-- > 0;) {
      l.adjoint = outer_chain(l.adjoint, t.get(--p));
      u32 c = iterations(i, k);
      for (u32 j = 0; j < c; j++)
        l.adjoint = Maths<A>::chain(l.adjoint, t.get(--p));
    }
  }
};

// ---- the kernels of one gradient launch

struct Outcome {
  Need need;
  u32 how;
}; // 0 stored, 1 recomputed in part, 2 did not fit: nothing written
template <class W> __device__ Outcome gradient(const W &w, u32 tile, Tape t) {
  const u32 i = tile * 32 + lane_id();
  Lane l = w.load(i);
  Need n;
  if constexpr (W::sized) {
    n = w.count(i, l);
    if (n.rows <= t.rows)
      w.template forward<false>(i, l, t);
  } else
    n = w.template forward<true>(i, l, t);
  if (n.rows <= t.rows) {
    w.reverse(i, l, t, n);
    w.store(i, l);
    return {n, 0};
  }
  if (w.recompute(i, l, t, n)) {
    w.store(i, l);
    return {n, 1};
  }
  return {n, 2};
}

// Of the items of this block, in each bucket; all threads find them there.
__device__ void count_in_block(const Sorting &s, u32 n, u32 *mine) {
  for (u32 b = threadIdx.x; b < buckets; b += blockDim.x)
    mine[b] = 0;
  __syncthreads();
  for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
       i += gridDim.x * blockDim.x)
    atomicAdd(&mine[bucket_of(s.depth[i])], 1);
  __syncthreads();
}

__global__ void __launch_bounds__(sort_threads)
    count_depths(Sorting s, u32 n) {
  __shared__ u32 mine[buckets];
  count_in_block(s, n, mine);
  for (u32 b = threadIdx.x; b < buckets; b += blockDim.x)
    if (mine[b])
      atomicAdd(&s.counts[b], mine[b]);
}

__global__ void __launch_bounds__(sort_threads)
    order_by_depth(Sorting s, u32 n) {
  __shared__ u32 mine[buckets], first[buckets];
  for (u32 b = threadIdx.x; b < buckets; b += blockDim.x)
    first[b] = s.counts[b];
  count_in_block(s, n, mine);
  if (threadIdx.x < 32) { // where each bucket begins
    constexpr u32 each = buckets / 32;
    u32 sum = 0;
    for (u32 b = 0; b < each; b++)
      sum += first[lane_id() * each + b];
    u32 before = sum;
    for (u32 d = 1; d < 32; d *= 2) {
      const u32 other = __shfl_up_sync(everyone, before, d);
      before += lane_id() >= d ? other : 0;
    }
    before -= sum;
    for (u32 b = 0; b < each; b++) {
      const u32 count = first[lane_id() * each + b];
      first[lane_id() * each + b] = before;
      before += count;
    }
  }
  __syncthreads();
  for (u32 b = threadIdx.x; b < buckets; b += blockDim.x)
    if (mine[b])
      first[b] += atomicAdd(&s.taken[b], mine[b]);
  __syncthreads();
  for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
       i += gridDim.x * blockDim.x)
    s.order[atomicAdd(&first[bucket_of(s.depth[i])], 1)] = i;
}

template <class W>
__global__ void __launch_bounds__(threads) size_tapes(W w, Control *c) {
  if (c->error)
    return;
  __shared__ Need most[warps_per_block];
  Need n{0, 1};
  for (u32 tile = warp_id(); tile * 32 < w.n;
       tile += gridDim.x * warps_per_block) {
    u32 i = tile * 32 + lane_id();
    n = larger(n, w.count(i, w.load(i)));
  }
  if (lane_id() == 0)
    most[threadIdx.x / 32] = n;
  __syncthreads();
  if (threadIdx.x)
    return;
  for (u32 k = 1; k < warps_per_block; k++)
    n = larger(n, most[k]);
  atomicMax(&c->seen.rows, n.rows);
  atomicMax(&c->seen.unit, n.unit);
}

template <bool Shared, class W>
__global__ void __launch_bounds__(threads)
    sweep(W w, Control *c, Entry *list, Limits m) {
  if (c->error)
    return;
  extern __shared__ float shared[];
  const u32 warp = warp_id(), lane = lane_id(), tiles = (w.n + 31) / 32;
  Plan p{gridDim.x * warps_per_block, m.shared_rows};
  if (!Shared) {
    const Need need = m.fixed.rows ? m.fixed : W::sized ? c->seen : c->known;
    p = plan(c->words, min_rows(need, W::checkpoint_words), m.least, m.most);
  }
  if (warp >= p.warps)
    return;
  if (warp == 0 && lane == 0) {
    c->last_warps = p.warps;
    c->last_rows = p.rows;
  }
  const Tape t{(Shared ? shared + threadIdx.x / 32 * p.rows * 32
                       : c->heap + (u64)warp * p.rows * 32) +
                   lane,
               p.rows};
  Need most{0, 1};
  u32 again = 0;
  for (u32 tile = warp; tile < tiles;) {
    const Outcome o = gradient(w, tile, t);
    most = larger(most, o.need);
    again += o.how == 1;
    if (o.how == 2 && lane == 0)
      list[atomicAdd(&c->listed, 1)] = {tile, o.need};
    if (!m.dynamic)
      tile += p.warps;
    else {
      u32 got = lane ? 0 : p.warps + atomicAdd(&c->next, 1);
      tile = __shfl_sync(everyone, got, 0);
    }
  }
  if (lane)
    return;
  if (again)
    atomicAdd(&c->again, again);
  if (most.rows > *(volatile u32 *)&c->seen.rows)
    atomicMax(&c->seen.rows, most.rows);
  if (most.unit > *(volatile u32 *)&c->seen.unit)
    atomicMax(&c->seen.unit, most.unit);
}

template <class W>
__global__ void __launch_bounds__(threads)
    drain(W w, Control *c, const Entry *list, Limits m) {
  extern __shared__ float shared[];
  const u32 listed = c->listed, lane = lane_id();
  if (!c->error && listed) {
    const u32 rows = min_rows(c->seen, W::checkpoint_words),
              shared_rows = m.drain_bytes / 128;
    const u32 here = min(warps_per_block, shared_rows / rows),
              heap = (u32)min((u64)gridDim.x * warps_per_block,
                              c->words / (32ull * rows));
    const bool in_shared =
        here && here * gridDim.x >= heap; // where more tiles can run at a time
    const u32 all = in_shared ? here * gridDim.x : heap, warp = warp_id();
    if (!all) {
      if (warp == 0 && lane == 0 && atomicCAS(&c->error, 0, 1) == 0) {
        c->error_tile = list[0].tile;
        c->error_rows = rows;
      }
    } else if (warp < all) {
      const u32 each = in_shared
                           ? shared_rows / here
                           : (u32)min(c->words / (32ull * all), (u64)1 << 26);
      const Tape t{(in_shared ? shared + warp / gridDim.x * each * 32
                              : c->heap + (u64)warp * each * 32) +
                       lane,
                   each};
      for (u32 j = warp; j < listed; j += all)
        if (gradient(w, list[j].tile, t).how == 2 && lane == 0 &&
            atomicCAS(&c->error, 0, 1) == 0) {
          c->error_tile = list[j].tile;
          c->error_rows = list[j].need.rows;
        }
    }
  }
  __syncthreads();
  if (threadIdx.x)
    return;
  __threadfence();
  if (atomicAdd(&c->ticket, 1) + 1 < gridDim.x)
    return; // the last block commits what this launch learnt and clears the way
            // for the next
  if (c->seen.rows)
    c->known = c->seen;
  c->last_listed = c->listed;
  c->last_again = c->again;
  c->seen = {0, 1};
  c->next = c->listed = c->again = c->ticket = 0;
}

// ---- yardsticks: hand kernels with the need known and sufficient memory

template <class W>
__global__ void __launch_bounds__(threads)
    hand_store(W w, float *heap, u32 rows, u32 warps) {
  const u32 warp = warp_id();
  if (warp < warps)
    for (u32 tile = warp; tile * 32 < w.n; tile += warps) {
      const u32 i = tile * 32 + lane_id();
      Lane l = w.load(i);
      w.naive(i, l, Tape{heap + (u64)warp * rows * 32 + lane_id(), rows});
      w.store(i, l);
    }
}
template <class W>
__global__ void __launch_bounds__(threads)
    hand_checkpointed(W w, float *heap, Need need, u32 warps) {
  const u32 warp = warp_id(), rows = min_rows(need, W::checkpoint_words);
  if (warp < warps)
    for (u32 tile = warp; tile * 32 < w.n; tile += warps)
      gradient(w, tile, Tape{heap + (u64)warp * rows * 32 + lane_id(), rows});
}

constexpr u32 pair_threads = 65536;
template <class W>
__global__ void __launch_bounds__(threads)
    hand_pairs(W w, float2 *heap, u32 rows) {
  const u32 thread = blockIdx.x * blockDim.x + threadIdx.x;
  for (u32 i = thread; i < w.n; i += pair_threads) {
    Lane l = w.load(i);
    w.naive(i, l, PairTape{heap + (u64)thread * rows});
    w.store(i, l);
  }
}

// ---- host

struct Device {
  u32 processors;
  float *heap;
  u64 heap_words = 1ull << 31;
  Control *control;
  Entry *list;
  cudaStream_t stream;
  cudaEvent_t start, stop;
  Device() {
    cudaDeviceProp p;
    CHECK(cudaGetDeviceProperties(&p, 0));
    processors = p.multiProcessorCount;
    fprintf(stderr, "%s, %u processors, L2 %.0f MB\n", p.name, processors,
            p.l2CacheSize / 1e6);
    CHECK(cudaMalloc(&heap, heap_words * 4));
    CHECK(cudaMalloc(&control, sizeof(Control)));
    CHECK(cudaMalloc(&list, sizeof(Entry) << 18));
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
  }
  Control read() {
    Control c;
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaMemcpy(&c, control, sizeof c, cudaMemcpyDeviceToHost));
    return c;
  }
  void reset(u64 words) {
    Control c{};
    c.heap = heap;
    c.words = words;
    c.seen.unit = 1;
    CHECK(cudaMemcpy(control, &c, sizeof c, cudaMemcpyHostToDevice));
  }
  template <class F> float once(F f) {
    float ms;
    CHECK(cudaEventRecord(start, stream));
    f();
    CHECK(cudaEventRecord(stop, stream));
    CHECK(cudaEventSynchronize(stop));
    CHECK(cudaGetLastError());
    CHECK(cudaEventElapsedTime(&ms, start, stop));
    return ms;
  }
  template <class F> float best(F f, int iterations = 7) {
    f();
    float ms = 1e9;
    for (int k = 0; k < iterations; k++)
      ms = std::min(ms, once(f));
    return ms;
  }
  cudaGraphExec_t capture(const std::function<void()> &f) {
    cudaGraph_t g;
    cudaGraphExec_t e;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    f();
    CHECK(cudaStreamEndCapture(stream, &g));
    CHECK(cudaGraphInstantiate(&e, g, 0));
    CHECK(cudaGraphDestroy(g));
    return e;
  }
  template <class T> T *array(const std::vector<T> &v) {
    T *p;
    CHECK(cudaMalloc(&p, v.size() * sizeof(T)));
    CHECK(
        cudaMemcpy(p, v.data(), v.size() * sizeof(T), cudaMemcpyHostToDevice));
    return p;
  }
};
template <class K> u32 resident_blocks(Device &d, K k) {
  int b;
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&b, k, threads, 0));
  return b * d.processors;
}

void sort(Device &d, const Sorting &s, u32 n) {
  CHECK(cudaMemsetAsync(s.counts, 0, 2 * buckets * sizeof(u32), d.stream));
  count_depths<<<d.processors, sort_threads, 0, d.stream>>>(s, n);
  order_by_depth<<<d.processors, sort_threads, 0, d.stream>>>(s, n);
}

static int replays = 100;
static std::string chosen;
template <class W>
void launch(Device &d, const W &w,
            Limits m) { // no host work, no answer read back
  if constexpr (IsSorted<W>::value)
    sort(d, w.sorting, w.n);
  if (m.shared_rows)
    sweep<true, W>
        <<<m.most / warps_per_block, threads, m.shared_rows * 1024, d.stream>>>(
            w, d.control, d.list, m);
  else {
    if (W::sized && !m.fixed.rows)
      size_tapes<W><<<d.processors * 4, threads, 0, d.stream>>>(w, d.control);
    sweep<false, W><<<(m.most + warps_per_block - 1) / warps_per_block, threads,
                      0, d.stream>>>(w, d.control, d.list, m);
  }
  drain<W><<<d.processors, threads, m.drain_bytes, d.stream>>>(w, d.control,
                                                               d.list, m);
}

u64 differ(const std::vector<float> &a, const std::vector<float> &b) {
  u64 n = 0;
  for (size_t i = 0; i < a.size(); i++)
    n += memcmp(&a[i], &b[i], 4) != 0;
  return n;
}
template <class W>
std::vector<float> outputs(Device &d, const W &w, float *second) {
  std::vector<float> g(w.n * (second ? 2 : 1));
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(g.data(), w.gx, w.n * 4, cudaMemcpyDeviceToHost));
  if (second)
    CHECK(cudaMemcpy(g.data() + w.n, second, w.n * 4, cudaMemcpyDeviceToHost));
  return g;
}
template <class W> void poison(const W &w, float *second) {
  CHECK(cudaMemset(w.gx, 0xff, w.n * 4));
  if (second)
    CHECK(cudaMemset(second, 0xff, w.n * 4));
}

constexpr u32 shared_bytes = 227 << 10,
              least_per_processor = 8; // of one H200 processor
template <class W>
Limits limits(Device &d, const W &w, Need fixed, u32 drain_bytes = 224 << 10) {
  CHECK(cudaFuncSetAttribute(
      drain<W>, cudaFuncAttributeMaxDynamicSharedMemorySize, drain_bytes));
  return {std::min(resident_blocks(d, sweep<false, W>) * warps_per_block,
                   (w.n + 31) / 32),
          d.processors * least_per_processor,
          fixed,
          !fixed.rows,
          drain_bytes,
          0};
}
template <class W>
Limits shared_limits(Device &d, const W &w, Need fixed,
                     u32 blocks) { // `blocks` per processor share its memory
  CHECK(cudaFuncSetAttribute(sweep<true, W>,
                             cudaFuncAttributeMaxDynamicSharedMemorySize,
                             shared_bytes));
  Limits m = limits(d, w, fixed);
  m.most = d.processors * blocks * warps_per_block;
  m.shared_rows = ((228 << 10) / blocks - 1024) / 1024;
  m.dynamic = true; // 10.3 tiles per warp: a stride would wait for the 11th
  return m;
}

struct Column {
  std::string where;
  u64 words;
  Limits limits;
  float ms;
  Control c;
  u64 wrong;
};

template <class W> struct Measurement {
  Device &d;
  W w;
  float *second;
  const float *ones;

  float replay(u64 words, const Limits &m, const W &what, Control &c,
               u64 &wrong, const std::vector<float> &right) {
    d.reset(words);
    poison(w, second);
    cudaGraphExec_t graph = d.capture([&] { launch(d, what, m); });
    for (int k = 0; k < 3; k++)
      CHECK(cudaGraphLaunch(graph, d.stream));
    CHECK(cudaStreamSynchronize(d.stream));
    poison(w, second);
    const float ms = d.once([&] {
      for (int k = 0; k < replays; k++)
        CHECK(cudaGraphLaunch(graph, d.stream));
    }) / replays;
    c = d.read();
    wrong = differ(right, outputs(d, w, second));
    CHECK(cudaGraphExecDestroy(graph));
    return ms;
  }
  Column column(const std::string &where, u64 words, const Limits &m,
                const std::vector<float> &right) {
    Column r{where, words, m, 0, {}, 0};
    r.ms = replay(words, m, w, r.c, r.wrong, right);
    fprintf(stderr,
            "  %-12s %9.2f MB  warps %5u rows %5u  recomputed %6u drained %6u "
            "error %u  %8.4f ms  wrong %llu\n",
            where.c_str(), words * 4e-6, r.c.last_warps, r.c.last_rows,
            r.c.last_again, r.c.last_listed, r.c.error, r.ms, r.wrong);
    return r;
  }
  float adding(const Column &c) { // the gradients are not compared: they have
                                  // been added to
    W other = w;
    other.ends.seed = ones;
    Control ignored;
    u64 wrong;
    return replay(c.words, c.limits, other, ignored, wrong,
                  std::vector<float>());
  }
  float pairs(u32 rows) {
    return d.best(
        [&] {
          hand_pairs<W><<<pair_threads / threads, threads, 0, d.stream>>>(
              w, (float2 *)d.heap, rows);
        },
        2);
  }
};

template <class W>
void run(Device &d, const char *bench, const std::string &name, W w,
         float *second, Need fixed, const float *ones) {
  if (name.find(chosen) == std::string::npos)
    return;
  const Limits m = limits(d, w, fixed);
  d.reset(d.heap_words);
  launch(d, w, m);
  const Need need = d.read().known; // exact, learnt on the device
  const u64 full = 32ull * m.most * need.rows;
  poison(w, second);
  hand_store<W><<<d.processors * 4, threads, 0, d.stream>>>(
      w, d.heap, need.rows, d.processors * 32);
  const std::vector<float> right = outputs(d, w, second);
  float hand = 1e9, hand_ck = 1e9;
  u32 hand_w = 0, ck_w = 0;
  for (u32 k : {4, 8, 16, 32, 64}) {
    const u32 warps = d.processors * k, g = warps / warps_per_block;
    float a = d.best(
        [&] {
          hand_store<W>
              <<<g, threads, 0, d.stream>>>(w, d.heap, need.rows, warps);
        },
        3);
    float b = d.best(
        [&] {
          hand_checkpointed<W>
              <<<g, threads, 0, d.stream>>>(w, d.heap, need, warps);
        },
        3);
    if (a < hand)
      hand = a, hand_w = warps;
    if (b < hand_ck)
      hand_ck = b, ck_w = warps;
  }
  const u64 wrong = differ(right, outputs(d, w, second));
  fprintf(
      stderr,
      "%s %s need %u rows/warp, %u warps resident at most; by hand: store-all "
      "%.3f ms (%u warps), checkpointed %.3f ms (%u warps) wrong %llu\n",
      bench, name.c_str(), need.rows, m.most, hand, hand_w, hand_ck, ck_w,
      wrong);
  Measurement<W> of{d, w, second, ones};
  std::vector<Column> columns;
  for (u64 part : {1, 4, 16, 64, 1000})
    columns.push_back(
        of.column("heap 1/" + std::to_string(part), full / part, m, right));
  for (u32 blocks : {3, 2, 1})
    columns.push_back(of.column("shared x" + std::to_string(blocks), 0,
                                shared_limits(d, w, fixed, blocks), right));
  const Column &best = *std::min_element(
      columns.begin(), columns.end(),
      [](const Column &a, const Column &b) { return a.ms < b.ms; });
  const float adding = of.adding(best), pairs = of.pairs(need.rows);
  printf(
      "{\"bench\": \"%s\", \"case\": \"%s\", \"deepest\": %u, \"hand_ms\": %g, "
      "\"hand_all_ms\": %g, \"hand_checkpointed_ms\": %g, \"wrong\": %llu, "
      "\"protocol\": \"%s\", \"protocol_ms\": %g, \"protocol_heap_bytes\": "
      "%llu, \"protocol_adding_ms\": %g, \"pair_ms\": %g, \"pair_bytes\": "
      "%llu, \"columns\": [",
      bench, name.c_str(), need.rows, std::min(hand, hand_ck), hand, hand_ck,
      wrong, best.where.c_str(), best.ms, best.words * 4, adding, pairs,
      (u64)pair_threads * need.rows * sizeof(float2));
  for (const Column &c : columns)
    printf(
        "%s{\"where\": \"%s\", \"heap_bytes\": %llu, \"ms\": %g, "
        "\"recomputed\": %u, \"drained\": %u, \"error\": %u, \"wrong\": %llu}",
        &c == &columns[0] ? "" : ", ", c.where.c_str(), c.words * 4, c.ms,
        c.c.last_again, c.c.last_listed, c.c.error, c.wrong);
  printf("]}\n");
  fflush(stdout);
}

// Too small for one checkpointed tile: the error cell. The host finds the need
// there, grows the heap, and replays the same graph.
template <class W>
void run_growth(Device &d, const char *name, W w, float *second, Need fixed) {
  if (!chosen.empty())
    return;
  const Limits m = limits(d, w, fixed, 1024); // shared memory for 8 rows only
  d.reset(d.heap_words);
  launch(d, w, m);
  d.read();
  const std::vector<float> right = outputs(d, w, second);
  d.reset(32 * 10);
  cudaGraphExec_t graph = d.capture([&] { launch(d, w, m); });
  CHECK(cudaGraphLaunch(graph, d.stream));
  Control c = d.read();
  fprintf(
      stderr,
      "%s growth: 10 rows: error %u at tile %u, needs %u rows (%u at least);",
      name, c.error, c.error_tile, c.known.rows, c.error_rows);
  poison(w, second);
  CHECK(cudaGraphLaunch(graph, d.stream));
  d.read();
  std::vector<float> g = outputs(d, w, second);
  u64 touched = 0;
  for (float f : g) {
    u32 b;
    memcpy(&b, &f, 4);
    touched += b != ~0u;
  }
  fprintf(stderr, " next launch wrote %llu values;", touched);
  c = d.read();
  c.error = 0;
  c.words = 32ull * c.known.rows * m.least;
  CHECK(cudaMemcpy(d.control, &c, sizeof c, cudaMemcpyHostToDevice));
  for (int k = 0; k < 2; k++)
    CHECK(cudaGraphLaunch(graph, d.stream));
  c = d.read();
  fprintf(stderr, " grown: listed %u error %u wrong %llu\n", c.last_listed,
          c.error, differ(right, outputs(d, w, second)));
}

struct Data {
  u32 n;
  float *x, *scale, *gx, *gs, *ones;
  u32 *exponential, *rare;
  u32 *order, *counts;
  static double unit(u32 i) {
    i = (i + 1) * 2654435761u;
    i ^= i >> 15;
    i *= 2246822519u;
    i ^= i >> 13;
    i *= 3266489917u;
    i ^= i >> 16;
    return (i + 0.5) / 4294967296.0;
  }
  Data(Device &d, u32 items = 1 << 20) : n(items) {
    std::vector<float> hx(n), hs(n);
    std::vector<u32> he(n), hr(n);
    for (u32 i = 0; i < n; i++) {
      hx[i] = 0.001f * (i % 997) + 0.01f;
      const double u = 0.9 * unit(i / 64 + 7) + 0.1 * unit(i);
      hs[i] = (float)(1 - std::exp2(-7 * u * u * u - 1));
      he[i] = std::min(4000, (int)(-64 * std::log(unit(i + 99))));
      const u32 r = (u32)(unit(i + 12345) * 1e6);
      hr[i] = r < 1000 ? 2000 + r % 96 : r % 32;
    }
    x = d.array(hx);
    scale = d.array(hs);
    exponential = d.array(he);
    rare = d.array(hr);
    gx = d.array(hx);
    gs = d.array(hx);
    order = d.array(he);
    counts = d.array(std::vector<u32>(2 * buckets));
    ones = d.array(std::vector<float>(n, 1.f));
  }
};

template <int A> void run_all(Device &d, const Data &t) {
  const std::string body = A == 2 ? "-proof" : A ? "-accurate" : "-fast";
  auto loop = [&](const u32 *depth, u32 constant) {
    return Loop<Recurrence<A>>{{t.x, depth, t.gx, nullptr, t.n, constant, {}}};
  };
  auto sorted = [&](const u32 *depth) {
    return Loop<SortedRecurrence<A>>{
        {{t.x, depth, t.gx, nullptr, t.n, 0, {}},
         {depth, t.order, t.counts, t.counts + buckets}}};
  };
  const Nest<A> nest{t.x, t.gx, nullptr, t.n, 16, {}};
  const Loop<FixedPoint<A>> fixed_point{{t.x, t.scale, t.gx, t.gs, t.n, {}}};
  for (u32 T : {64, 256, 1024})
    run(d, "tape-uniform", std::to_string(T) + body, loop(nullptr, T), nullptr,
        {T, 1}, t.ones);
  run(d, "tape-ragged", "exponential" + body, loop(t.exponential, 0), nullptr,
      {0, 0}, t.ones);
  run(d, "tape-ragged", "rare" + body, loop(t.rare, 0), nullptr, {0, 0},
      t.ones);
  run(d, "tape-ragged", "exponential" + body + "-sorted",
      sorted(t.exponential), nullptr, {0, 0}, t.ones);
  run(d, "tape-ragged", "rare" + body + "-sorted", sorted(t.rare), nullptr,
      {0, 0}, t.ones);
  run(d, "tape-nest", "nest" + body, nest, nullptr, {0, 0}, t.ones);
  run(d, "tape-while", "while" + body, fixed_point, t.gs, {0, 0}, t.ones);
  run_growth(d, "ragged exponential", loop(t.exponential, 0), nullptr, {0, 0});
  run_growth(d, "nest", nest, nullptr, {0, 0});
  run_growth(d, "while", fixed_point, t.gs, {0, 0});
}
int main(int argc, char **argv) {
  if (argc > 2)
    replays = atoi(argv[2]);
  if (argc > 3)
    chosen = argv[3];
  Device d;
  Data t(d, argc > 1 ? atoi(argv[1]) : 1 << 20);
  run_all<2>(d, t);
  run_all<0>(d, t);
  run_all<1>(d, t);
}
