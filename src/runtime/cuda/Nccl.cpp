#include "runtime/cuda/Nccl.h"

#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace costate::runtime::cuda {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds betweenLooks(20);

/// Before an exchange, in the stream of the device, and after it, in that of
/// the ranks.
struct Marks {
  Event ready = nullptr, arrived = nullptr;
};

struct Watched {
  Marks marks;
  bool isReplay = false; ///< of a graph: `ready` says nothing
  std::optional<Clock::time_point> since = {}; ///< nothing else is waited for
};

class NcclRanks final : public Ranks {
public:
  NcclRanks(const NcclApi &nccl, std::shared_ptr<Session> session,
            const Meeting &meeting)
      : nccl(nccl), session(std::move(session)), meeting(meeting) {}
  ~NcclRanks() override;
  Result<> open();

  Result<> exchange(std::span<const Parcel> sends,
                    std::span<const Parcel> receives) override;
  Result<> wait() override;
  Result<> sum(Buffer buffer, DType dtype) override;
  void watchReplay() override;

private:
  /// How the thread that watches finds this; null when it is gone.
  struct Place {
    std::timed_mutex mutex;
    NcclRanks *ranks = nullptr;
  };

  static constexpr size_t greeting = 16; ///< bytes

  const Api &cuda() const { return session->api(); }
  Result<> connect();
  void setUnderWay(bool now);
  Result<Marks> makeMarks();
  /// Of a new exchange.
  Result<Marks> nextMarks();
  using Body = std::function<NcclStatus()>;
  Result<> queue(const Body &body);
  Status append(const Marks &marks, const Body &body, NcclStatus &said);
  NcclStatus sendAll(std::span<const Parcel> sends,
                     std::span<const Parcel> receives);

  Failure failure(NcclStatus status) const;
  bool isDone(Event event) const {
    return session->call(cuda().queryEvent, event) != notReady;
  }
  void startWatching();
  void look();
  std::string obstacle();
  void lose(const std::string &why);
  void leave();

  const NcclApi &nccl;
  const std::shared_ptr<Session> session;
  const Meeting meeting;
  Communicator communicator = nullptr;
  Stream stream = nullptr;
  Address greetings = 0;
  std::atomic<bool> underWay = false;

  std::mutex mutex;
  std::vector<Marks> all;
  Marks inGraph;
  Event newest = nullptr; ///< after the last exchange that is in no graph
  std::vector<Marks> idle;
  std::deque<Watched> watched;
  std::optional<Failure> lost;
  std::shared_ptr<Place> place = std::make_shared<Place>();
};

Failure NcclRanks::failure(NcclStatus status) const {
  bool isOfOthers = status == ncclSystemError || status == ncclRemoteError;
  return {isOfOthers ? ErrorCode::RankLost : ErrorCode::Internal,
          "rank " + std::to_string(meeting.rank) + " of " +
              std::to_string(meeting.size) +
              ": NCCL says: " + nccl.text(status)};
}

Result<> NcclRanks::open() {
  NcclStatus said = session->within([&] {
    return nccl.join(&communicator, meeting.size, meeting.place, meeting.rank);
  });
  if (said)
    return failure(said);
  Status status = session->call(cuda().createUrgentStream, &stream,
                                nonBlockingStream, mostUrgent);
  if (status)
    return session->failure(status, "make a stream for exchanges");
  Result<Marks> made = makeMarks();
  if (!made)
    return made.error();
  inGraph = *made;
  startWatching();
  return connect();
}

/// NCCL connects two ranks when they first send to each other, which must not
/// be while one captures; those next to each other do so now.
Result<> NcclRanks::connect() {
  Status status = session->call(cuda().allocate, &greetings, 4 * greeting);
  if (status)
    return session->failure(status, "greet other ranks");
  std::vector<Parcel> sends, receives;
  auto add = [&](int peer) {
    for (std::vector<Parcel> *list : {&sends, &receives}) {
      Address place = greetings + greeting * (sends.size() + receives.size());
      list->push_back({peer, {reinterpret_cast<std::byte *>(place), greeting}});
    }
  };
  add((meeting.rank + 1) % meeting.size);
  if (meeting.size > 2)
    add((meeting.rank + meeting.size - 1) % meeting.size);
  Result<> sent = exchange(sends, receives);
  return sent ? wait() : sent;
}

