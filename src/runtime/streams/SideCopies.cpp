#include "runtime/streams/SideCopies.h"

#include <array>

namespace costate::runtime::streams {
namespace {

class SideCopies final : public gpu::SideStream {
public:
  explicit SideCopies(std::shared_ptr<Session> session)
      : session(std::move(session)) {}
  ~SideCopies() override;
  Status open();

  Result<> enter(size_t place) override;
  Result<> leave(size_t place) override;
  Result<> save(size_t place, std::byte *to, const std::byte *from,
                size_t bytes) override;
  Result<> load(size_t place, std::byte *to, const std::byte *from,
                size_t bytes) override;

private:
  const Api &api() const { return session->api(); }
  template <class... Params, class... Arguments>
  Result<> copy(size_t place, Status (*function)(Params...),
                Arguments... arguments);

  /// After what one of the streams has done last.
  struct Place {
    Event left = nullptr, copied = nullptr;
  };
  std::shared_ptr<Session> session;
  Stream stream = nullptr;
  std::array<Place, places> all;
};

SideCopies::~SideCopies() {
  if (stream) {
    (void)session->call(api().waitForStream, stream);
    (void)session->call(api().destroyStream, stream);
  }
  for (const Place &place : all)
    for (Event event : {place.left, place.copied})
      if (event)
        (void)session->call(api().destroyEvent, event);
}

Status SideCopies::open() {
  Status status = session->call(api().createStream, &stream, nonBlockingStream);
  for (Place &place : all)
    for (Event *event : {&place.left, &place.copied})
      if (status == success)
        status = session->call(api().createEvent, event, eventWithoutTime);
  return status;
}

Result<> SideCopies::enter(size_t place) {
  Status status = session->withStream([&](Stream main) {
    return session->call(api().streamWaitsFor, main, all[place].copied, 0u);
  });
  return session->result(status, "wait for a copy");
}

Result<> SideCopies::leave(size_t place) {
  return session->result(session->enqueue(api().recordEvent, all[place].left),
                         "order copies");
}

template <class... Params, class... Arguments>
Result<> SideCopies::copy(size_t place, Status (*function)(Params...),
                          Arguments... arguments) {
  Status status =
      session->call(api().streamWaitsFor, stream, all[place].left, 0u);
  if (status == success)
    status = session->call(function, arguments..., stream);
  if (status == success)
    status = session->call(api().recordEvent, all[place].copied, stream);
  return session->result(status, "copy data to or from the host");
}

Result<> SideCopies::save(size_t place, std::byte *to, const std::byte *from,
                          size_t bytes) {
  ++session->counters().downloads;
  return copy(place, api().copyToHost, static_cast<void *>(to),
              reinterpret_cast<Address>(from), bytes);
}

Result<> SideCopies::load(size_t place, std::byte *to, const std::byte *from,
                          size_t bytes) {
  ++session->counters().uploads;
  return copy(place, api().copyToDevice, reinterpret_cast<Address>(to),
              static_cast<const void *>(from), bytes);
}

} // namespace

Result<std::unique_ptr<gpu::SideStream>>
openSideCopies(std::shared_ptr<Session> session) {
  auto copies = std::make_unique<SideCopies>(session);
  if (Status status = copies->open())
    return session->failure(status, "make a second stream");
  return std::unique_ptr<gpu::SideStream>(std::move(copies));
}

} // namespace costate::runtime::streams
