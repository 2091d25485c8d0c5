#pragma once
/// When the GPU comes to certain places of its stream, on the clock of the
/// host.

#include "base/Profile.h"
#include "runtime/streams/Session.h"

#include <mutex>

namespace costate::runtime::streams {

class OwnedEvent;

/// Safe to use from several threads.
class EventClock : public std::enable_shared_from_this<EventClock> {
public:
  explicit EventClock(std::shared_ptr<Session> session)
      : session(std::move(session)) {}

  /// Null while this thread captures, or where no event can be recorded. The
  /// first one waits for the GPU, to compare the clocks.
  std::shared_ptr<profile::Moment> mark();
  /// Waits for `event`.
  int64_t timeOf(const std::shared_ptr<OwnedEvent> &event);

private:
  std::shared_ptr<OwnedEvent> record();

  const std::shared_ptr<Session> session;
  std::mutex mutex;
  /// One of the last second, as drivers tell times between events in floats.
  std::shared_ptr<OwnedEvent> base;
  int64_t baseTime = 0, last = 0;
};

} // namespace costate::runtime::streams
