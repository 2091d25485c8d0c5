#pragma once
/// Launches that go to the GPU as one: a graph of the driver takes one call for
/// all of them.

#include "runtime/streams/Api.h"

#include <span>
#include <unordered_map>
#include <vector>

namespace costate::runtime::streams {

/// One launch, but for its words.
struct Start {
  Function function = nullptr;
  unsigned blocks = 1, blockThreads = 1, sharedBytes = 0;
};

/// Launches in their order; two that are equal do the same.
class Series {
public:
  void add(const Start &start, std::span<const uint64_t> words);
  size_t size() const { return count; }
  void clear() {
    text.clear();
    count = 0;
  }
  size_t hash() const;
  bool operator==(const Series &) const = default;

  /// Calls `launch(start, words)` for each, until one is no success.
  template <class Launch> Status forEach(const Launch &launch) const {
    Status status = success;
    for (size_t at = 0; at < text.size() && status == success;) {
      const uint64_t *head = &text[at];
      status =
          launch(Start{reinterpret_cast<Function>(head[0]), unsigned(head[1]),
                       unsigned(head[2]), unsigned(head[3])},
                 std::span(head + headWords, size_t(head[4])));
      at += headWords + head[4];
    }
    return status;
  }

private:
  static constexpr size_t headWords = 5;
  std::vector<uint64_t> text; ///< for each the function, its grid, its words
  size_t count = 0;
};

/// The graphs of series that come again and again.
class SeriesGraphs {
public:
  explicit SeriesGraphs(const Api &api) : api(api) {}
  SeriesGraphs(const SeriesGraphs &) = delete;

  /// Null: `series` has no graph. `isDue`: it has come so often that one pays;
  /// whoever asks answers with keep(), a graph or null for one that cannot be.
  GraphRun find(const Series &series, bool &isDue);
  void keep(const Series &series, GraphRun run);
  /// All of them: functions go, or whoever has them does.
  void forget();

private:
  struct Known {
    Series series = {}; ///< that `run` is of
    GraphRun run = nullptr;
    int seen = 0;
    size_t lastSeen = 0; ///< by `searches`
  };
  void makeRoom();

  const Api &api;
  std::unordered_map<size_t, Known> known; ///< by the hash of the series
  size_t runs = 0, searches = 0;
};

} // namespace costate::runtime::streams
