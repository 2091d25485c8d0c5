#pragma once
/// A folder of entries that many processes read and write at the same time.
///
/// An entry is a file named by its key: a header (magic, format, key, length,
/// checksum) and the value. It appears by a rename, so it is whole or not
/// there; what is not whole all the same, or not this user's own, does not
/// count. When the folder grows above its limit, what was not used for longest
/// goes.

#include "base/Fork.h"
#include "cache/Key.h"

#include <atomic>
#include <optional>
#include <string>
#include <string_view>

namespace costate::cache {

/// What has become of entries in this process.
struct Counts {
  std::atomic<uint64_t> compiled = 0; ///< was not there, and has been made
  std::atomic<uint64_t> loaded = 0;   ///< was there
};

/// Safe to use from several threads. Never fails: at worst it holds nothing.
class Store {
public:
  /// `limit`: bytes of all files together.
  Store(std::string folder, uint64_t limit)
      : path(std::move(folder)), limit(limit) {}

  std::optional<std::string> find(const Key &key);
  void put(const Key &key, std::string_view value);
  /// Removes all entries.
  void clear();

  const std::string &folder() const { return path; }
  uint64_t bytes() const;
  /// Why something could not be kept; empty: all could.
  std::string problem() const;

  Counts counts;

private:
  std::string pathOf(const Key &key) const;
  bool write(const Key &key, std::string_view value);
  bool fail(const char *what);

  const std::string path;
  const uint64_t limit;
  mutable Mutex mutex; ///< of `trouble`
  std::string trouble;
};

} // namespace costate::cache
