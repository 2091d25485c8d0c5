#pragma once
/// Additions that wait for the end of their range, so that their order does
/// not depend on the number of threads.

#include "base/Fork.h"
#include "costate/f16.h"
#include "runtime/MemoryBudget.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

namespace costate::runtime::cpu {

/// A range runs in waves of `chunks` chunks. During a wave, each chunk appends
/// to its own lists, one per partition; the address decides the partition.
/// After it, partitions are applied in parallel, each in the order of chunks.
class AddLog {
public:
  static constexpr int chunks = 64;
  static constexpr int partitions = 64;

  struct Addition {
    uintptr_t address; ///< the lowest bit tells f32 and f16 from f64
    uint64_t bits;     ///< of a float, above them 1 for f16
  };
  struct Block {
    Block *next;
    uint64_t count;
    Addition additions[15];
  };
  struct List {
    Block *first = nullptr, *last = nullptr;
  };
  static constexpr uintptr_t ofHalf = uintptr_t(1) << 63;
  using Chunk = std::array<List, partitions>;
  /// Where one worker writes.
  struct Writer {
    Chunk *chunk = nullptr;
    Block *next = nullptr, *end = nullptr;
  };

  explicit AddLog(MemoryBudget &budget) : budget(budget) {}
  ~AddLog();

  /// Forgets all additions; writers start anew.
  void beginWave();
  Chunk &chunk(int64_t index) { return log[index % chunks]; }
  /// False if memory runs out. Safe for different writers at once.
  bool append(Writer &writer, float *address, float value);
  bool append(Writer &writer, double *address, double value);
  bool append(Writer &writer, f16 *address, float value);
  /// Both are safe for different partitions at once. The second looks for sums
  /// of finite numbers that are inf or NaN.
  void apply(int partition);
  void applyWatched(int partition);
  /// The lowest address of such a sum; 0 if none was seen in this wave. Its
  /// lowest bit is set for f32, its highest one for f16.
  uintptr_t notFinite() const { return firstNotFinite.load(); }

private:
  template <class Visit> void forEach(int partition, const Visit &visit) const;
  void noteNotFinite(uintptr_t address);
  bool append(Writer &writer, uintptr_t address, uint64_t bits);
  bool refill(Writer &writer) noexcept;

  MemoryBudget &budget;
  std::array<Chunk, chunks> log;
  Mutex mutex;
  std::vector<std::byte *> slabs;
  size_t slabsTaken = 0;
  std::atomic<uintptr_t> firstNotFinite = 0;
};

} // namespace costate::runtime::cpu
