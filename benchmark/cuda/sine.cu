// Sines apart from tapes: CUDA's beside the one that Costate compiles.
//   nvcc -std=c++20 -O3 -arch=sm_90 -o sine sine.cu && ./sine
//
// The works are those of ../Sines.cpp. `cuda_ms`: sinf or __sinf. `same_ms`:
// the sine of sine.h, whose bits have the checksum that Costate's must have.

#include "sine.h"
#include "yardstick.h"

#include <cstdint>
#include <cstring>

struct Accurate {
  static __device__ float sine(float x) { return sinf(x); }
  static __device__ float cosine(float x) { return cosf(x); }
};
struct Fast {
  static __device__ float sine(float x) { return __sinf(x); }
  static __device__ float cosine(float x) { return __cosf(x); }
};
struct Same {
  static __device__ float sine(float x) { return costateSine(x); }
  static __device__ float cosine(float x) { return costateCosine(x); }
};

template <class F, bool isSine> __device__ float call(float x) {
  return isSine ? F::sine(x) : F::cosine(x);
}

constexpr unsigned items = 1 << 20;
constexpr int iterations = 64;

template <class F, bool isSine>
__global__ void repeated(const float *x, float *y) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = x[i];
#pragma unroll 1
  for (int k = 0; k < iterations; ++k)
    v = 2.5f * call<F, isSine>(v);
  y[i] = v;
}

template <class F, bool isSine> __global__ void once(const float *x, float *y) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = call<F, isSine>(x[i]);
}

unsigned checksum(const std::vector<float> &values) {
  uint64_t sum = 0;
  for (float value : values) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    sum = sum * 31 + (value == value ? bits : 0x7fc00000u);
  }
  return unsigned(sum >> 35); // few digits, as JSON has them
}

std::vector<float> numbers(bool anyBits) {
  std::vector<float> values(items);
  for (uint32_t i = 0; i < items; ++i) {
    uint32_t bits = i * 2654435761u;
    values[i] = 6.0f * float(bits >> 8) / float(1 << 24) - 3.0f;
    if (anyBits)
      std::memcpy(&values[i], &bits, sizeof bits);
  }
  return values;
}

template <class F, class Own, bool isSine> void measure(const char *name) {
  constexpr int threads = 256;
  Stopwatch watch;
  float *x = upload(numbers(false)), *any = upload(numbers(true));
  float *y = upload(numbers(false));
  double cuda = watch.perNode([&](cudaStream_t s) {
    repeated<F, isSine><<<items / threads, threads, 0, s>>>(x, y);
  });
  double same = watch.perNode([&](cudaStream_t s) {
    repeated<Own, isSine><<<items / threads, threads, 0, s>>>(x, y);
  });
  once<Own, isSine><<<items / threads, threads>>>(any, y);
  CHECK(cudaDeviceSynchronize());
  printf(
      "{\"bench\": \"sine\", \"case\": \"%s\", \"cuda_ms\": %g, \"same_ms\": "
      "%g, \"checksum\": %u}\n",
      name, cuda, same, checksum(download(y, items)));
  for (float *array : {x, any, y})
    CHECK(cudaFree(array));
}

int main() {
  measure<Fast, Fast, true>("sin-fast");
  measure<Fast, Fast, false>("cos-fast");
  measure<Accurate, Same, true>("sin-accurate");
  measure<Accurate, Same, false>("cos-accurate");
}
