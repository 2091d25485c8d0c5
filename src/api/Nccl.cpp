#include "api/Checked.h"
#include "api/Distributed.h"
#include "api/GraphImpl.h"
#include "api/Recording.h"
#include "runtime/ArrayStorage.h"

#include <cstring>

using namespace costate;
using namespace costate::api;
using namespace costate::detail;
using runtime::MeetingPlace, runtime::Parcel;

namespace {

class Nccl final : public Communicator {
public:
  Nccl(Device device, std::shared_ptr<runtime::Ranks> ranks, int own, int count)
      : device(std::move(device)), ranks(std::move(ranks)), own(own),
        count(count) {}

  int rank() const override { return own; }
  int size() const override { return count; }
  bool fits_graphs(const Device &other) const override {
    return other == device;
  }
  void replayed() override { ranks->watchReplay(); }

  void sum(AnyArray array) override {
    Lent lent;
    checked(ranks->sum(lend(array, true, lent), array.dtype()));
    giveBack(lent, {{own, array}});
  }

  std::function<void()> exchange(std::vector<Message> sends,
                                 std::vector<Message> receives) override {
    auto lent = std::make_shared<Lent>();
    auto parcels = [&](std::vector<Message> &messages, bool writable) {
      std::vector<Parcel> result;
      for (Message &one : messages)
        result.push_back({one.peer, lend(one.array, writable, *lent)});
      return result;
    };
    std::vector<Parcel> out = parcels(sends, false),
                        in = parcels(receives, true);
    checked(ranks->exchange(out, in));
    return [ranks = ranks, lent, receives = std::move(receives)] {
      checked(ranks->wait());
      giveBack(*lent, receives);
    };
  }

  void barrier() override {
    sum(device.array<int32_t>({1}));
    device.synchronize();
  }

private:
  using Lent = std::vector<LentMemory>;

  /// When a graph is made, its own entry tells what is written.
  static bool isKept() {
    Capture *capture = Capture::current();
    return capture && capture->isEnding();
  }

  runtime::Buffer lend(AnyArray &array, bool writable, Lent &lent) const {
    if (array.device() != device)
      raise(ErrorCode::BadArgument,
            "ranks of NCCL send from `" + device.name() +
                "`, and this array lives on another device, `" +
                array.device().name() + "`");
    if (!isKept())
      lent.push_back(array.lend(writable));
    return array.storage()->buffer;
  }

  static void giveBack(Lent &lent, std::vector<Message> written) {
    lent.clear();
    if (!isKept())
      for (Message &one : written)
        one.array.written_outside();
  }

  const Device device;
  const std::shared_ptr<runtime::Ranks> ranks;
  const int own, count;
};

/// The place that rank 0 has made, on all ranks. If one of them cannot join
/// none does.
MeetingPlace agreeOn(const Result<MeetingPlace> &place, const Device &device,
                     Communicator &others) {
  constexpr size_t words = sizeof(MeetingPlace) / sizeof(int64_t);
  std::vector<int64_t> numbers(words + 1);
  if (place.ok()) {
    std::memcpy(numbers.data(), &*Result(place), sizeof(MeetingPlace));
    numbers[words] = 1;
  }
  Array<int64_t> shared = device.array<int64_t>({numbers.size()});
  shared.from_host(numbers);
  others.sum(shared);
  numbers = shared.to_host();
  checked(place.ok() ? Result<>() : place.error());
  if (numbers[words] != others.size())
    raise(ErrorCode::NoDevice,
          "another rank has no NCCL, or no `cuda` device; all ranks need both");
  MeetingPlace all;
  std::memcpy(&all, numbers.data(), sizeof all);
  return all;
}

} // namespace

Group distributed::nccl(const Device &device, const Group &others,
                        std::chrono::milliseconds timeout) {
  requireNoCapture("wait for other ranks");
  if (others->size() == 1)
    return others;
  RecordingPause pause;
  int own = others->rank(), count = others->size();
  MeetingPlace place =
      agreeOn(device.shared()->meetingPlace(own), device, *others);
  auto ranks = checked(device.shared()->join({place, own, count, timeout}));
  return std::make_shared<Nccl>(device, std::move(ranks), own, count);
}
