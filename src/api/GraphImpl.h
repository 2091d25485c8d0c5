#pragma once
/// What is captured on this thread, and what a graph does besides launching.

#include "api/BoundLaunch.h"
#include "api/ThisThread.h"

namespace costate::detail {

/// A launch, a fill, or an exchange.
struct GraphEntry {
  runtime::Step step;
  std::shared_ptr<const AccessSet> accesses; ///< keep arrays and kernels alive
  const BoundLaunch *toRemember = nullptr;   ///< a launch that a gradient needs
};

struct GraphImpl {
  std::shared_ptr<runtime::Device> device;
  std::vector<GraphEntry> entries;
  std::shared_ptr<runtime::Graph> graph;
  /// To be called after each replay, by who wants it.
  std::map<const void *, std::function<void()>> afterReplay;

  void replay();
};

/// While it lives, this thread captures: nothing runs.
class Capture {
public:
  explicit Capture(std::shared_ptr<runtime::Device> device);
  ~Capture();
  Capture(const Capture &) = delete;
  Capture &operator=(const Capture &) = delete;

  /// The one of this thread, or null.
  static Capture *current() { return thisThread().capture; }

  /// BadArgument if it is of another device.
  void append(const runtime::Device &device, GraphEntry entry);
  void append(const BoundLaunch &launch);
  std::shared_ptr<GraphImpl> end();
  /// The device is told what to keep.
  bool isEnding() const { return ending; }

  void callAfterReplay(const void *who, std::function<void()> what) {
    graph->afterReplay[who] = std::move(what);
  }

  /// What is to be finished before the end.
  void open(const void *what, const std::string &text) {
    unfinished[what] = text;
  }
  void close(const void *what) { unfinished.erase(what); }
  /// Lives as long as the capture and its graph.
  std::shared_ptr<const void> token() const { return graph; }

  /// What versions and past launches will be, counted from the beginning of a
  /// replay.
  std::map<const runtime::ArrayStorage *, uint64_t> writes;
  std::map<std::pair<const KernelImpl *, std::vector<uint64_t>>, PastLaunch>
      past;

private:
  std::shared_ptr<GraphImpl> graph;
  std::map<const void *, std::string> unfinished;
  bool ending = false;
};

/// CannotCapture if this thread captures; `what` completes "a graph cannot".
void requireNoCapture(const std::string &what);

} // namespace costate::detail
