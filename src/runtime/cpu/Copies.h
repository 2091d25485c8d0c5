#pragma once
/// Copies of small arrays, for each part of a range that adds to them.

#include "code/KernelCode.h"
#include "runtime/cpu/BlockPool.h"

#include <span>
#include <vector>

namespace costate::runtime::cpu {

/// A part is the work items that one thread takes, in their order, so that the
/// order of additions does not depend on the number of threads.
class Copies {
public:
  static constexpr int64_t mostParts = 64;

  /// Of those of `arrays` that have few elements, if `isWanted`; without
  /// memory for copies, of none. `isAlone`: whether nobody else adds to the
  /// arrays themselves.
  Copies(BlockPool &blocks, std::span<const CopiedArray> arrays,
         int64_t workItems, bool isWanted, bool isAlone);
  ~Copies();
  Copies(const Copies &) = delete;
  Copies &operator=(const Copies &) = delete;

  bool areMade() const { return block != nullptr; }
  /// Clears what `part` adds to, and says where that is.
  const CopyPlace *begin(int64_t part);
  /// Adds the copies of the first `parts` up, in their order.
  void addUp(int64_t parts);

private:
  std::byte *copy(int64_t part) const { return block + part * bytes; }

  BlockPool &blocks;
  std::span<const CopiedArray> arrays;
  std::vector<size_t> offsets; ///< in a part; `none` for those without
  size_t bytes = 0;            ///< of a part
  int64_t allParts = 1;
  std::byte *block = nullptr;
  std::vector<CopyPlace> places; ///< of all parts
};

} // namespace costate::runtime::cpu