/// The last word of a rank may be on its way.
void NcclRanks::leave() {
  auto left = std::make_shared<std::promise<void>>();
  std::thread([left, session = session, &nccl = nccl,
               communicator = communicator]() mutable {
    (void)session->within([&] { return nccl.leave(communicator); });
    session.reset();
    left->set_value();
  }).detach();
  left->get_future().wait_for(meeting.timeout);
}

NcclRanks::~NcclRanks() {
  if (!place->mutex.try_lock_for(meeting.timeout + std::chrono::seconds(1)))
    return; // the process ends, or NCCL does not come back
  place->ranks = nullptr;
  place->mutex.unlock();
  if (communicator)
    leave();
  setUnderWay(false);
  session->trust(this);
  for (const Marks &marks : all)
    for (Event event : {marks.ready, marks.arrived})
      if (event)
        (void)session->call(cuda().destroyEvent, event);
  if (stream)
    (void)session->call(cuda().destroyStream, stream);
  if (greetings)
    (void)session->call(cuda().free, greetings);
}

//===-- Queueing ----------------------------------------------------------===//

Result<Marks> NcclRanks::makeMarks() {
  Marks &marks = all.emplace_back();
  for (Event *event : {&marks.ready, &marks.arrived})
    if (Status status =
            session->call(cuda().createEvent, event, eventWithoutTime))
      return session->failure(status, "order exchanges");
  return marks;
}

Result<Marks> NcclRanks::nextMarks() {
  if (session->isCapturing())
    return inGraph;
  if (idle.empty())
    return makeMarks();
  Marks marks = idle.back();
  idle.pop_back();
  return marks;
}

Status NcclRanks::append(const Marks &marks, const Body &body,
                         NcclStatus &said) {
  return session->withStream([&](Stream main) {
    Status status = session->call(cuda().recordEvent, marks.ready, main);
    if (status == success)
      status = session->call(cuda().streamWaitsFor, stream, marks.ready, 0u);
    if (status == success)
      said = session->within(body);
    if (status == success && said == success)
      status = session->call(cuda().recordEvent, marks.arrived, stream);
    return status;
  });
}

Result<> NcclRanks::queue(const Body &body) {
  std::lock_guard lock(mutex);
  if (lost)
    return *lost;
  Result<Marks> marks = nextMarks();
  if (!marks)
    return marks.error();
  NcclStatus said = success;
  Status status = append(*marks, body, said);
  if (said)
    return failure(said);
  if (status)
    return session->failure(status, "exchange data with other ranks");
  if (session->isCapturing())
    return {};
  newest = marks->arrived;
  watched.push_back({*marks});
  return {};
}

NcclStatus NcclRanks::sendAll(std::span<const Parcel> sends,
                              std::span<const Parcel> receives) {
  NcclStatus said = nccl.beginGroup();
  for (const Parcel &one : sends)
    if (said == success)
      said = nccl.send(one.buffer.address, one.buffer.bytes, NcclType::U8,
                       one.peer, communicator, stream);
  for (const Parcel &one : receives)
    if (said == success)
      said = nccl.receive(one.buffer.address, one.buffer.bytes, NcclType::U8,
                          one.peer, communicator, stream);
  NcclStatus ended = nccl.endGroup();
  return said ? said : ended;
}

Result<> NcclRanks::exchange(std::span<const Parcel> sends,
                             std::span<const Parcel> receives) {
  Result<> done = queue([&] { return sendAll(sends, receives); });
  if (done)
    setUnderWay(true);
  return done;
}

/// What is launched meanwhile leaves room.
void NcclRanks::setUnderWay(bool now) {
  if (bool before = underWay.exchange(now); before != now)
    now ? session->share() : session->unshare();
}

Result<> NcclRanks::wait() {
  setUnderWay(false);
  std::lock_guard lock(mutex);
  if (lost)
    return *lost;
  Event arrived = session->isCapturing() ? inGraph.arrived : newest;
  if (!arrived)
    return {};
  Status status = session->withStream([&](Stream main) {
    return session->call(cuda().streamWaitsFor, main, arrived, 0u);
  });
  return session->result(status, "wait for other ranks");
}

