#pragma once
/// Keeps a folder of entries below a limit.
///
/// The bytes of all entries are in a file beside them, which one process
/// changes at a time; entries are looked at only when that number is above the
/// limit, is not known, or may have become wrong.

#include <cstdint>
#include <string>

namespace costate::cache {

inline constexpr const char *entrySuffix = ".code";
inline constexpr const char *temporaryPrefix = "tmp-";

/// What a file of so many bytes takes.
constexpr uint64_t bytesOnDisk(uint64_t bytes) {
  constexpr uint64_t block = 4096;
  return (bytes + block - 1) / block * block;
}

class Bound {
public:
  Bound(const std::string &folder, uint64_t limit)
      : folder(folder), limit(limit) {}

  /// An entry has come.
  void add(uint64_t bytes);
  /// Looks at all entries now.
  void enforce();
  /// Of all entries.
  uint64_t bytes() const;

private:
  struct Total;
  /// Removes what was not used for longest; the bytes that stay.
  uint64_t evict();

  const std::string &folder;
  const uint64_t limit;
};

} // namespace costate::cache
