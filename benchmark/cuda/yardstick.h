#pragma once
// What the programs of this folder share: checks of calls, and times.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <vector>

#define CHECK(call)                                                            \
  do {                                                                         \
    if (cudaError_t failed = (call)) {                                         \
      fprintf(stderr, "%s:%d %s: %s\n", __FILE__, __LINE__, #call,             \
              cudaGetErrorString(failed));                                     \
      exit(1);                                                                 \
    }                                                                          \
  } while (0)

template <class T> T *upload(const std::vector<T> &values) {
  T *array;
  CHECK(cudaMalloc(&array, values.size() * sizeof(T)));
  CHECK(cudaMemcpy(array, values.data(), values.size() * sizeof(T),
                   cudaMemcpyHostToDevice));
  return array;
}

template <class T> std::vector<T> download(const T *array, size_t count) {
  std::vector<T> values(count);
  CHECK(cudaMemcpy(values.data(), array, count * sizeof(T),
                   cudaMemcpyDeviceToHost));
  return values;
}

class Stopwatch {
public:
  Stopwatch() {
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
  }

  /// Milliseconds of one of many calls of `f(stream)`: the best mean.
  template <class F> double perLaunch(F f) {
    run(f, 3);
    double best = 1e9;
    for (int k = 0; k < rounds; ++k)
      best = std::min(best, run(f, launches));
    return best;
  }

  /// The same in a graph: without the time that the host needs.
  template <class F> double perNode(F f) {
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    for (int k = 0; k < launches; ++k)
      f(stream);
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&executable, graph, 0));
    auto replay = [&](cudaStream_t s) {
      CHECK(cudaGraphLaunch(executable, s));
    };
    run(replay, 1);
    double best = 1e9;
    for (int k = 0; k < rounds; ++k)
      best = std::min(best, run(replay, 1) / launches);
    CHECK(cudaGraphExecDestroy(executable));
    CHECK(cudaGraphDestroy(graph));
    return best;
  }

private:
  static constexpr int rounds = 7, launches = 50;

  template <class F> double run(F f, int times) {
    float milliseconds;
    CHECK(cudaEventRecord(start, stream));
    for (int k = 0; k < times; ++k)
      f(stream);
    CHECK(cudaEventRecord(stop, stream));
    CHECK(cudaEventSynchronize(stop));
    CHECK(cudaGetLastError());
    CHECK(cudaEventElapsedTime(&milliseconds, start, stop));
    return milliseconds / times;
  }

  cudaStream_t stream;
  cudaEvent_t start, stop;
};

inline int processors() {
  int count;
  CHECK(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, 0));
  return count;
}