std::optional<NcclType> typeOf(DType dtype) {
  switch (dtype) {
  case DType::I8:
    return NcclType::I8;
  case DType::U8:
    return NcclType::U8;
  case DType::I32:
    return NcclType::I32;
  case DType::U32:
    return NcclType::U32;
  case DType::I64:
    return NcclType::I64;
  case DType::U64:
    return NcclType::U64;
  case DType::F16:
    return NcclType::F16;
  case DType::F32:
    return NcclType::F32;
  case DType::F64:
    return NcclType::F64;
  case DType::Bool:
  case DType::I16:
  case DType::U16:
    return std::nullopt;
  }
  return std::nullopt;
}

Result<> NcclRanks::sum(Buffer buffer, DType dtype) {
  std::optional<NcclType> type = typeOf(dtype);
  if (!type)
    return Failure{ErrorCode::BadArgument,
                   std::string("NCCL has no sums of ") + nameOf(dtype) +
                       "; use i32, or add in the order of ranks (ordered)"};
  auto done = queue([&] {
    return nccl.sum(buffer.address, buffer.address,
                    buffer.bytes / sizeOf(dtype), *type, NcclOperation::Sum,
                    communicator, stream);
  });
  return done ? wait() : done;
}

//===-- Watching ----------------------------------------------------------===//

void NcclRanks::watchReplay() {
  std::lock_guard lock(mutex);
  if (lost)
    return;
  Result<Marks> marks = nextMarks();
  if (!marks)
    return;
  if (session->enqueue(cuda().recordEvent, marks->arrived) == success)
    watched.push_back({*marks, true});
}

void NcclRanks::startWatching() {
  place->ranks = this;
  std::thread([place = place] {
    for (bool lives = true; lives;) {
      std::this_thread::sleep_for(betweenLooks);
      std::lock_guard lock(place->mutex);
      lives = place->ranks;
      if (lives)
        place->ranks->look();
    }
  }).detach();
}

void NcclRanks::look() {
  std::lock_guard lock(mutex);
  if (lost)
    return;
  if (std::string why = obstacle(); !why.empty())
    lose(why);
}

/// Why there is nothing more to wait for; empty: for nothing.
std::string NcclRanks::obstacle() {
  while (!watched.empty() && isDone(watched.front().marks.arrived)) {
    idle.push_back(watched.front().marks);
    watched.pop_front();
  }
  NcclStatus state = success;
  (void)session->within([&] { return nccl.state(communicator, &state); });
  if (state != success && state != ncclInProgress)
    return std::string("NCCL says: ") + nccl.text(state);
  if (watched.empty())
    return "";
  Watched &first = watched.front();
  if (!first.since && (first.isReplay || isDone(first.marks.ready)))
    first.since = Clock::now();
  if (!first.since || Clock::now() - *first.since < meeting.timeout)
    return "";
  return "another rank has ended, or has not answered within " +
         std::to_string(meeting.timeout.count()) + " ms";
}

/// What hangs ends, with anything in its arrays.
void NcclRanks::lose(const std::string &why) {
  lost = Failure{ErrorCode::RankLost,
                 "rank " + std::to_string(meeting.rank) + " of " +
                     std::to_string(meeting.size) + ": " + why};
  session->doubt(this, *lost);
  (void)session->within([&] { return nccl.abandon(communicator); });
  communicator = nullptr;
}

} // namespace

Result<MeetingPlace> makeMeetingPlace(int rank) {
  Result<const NcclApi *> api = loadNccl();
  if (!api)
    return api.error();
  MeetingPlace place{};
  NcclStatus said = rank == 0 ? (*api)->makePlace(&place) : success;
  if (said)
    return Failure{ErrorCode::Internal,
                   std::string("NCCL says: ") + (*api)->text(said)};
  return place;
}

Result<std::shared_ptr<Ranks>> joinRanks(std::shared_ptr<Session> session,
                                         const Meeting &meeting) {
  Result<const NcclApi *> api = loadNccl();
  if (!api)
    return api.error();
  return joinRanks(**api, std::move(session), meeting);
}

Result<std::shared_ptr<Ranks>> joinRanks(const NcclApi &api,
                                         std::shared_ptr<Session> session,
                                         const Meeting &meeting) {
  auto ranks = std::make_shared<NcclRanks>(api, std::move(session), meeting);
  if (Result<> opened = ranks->open(); !opened)
    return opened.error();
  return std::shared_ptr<Ranks>(std::move(ranks));
}

} // namespace costate::runtime::cuda
