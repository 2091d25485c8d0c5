#pragma once
/// Devices of several threads or processes that send to each other by
/// themselves.

#include "base/Result.h"
#include "costate/types.h"
#include "runtime/Buffer.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <span>

namespace costate::runtime {

/// Where ranks meet. One of them makes it, and tells the others.
using MeetingPlace = std::array<std::byte, 128>;

struct Meeting {
  MeetingPlace place;
  int rank = 0, size = 1;
  /// For a rank that does not answer.
  std::chrono::milliseconds timeout{};
};

/// A buffer that goes to a rank, or comes from it.
struct Parcel {
  int peer;
  Buffer buffer;
};

/// One of these devices. Its functions queue work of the device, or add it to
/// the graph that this thread captures; all ranks call them in the same order.
/// RankLost once a rank has not answered; then all that waits for the device
/// fails likewise, for as long as this lives.
class Ranks {
public:
  virtual ~Ranks() = default;

  /// Sends and receives after what the device was asked for before, and beside
  /// what it is asked for from here on.
  virtual Result<> exchange(std::span<const Parcel> sends,
                            std::span<const Parcel> receives) = 0;
  /// What the device is asked for from here on comes after all exchanges.
  virtual Result<> wait() = 0;
  /// The sum over ranks takes the place of the elements. BadArgument if there
  /// are no sums of that type.
  virtual Result<> sum(Buffer buffer, DType dtype) = 0;
  /// A graph that has exchanges has been queued: a rank that does not answer
  /// them is noticed.
  virtual void watchReplay() = 0;
};

/// Of devices that do not send by themselves.
Failure noRanks();

} // namespace costate::runtime
