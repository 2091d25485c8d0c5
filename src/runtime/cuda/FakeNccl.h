#pragma once
/// NCCL without GPUs, for tests: ranks of one FakeCuda.

#include "runtime/cuda/FakeCuda.h"
#include "runtime/cuda/NcclApi.h"

namespace costate::runtime::cuda {

struct CommunicatorObject {
  int rank = 0, size = 1;
  Stream stream = nullptr; ///< that it was used on last
};

/// One at a time.
class FakeNccl {
public:
  FakeNccl() { fake = this; }
  ~FakeNccl() { fake = nullptr; }
  FakeNccl(const FakeNccl &) = delete;

  const NcclApi &api() const { return functions; }

  std::atomic<NcclStatus> state = success; ///< that all ranks are asked for
  std::atomic<int> abandoned = 0;
  std::atomic<size_t> live = 0; ///< communicators

private:
  using Bytes = std::vector<std::byte>;

  /// Runs the stream of the sender until it has sent.
  static Bytes take(int from, int to) {
    std::deque<Bytes> &waiting = fake->mail[{from, to}];
    FakeCuda::run(fake->ranks[from]->stream, [&] { return !waiting.empty(); });
    if (waiting.empty())
      return {};
    Bytes bytes = std::move(waiting.front());
    waiting.pop_front();
    return bytes;
  }
  static void put(int from, int to, const void *data, size_t bytes) {
    auto *first = static_cast<const std::byte *>(data);
    fake->mail[{from, to}].emplace_back(first, first + bytes);
  }
  static void remove(Communicator communicator) {
    --fake->live;
    delete communicator;
  }
  static void add(Communicator own, const float *from, float *to,
                  size_t count) {
    for (int peer = 0; peer < own->size; ++peer)
      if (peer != own->rank)
        put(own->rank, peer, from, 4 * count);
    std::vector<float> sums(from, from + count);
    for (int peer = 0; peer < own->size; ++peer)
      if (peer != own->rank) {
        Bytes bytes = take(peer, own->rank);
        for (size_t k = 0; 4 * k < bytes.size(); ++k)
          sums[k] += reinterpret_cast<const float *>(bytes.data())[k];
      }
    std::ranges::copy(sums, to);
  }
  static NcclApi makeApi();

  static inline FakeNccl *fake = nullptr;
  std::map<int, Communicator> ranks;
  std::map<std::pair<int, int>, std::deque<Bytes>> mail;
  const NcclApi functions = makeApi();
};

inline NcclApi FakeNccl::makeApi() {
  NcclApi api;
  api.join = [](Communicator *made, int size, MeetingPlace, int rank) {
    *made = fake->ranks[rank] = new CommunicatorObject{rank, size};
    ++fake->live;
    return success;
  };
  api.leave = [](Communicator communicator) {
    remove(communicator);
    return success;
  };
  api.abandon = [](Communicator communicator) {
    ++fake->abandoned;
    remove(communicator);
    return success;
  };
  api.state = [](Communicator, NcclStatus *status) {
    *status = fake->state;
    return success;
  };
  api.beginGroup = [] { return success; };
  api.endGroup = [] { return success; };
  api.send = [](const void *from, size_t count, NcclType, int peer,
                Communicator own, Stream stream) {
    own->stream = stream;
    FakeCuda::append(stream, [=] { put(own->rank, peer, from, count); });
    return success;
  };
  api.receive = [](void *to, size_t, NcclType, int peer, Communicator own,
                   Stream stream) {
    FakeCuda::append(stream, [=] {
      Bytes bytes = take(peer, own->rank);
      std::ranges::copy(bytes, static_cast<std::byte *>(to));
    });
    return success;
  };
  api.sum = [](const void *from, void *to, size_t count, NcclType,
               NcclOperation, Communicator own, Stream stream) {
    own->stream = stream;
    FakeCuda::append(stream, [=] {
      add(own, static_cast<const float *>(from), static_cast<float *>(to),
          count);
    });
    return success;
  };
  api.text = [](NcclStatus) { return "a fake error"; };
  return api;
}

} // namespace costate::runtime::cuda
