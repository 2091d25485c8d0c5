#include "runtime/streams/Series.h"

#include <string_view>

namespace costate::runtime::streams {

/// What takes memory of the GPU, and what only counts.
static constexpr size_t mostGraphs = 512, mostKnown = 8192;
/// A graph that none of so many series was has no use any more.
static constexpr size_t searchesUnused = 4096;

void Series::add(const Start &start, std::span<const uint64_t> words) {
  text.insert(text.end(),
              {reinterpret_cast<uint64_t>(start.function), start.blocks,
               start.blockThreads, start.sharedBytes, words.size()});
  text.insert(text.end(), words.begin(), words.end());
  ++count;
}

size_t Series::hash() const {
  return std::hash<std::string_view>()(
      {reinterpret_cast<const char *>(text.data()), 8 * text.size()});
}

GraphRun SeriesGraphs::find(const Series &series, bool &isDue) {
  isDue = false;
  makeRoom();
  Known &found = known[series.hash()];
  found.lastSeen = ++searches;
  if (found.run)
    return found.series == series ? found.run : nullptr;
  isDue = ++found.seen > api.graphRule().times && runs < mostGraphs;
  return nullptr;
}

/// One that cannot be is not tried again for long.
void SeriesGraphs::keep(const Series &series, GraphRun run) {
  Known &found = known[series.hash()];
  if (!run) {
    found.seen = -int(searchesUnused);
    return;
  }
  found.series = series;
  found.run = run;
  ++runs;
}

void SeriesGraphs::makeRoom() {
  bool isFull = known.size() >= mostKnown ||
                (runs >= mostGraphs && searches % searchesUnused == 0);
  if (!isFull)
    return;
  std::erase_if(known, [&](const auto &entry) {
    const Known &one = entry.second;
    if (one.run && searches - one.lastSeen < searchesUnused)
      return false;
    if (one.run) {
      (void)api.destroyGraphRun(one.run);
      --runs;
    }
    return true;
  });
}

void SeriesGraphs::forget() {
  for (const auto &[hash, one] : known)
    if (one.run)
      (void)api.destroyGraphRun(one.run);
  known.clear();
  runs = 0;
}

} // namespace costate::runtime::streams
