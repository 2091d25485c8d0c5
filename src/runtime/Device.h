#pragma once
/// One device: memory and launches. Everything above the runtime sees devices
/// through this interface only.

#include "base/Profile.h"
#include "base/Result.h"
#include "code/KernelCode.h"
#include "costate/statistics.h"
#include "runtime/Buffer.h"
#include "runtime/HostCopies.h"
#include "runtime/Ranks.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace costate::runtime {

struct DeviceInfo {
  std::string name;
  int threads = 1;
  size_t memoryLimit = 0;     ///< bytes
  std::string target = "cpu"; ///< what code is compiled for: `cpu`, `simt`, ...
  bool isHost = true;         ///< the host can dereference addresses
  size_t tapeBudget = 0;      ///< bytes for the tapes of a launch; 0: any
  size_t sharedPerBlock = 0;  ///< bytes that the arrays of a block may take
};

struct MemoryUse {
  size_t current = 0; ///< bytes of buffers, tapes and logs
  size_t peak = 0;    ///< most of that since the last resetPeak
};

struct LaunchRequest {
  const KernelCode *code = nullptr;
  /// As KernelCode.h says.
  std::span<const uint64_t> arguments;
  /// The adjoint arrays of a gradient. If `code->growsTape`, a launch that
  /// fails has not changed them.
  std::span<const Buffer> adjoints;
  /// Compiled code calls costate_add_later_*.
  bool deterministic = false;
  /// What the kernel says by `print` has been said.
  bool quiet = false;
  /// Bytes for the tapes of all threads; 0: what memory there is.
  size_t tapeBudget = 0;
  /// GPU: launches of this code for which these numbers are the same need tapes
  /// of the same sizes; empty: that is not known.
  std::span<const uint64_t> countedFrom = {};
  /// GPU: becomes true if the launch fails before it has changed anything.
  bool *isUntouched = nullptr;
  /// For profiles: "gradient of swing"; empty: the name of the code.
  std::string_view title = {};
  /// CPU: no other code will be tried, so that one thread runs what several
  /// have no tapes for.
  bool isLastResort = false;

  bool isPrimal() const { return adjoints.empty(); }
  /// Of a part of it, at a source place of the code.
  profile::Span partAt(profile::Kind kind, int64_t site) const;
};

struct LaunchReport {
  size_t tapeBytes = 0; ///< the largest tape, within a factor of two
  size_t allBytes = 0;  ///< GPU: of all tapes, besides on-chip memory
  /// GPU: somebody else has captured the launch, and may repeat it at any time.
  bool isInGraph = false;
};

class Graph;
struct KeptLaunch;
struct KeptFill;
struct KeptCall;
using Step = std::variant<KeptLaunch, KeptFill, KeptCall>; ///< see Graph.h

/// Of bytes that are moved, for profile::Timed.
inline auto copyOf(const char *name, size_t bytes) {
  return [=] {
    return profile::Span{profile::Kind::Copy, name, "",
                         static_cast<int64_t>(bytes)};
  };
}

/// Of the host, likewise.
inline auto waitFor(const char *what) {
  return [=] {
    return profile::Span{profile::Kind::Wait, std::string("wait for ") + what};
  };
}

/// Implementations are safe to call from several threads. Work on the same
/// buffer is ordered by the caller.
class Device {
public:
  virtual ~Device() = default;
  virtual const DeviceInfo &info() const = 0;

  /// Zeroed memory. OutOfMemory above the limit or when the system refuses.
  virtual Result<Buffer> allocate(size_t bytes) = 0;
  virtual void release(Buffer buffer) = 0;

  /// The same for a while, of any contents. The device may keep what is given
  /// back for who borrows as much.
  virtual Result<Buffer> borrow(size_t bytes) { return allocate(bytes); }
  virtual void giveBack(Buffer buffer) { release(buffer); }
  /// Null where memory is that of the host.
  virtual HostCopies *hostCopies() { return nullptr; }

  /// `buffer` is memory of somebody else; until `disown`, which waits, if
  /// `waits`, until nothing queued needs it. BadArgument if the device can use
  /// no memory but its own.
  virtual Result<> adopt(Buffer) { return {}; }
  virtual void disown(Buffer, bool) {}

  virtual MemoryUse memory() const = 0;
  virtual void resetPeak() = 0;

  /// All of `buffer`, from or to the host.
  virtual Result<> upload(Buffer to, const void *from) = 0;
  virtual Result<> download(void *to, Buffer from) = 0;
  /// `to` and `from` have as many rows of equal size, and no byte in common.
  virtual Result<> copy(Rows to, Rows from) = 0;
  /// Swaps the contents of rows like those.
  virtual Result<> exchange(Rows one, Rows other) = 0;
  /// Repeats a pattern of 1, 2, 4 or 8 bytes.
  virtual Result<> fill(Buffer buffer, const void *pattern,
                        size_t patternBytes) = 0;
  /// Zeroes, and gives memory back where the device has none that is not used:
  /// for what is mostly zero.
  virtual Result<> clear(Buffer buffer) {
    const std::byte zero{};
    return fill(buffer, &zero, 1);
  }

  virtual Result<LaunchReport> launch(const LaunchRequest &request) = 0;
  virtual Result<> synchronize() = 0;

  /// From here on work goes to `stream`, a handle of the API of the device, or
  /// back to the device's own one for none; after all that was queued before.
  /// BadArgument if the device has no streams.
  virtual Result<> useStream(std::optional<void *> stream) = 0;
  /// The other way round: what others queue on `stream` from here on comes
  /// after all that was asked for before. Waits itself if the device has no
  /// streams.
  virtual Result<> letWait(void *) { return synchronize(); }

  /// Keeps `steps` without doing any of them. CannotCapture if one has to
  /// wait for the device.
  virtual Result<std::shared_ptr<Graph>> capture(std::vector<Step> steps) = 0;

  /// Ranks of several devices: a place for them, which rank 0 makes and nobody
  /// else, and one of them, which waits for the others. BadArgument if the
  /// device cannot send by itself, NoDevice if what it takes is missing.
  virtual Result<MeetingPlace> meetingPlace(int) { return noRanks(); }
  virtual Result<std::shared_ptr<Ranks>> join(const Meeting &) {
    return noRanks();
  }

  /// Since the device was opened or the last resetStatistics.
  virtual Statistics statistics() const = 0;
  virtual void resetStatistics() = 0;
};

} // namespace costate::runtime
