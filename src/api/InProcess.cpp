#include "api/Checked.h"
#include "api/Distributed.h"

#include <condition_variable>
#include <deque>

using namespace costate;
using namespace costate::api;
using namespace costate::detail;

namespace {

using Bytes = std::vector<std::byte>;

/// What ranks have sent each other and not received yet.
class Mail {
public:
  Mail(int size, std::chrono::milliseconds timeout)
      : size(size), timeout(timeout), gone(static_cast<size_t>(size)) {}

  void put(int from, int to, Bytes bytes) {
    std::lock_guard lock(mutex);
    letters[{from, to}].push_back(std::move(bytes));
    changed.notify_all();
  }

  /// The next that `from` has sent.
  Bytes take(int from, int to) {
    std::unique_lock lock(mutex);
    std::deque<Bytes> &waiting = letters[{from, to}];
    size_t peer = static_cast<size_t>(from);
    bool came = changed.wait_for(
        lock, timeout, [&] { return !waiting.empty() || gone[peer]; });
    if (waiting.empty())
      raise(ErrorCode::RankLost,
            "rank " + std::to_string(from) +
                (came
                     ? " has left, and rank "
                     : " has not answered within " +
                           std::to_string(timeout.count()) + " ms, and rank ") +
                std::to_string(to) + " waits for it");
    Bytes bytes = std::move(waiting.front());
    waiting.pop_front();
    return bytes;
  }

  void leave(int rank) {
    std::lock_guard lock(mutex);
    gone[static_cast<size_t>(rank)] = true;
    changed.notify_all();
  }

  const int size;
  const std::chrono::milliseconds timeout;

private:
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::pair<int, int>, std::deque<Bytes>> letters;
  std::vector<bool> gone;
};

class InProcess : public Communicator {
public:
  InProcess(std::shared_ptr<Mail> mail, int own)
      : mail(std::move(mail)), own(own) {}
  ~InProcess() override { mail->leave(own); }

  int rank() const override { return own; }
  int size() const override { return mail->size; }
  void sum(AnyArray array) override { sumInOrder(*this, array); }

  std::function<void()> exchange(std::vector<Message> sends,
                                 std::vector<Message> receives) override {
    for (const Message &message : sends) {
      Bytes bytes(message.array.bytes());
      message.array.read(bytes.data(), bytes.size());
      mail->put(own, message.peer, std::move(bytes));
    }
    return [mail = mail, own = own, receives] {
      for (Message message : receives) {
        Bytes bytes = mail->take(message.peer, own);
        if (bytes.size() != message.array.bytes())
          raise(ErrorCode::BadArgument,
                "rank " + std::to_string(message.peer) + " has sent " +
                    std::to_string(bytes.size()) + " bytes, and rank " +
                    std::to_string(own) + " waits for " +
                    std::to_string(message.array.bytes()) +
                    "; all ranks have to make the same calls in one order");
        message.array.write(bytes.data(), bytes.size());
      }
    };
  }

  void barrier() override {
    for (int peer = 0; peer < size(); ++peer)
      mail->put(own, peer, {});
    for (int peer = 0; peer < size(); ++peer)
      mail->take(peer, own);
  }

private:
  std::shared_ptr<Mail> mail;
  int own;
};

} // namespace

std::vector<Group> distributed::in_process(int size,
                                           std::chrono::milliseconds timeout) {
  if (size < 1)
    raise(ErrorCode::BadArgument,
          "a group has at least one rank, not " + std::to_string(size));
  auto mail = std::make_shared<Mail>(size, timeout);
  std::vector<Group> ranks;
  for (int rank = 0; rank < size; ++rank)
    ranks.push_back(std::make_shared<InProcess>(mail, rank));
  return ranks;
}
