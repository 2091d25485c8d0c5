// A yardstick: derivatives by a number that all work items read, by hand.
//   nvcc -std=c++20 -O3 -arch=sm_90 -o reductions reductions.cu && ./reductions
//
// y_i = w w x_i, as in ../UniformRead.cpp: the sum of 2 w x_i, or of seed_i 2 w
// x_i. One JSON object per case: milliseconds of each way in a graph, and
// `stream_ms` of the best one in a stream.

#include "yardstick.h"

#include <cmath>
#include <string>

constexpr unsigned threads = 256, everyone = ~0u;
constexpr unsigned residentBlocks = 8; // per processor

template <class T> struct Work {
  const T *x, *seed; // no seed: 1
  const T *w;
  T *result;
  unsigned n;
  __device__ T at(unsigned i) const {
    T term = 2 * *w * x[i];
    return seed ? seed[i] * term : term;
  }
};

__device__ unsigned threadIndex() {
  return blockIdx.x * blockDim.x + threadIdx.x;
}

template <class T> __device__ T warpSum(T value) {
  for (int distance = 16; distance; distance /= 2)
    value += __shfl_down_sync(everyone, value, distance);
  return value;
}

/// In thread 0.
template <class T> __device__ T blockSum(T value) {
  __shared__ T warps[threads / 32];
  value = warpSum(value);
  if (threadIdx.x % 32 == 0)
    warps[threadIdx.x / 32] = value;
  __syncthreads();
  if (threadIdx.x >= 32)
    return 0;
  return warpSum(threadIdx.x < threads / 32 ? warps[threadIdx.x] : T(0));
}

/// Of all items of a thread that takes some with a stride.
template <class T> __device__ T strided(const Work<T> &work) {
  T sum = 0;
#pragma unroll 4
  for (unsigned i = threadIndex(); i < work.n; i += gridDim.x * threads)
    sum += work.at(i);
  return sum;
}

template <class T> __global__ void atomicPerThread(Work<T> work) {
  if (threadIndex() < work.n)
    atomicAdd(work.result, work.at(threadIndex()));
}

template <class T> __global__ void persistentAtomic(Work<T> work) {
  atomicAdd(work.result, strided(work));
}

template <class T> __global__ void atomicPerWarp(Work<T> work) {
  T sum = warpSum(threadIndex() < work.n ? work.at(threadIndex()) : T(0));
  if (threadIdx.x % 32 == 0)
    atomicAdd(work.result, sum);
}

template <class T> __global__ void atomicPerBlock(Work<T> work) {
  T sum = blockSum(threadIndex() < work.n ? work.at(threadIndex()) : T(0));
  if (threadIdx.x == 0)
    atomicAdd(work.result, sum);
}

template <class T> __global__ void persistentPerWarp(Work<T> work) {
  T sum = warpSum(strided(work));
  if (threadIdx.x % 32 == 0)
    atomicAdd(work.result, sum);
}

template <class T> __global__ void persistentPerBlock(Work<T> work) {
  T sum = blockSum(strided(work));
  if (threadIdx.x == 0)
    atomicAdd(work.result, sum);
}

/// The last block adds the partial sums of all, in order.
template <class T>
__global__ void deterministic(Work<T> work, T *partials, unsigned *ticket) {
  __shared__ bool isLast;
  T sum = blockSum(strided(work));
  if (threadIdx.x == 0) {
    partials[blockIdx.x] = sum;
    __threadfence();
    isLast = atomicAdd(ticket, 1) + 1 == gridDim.x;
  }
  __syncthreads();
  if (!isLast)
    return;
  sum = 0;
  for (unsigned k = threadIdx.x; k < gridDim.x; k += threads)
    sum += ((volatile T *)partials)[k];
  sum = blockSum(sum);
  if (threadIdx.x == 0) {
    *work.result += sum;
    *ticket = 0;
  }
}

template <class T> class Case {
public:
  Case(unsigned n, bool seeded) : n(n), seeded(seeded) {
    std::vector<T> x(n);
    for (unsigned i = 0; i < n; ++i)
      x[i] = T(i % 1021) / 1021 - T(0.3);
    for (T value : x)
      exact += 2 * 0.75 * double(value);
    work = {upload(x), seeded ? upload(std::vector<T>(n, 1)) : nullptr,
            upload(std::vector<T>{T(0.75)}), upload(std::vector<T>{0}), n};
    partials = upload(std::vector<T>(resident()));
    ticket = upload(std::vector<unsigned>{0});
  }
  ~Case() {
    CHECK(cudaFree(const_cast<T *>(work.x)));
    CHECK(cudaFree(const_cast<T *>(work.seed)));
    CHECK(cudaFree(const_cast<T *>(work.w)));
    CHECK(cudaFree(work.result));
    CHECK(cudaFree(partials));
    CHECK(cudaFree(ticket));
  }

  void print() {
    constexpr bool isDouble = sizeof(T) == 8;
    printf("{\"bench\": \"uniform-read\", \"case\": \"%u-%s%s\"", n,
           isDouble ? "f64" : "f32", seeded ? "-each" : "-sum");
    unsigned all = (n + threads - 1) / threads;
    row("atomic_per_thread", all, atomicPerThread<T>);
    row("persistent_atomic", resident(), persistentAtomic<T>);
    row("atomic_per_warp", all, atomicPerWarp<T>);
    row("atomic_per_block", all, atomicPerBlock<T>);
    row("persistent_per_warp", resident(), persistentPerWarp<T>);
    row("persistent_per_block", resident(), persistentPerBlock<T>);
    auto inOrder = [&](cudaStream_t s) {
      deterministic<T><<<resident(), threads, 0, s>>>(work, partials, ticket);
    };
    row("deterministic", inOrder);
    double stream = watch.perLaunch(inOrder);
    printf(", \"stream_ms\": %g}\n", stream);
    fflush(stdout);
  }

private:
  unsigned resident() const {
    unsigned all = (n + threads - 1) / threads;
    return std::min<unsigned>(all, processors() * residentBlocks);
  }

  void row(const char *name, unsigned blocks, void (*kernel)(Work<T>)) {
    row(name,
        [=, this](cudaStream_t s) { kernel<<<blocks, threads, 0, s>>>(work); });
  }

  template <class F> void row(const char *name, F launch) {
    CHECK(cudaMemset(work.result, 0, sizeof(T)));
    launch(0);
    CHECK(cudaDeviceSynchronize());
    double sum = download(work.result, 1)[0];
    if (!(std::fabs(sum - exact) < (sizeof(T) == 8 ? 1e-9 : 1e-3) * n)) {
      fprintf(stderr, "reductions: %s is %g, not %g\n", name, sum, exact);
      exit(1);
    }
    printf(", \"%s_ms\": %g", name, watch.perNode(launch));
  }

  unsigned n;
  bool seeded;
  double exact = 0;
  Work<T> work;
  T *partials;
  unsigned *ticket;
  Stopwatch watch;
};

int main() {
  for (bool seeded : {false, true})
    for (unsigned n : {1u << 16, 1u << 20, 1u << 22}) {
      Case<float>(n, seeded).print();
      Case<double>(n, seeded).print();
    }
}
