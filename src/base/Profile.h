#pragma once
/// What this process spends its time on, for those who keep a profile. Without
/// one, a place that is timed costs one look at `isOn`.

#include "base/Result.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace costate::profile {

enum class Kind : uint8_t {
  Launch,  ///< of a kernel, as the host sees it
  Range,   ///< of a launch on the CPU
  Compile, ///< or find in the cache
  Copy,    ///< from, to or within a device, and fills
  Wait,    ///< of the host for a device
  Work,    ///< that the program has named
  Device,  ///< of a GPU, by its own clock
};

struct Span {
  Kind kind;
  std::string name;
  std::string source = {}; ///< "swing.py:9"; empty: unknown
  int64_t bytes = -1;      ///< that it moves; -1: none
};

extern std::atomic<bool> isKept;
inline bool isOn() { return isKept.load(std::memory_order_relaxed); }

/// Nanoseconds of the clock of all spans.
int64_t now();

/// A time that a GPU will know.
class Moment {
public:
  virtual ~Moment() = default;
  /// On the clock of the host; waits until it has come. Called in the order in
  /// which they were made.
  virtual int64_t nanoseconds() = 0;
};

/// Adds a span of this thread.
void add(const Span &span, int64_t begin, int64_t end);
/// Adds a span of `device`.
void add(const Span &span, const std::string &device,
         std::shared_ptr<Moment> begin, std::shared_ptr<Moment> end);

/// Adds what `describe` says for as long as it lives.
class Timed {
public:
  template <class Describe> explicit Timed(const Describe &describe) {
    if (isOn()) [[unlikely]]
      begin(describe());
  }
  ~Timed() {
    if (span) [[unlikely]]
      add(*span, start, now());
  }
  Timed(const Timed &) = delete;

private:
  void begin(Span what) {
    span = std::move(what);
    start = now();
  }
  std::optional<Span> span;
  int64_t start = 0;
};

/// All spans of one name and place.
struct Total {
  Span span;
  uint64_t count = 0;
  int64_t all = 0, least = 0, most = 0; ///< nanoseconds
};

/// Somebody who keeps one. Safe to use from several threads.
class Keeper {
public:
  /// Keeps from here on; every span goes to `file` as well, if there is one, in
  /// the format of Chrome's trace events. BadFile.
  static Result<std::shared_ptr<Keeper>> start(const std::string &file);
  ~Keeper();

  /// Nothing more is kept. BadFile if not all could be written.
  Result<> end();
  /// The longest first.
  std::vector<Total> totals();

  struct State;
  explicit Keeper(std::shared_ptr<State> state) : state(std::move(state)) {}

private:
  const std::shared_ptr<State> state;
};

/// As a profile and a report say it.
const char *nameOf(Kind kind);

} // namespace costate::profile
