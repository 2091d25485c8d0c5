#include "runtime/streams/EventClock.h"

namespace costate::runtime::streams {

class OwnedEvent {
public:
  OwnedEvent(std::shared_ptr<Session> session, Event event)
      : event(event), session(std::move(session)) {}
  ~OwnedEvent() { (void)session->call(session->api().destroyEvent, event); }
  OwnedEvent(const OwnedEvent &) = delete;

  const Event event;

private:
  const std::shared_ptr<Session> session;
};

namespace {
class EventMoment final : public profile::Moment {
public:
  EventMoment(std::shared_ptr<EventClock> clock,
              std::shared_ptr<OwnedEvent> event)
      : clock(std::move(clock)), event(std::move(event)) {}
  int64_t nanoseconds() override { return clock->timeOf(event); }

private:
  const std::shared_ptr<EventClock> clock;
  const std::shared_ptr<OwnedEvent> event;
};
} // namespace

std::shared_ptr<OwnedEvent> EventClock::record() {
  const Api &api = session->api();
  Event made = nullptr;
  if (session->call(api.createEvent, &made, eventWithTime) != success)
    return nullptr;
  auto event = std::make_shared<OwnedEvent>(session, made);
  bool isQueued = session->enqueue(api.recordEvent, event->event) == success;
  return isQueued ? event : nullptr;
}

std::shared_ptr<profile::Moment> EventClock::mark() {
  if (session->isCapturing())
    return nullptr;
  std::lock_guard lock(mutex);
  if (!base) {
    auto first = record();
    if (!first || session->call(session->api().waitForEvent, first->event))
      return nullptr;
    base = std::move(first);
    baseTime = last = profile::now();
  }
  auto event = record();
  if (!event)
    return nullptr;
  return std::make_shared<EventMoment>(shared_from_this(), std::move(event));
}

int64_t EventClock::timeOf(const std::shared_ptr<OwnedEvent> &event) {
  const Api &api = session->api();
  (void)session->call(api.waitForEvent, event->event);
  std::lock_guard lock(mutex);
  constexpr float second = 1000;
  float milliseconds = 0;
  if (session->call(api.elapsed, &milliseconds, base->event, event->event))
    return last; // the GPU has failed
  last = baseTime + static_cast<int64_t>(1e6 * double(milliseconds));
  if (milliseconds > second) {
    base = event;
    baseTime = last;
  }
  return last;
}

} // namespace costate::runtime::streams
