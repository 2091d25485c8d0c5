#pragma once
/// Where the time of a compilation goes, for reports and tests.

#include <chrono>
#include <cstdint>

namespace costate::compiler {

/// Milliseconds per stage.
struct Timings {
  double derive = 0;       ///< differentiation and its clean-up
  double convert = 0;      ///< kernel IR to the LLVM dialect
  double translate = 0;    ///< to LLVM IR
  double optimise = 0;     ///< LLVM's passes
  double emit = 0;         ///< machine code
  double load = 0;         ///< linking
  uint64_t objectHash = 0; ///< not a time: of the bytes of the object file
  bool isLoaded = false;   ///< from a store: nothing but `load` took time

  double total() const {
    return derive + convert + translate + optimise + emit + load;
  }
};

/// Stages of the last compilation of this thread.
Timings &lastTimings();

/// Adds the time it lives to `stage`.
class Stopwatch {
public:
  explicit Stopwatch(double &stage) : stage(stage) {}
  ~Stopwatch() {
    using Milliseconds = std::chrono::duration<double, std::milli>;
    stage += Milliseconds(std::chrono::steady_clock::now() - start).count();
  }
  Stopwatch(const Stopwatch &) = delete;
  Stopwatch &operator=(const Stopwatch &) = delete;

private:
  double &stage;
  std::chrono::steady_clock::time_point start =
      std::chrono::steady_clock::now();
};

} // namespace costate::compiler
