#pragma once
/// Which addresses of some blocks are free. Knows nothing of the memory there.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

namespace costate::runtime::vulkan {

class Ranges {
public:
  static constexpr size_t alignment = 256;

  /// All of it is free.
  void add(uint64_t block, size_t bytes);
  /// A place with `bytes`, aligned, where least is left over; none: no block
  /// has so much in a row.
  std::optional<uint64_t> take(size_t bytes);
  /// What `take` has given. False if it has not.
  bool give(uint64_t place);
  /// A block of which nothing is taken; it is forgotten.
  std::optional<uint64_t> removeFree();

  size_t freeBytes() const { return freeTotal; }
  size_t blocks() const { return starts.size(); }

private:
  using Free = std::map<uint64_t, size_t>;
  void addFree(uint64_t start, size_t bytes);
  void eraseFree(Free::iterator range);

  Free free;                                    ///< by place
  std::set<std::pair<size_t, uint64_t>> bySize; ///< the same
  std::map<uint64_t, size_t> starts;            ///< of blocks
  std::unordered_map<uint64_t, size_t> taken;
  size_t freeTotal = 0;
};

} // namespace costate::runtime::vulkan
