#pragma once
/// What is captured on this thread, and what a graph does besides launching.

#include "api/Launch.h"
#include "runtime/Graph.h"

#include <functional>

namespace costate::detail {

/// A launch or a fill.
struct GraphEntry {
  runtime::Step step;
  /// Tells those who need what is overwritten; may throw.
  std::function<void()> before;
  /// Counts what has been written.
  std::function<void()> after;
};

struct GraphImpl {
  std::shared_ptr<runtime::Device> device;
  std::vector<GraphEntry> entries; ///< they keep arrays and kernels alive
  std::shared_ptr<runtime::Graph> graph;

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
  static Capture *current();

  /// BadArgument if it is of another device.
  void append(const runtime::Device &device, GraphEntry entry);
  std::shared_ptr<GraphImpl> end();

  /// What versions and past launches will be, counted from the beginning of a
  /// replay.
  std::map<const runtime::ArrayStorage *, uint64_t> writes;
  std::map<std::pair<const KernelImpl *, std::vector<uint64_t>>, PastLaunch>
      past;

private:
  std::shared_ptr<GraphImpl> graph;
};

/// CannotCapture if this thread captures; `what` completes "a graph cannot".
void requireNoCapture(const std::string &what);

} // namespace costate::detail
