#include "costate/mpi.h"

#include <mpi.h>

#include <thread>

using namespace costate;
using namespace costate::distributed;

namespace {

using Clock = std::chrono::steady_clock;
using Bytes = std::vector<std::byte>;

constexpr int largestCount = std::numeric_limits<int>::max();

/// Set when a rank was lost: MPI would wait for it at the end.
std::atomic<bool> isBroken = false;

/// Messages on their way, and the memory that they use.
struct Pending {
  std::vector<MPI_Request> requests;
  std::vector<Bytes> outgoing, incoming;
};

class Mpi : public Communicator {
public:
  Mpi(MPI_Comm given, std::chrono::milliseconds timeout) : timeout(timeout) {
    MPI_Comm_dup(given, &communicator);
    MPI_Comm_set_errhandler(communicator, MPI_ERRORS_RETURN);
    MPI_Comm_rank(communicator, &own);
    MPI_Comm_size(communicator, &count);
  }

  int rank() const override { return own; }
  int size() const override { return count; }

  void sum(AnyArray array) override {
    auto all = std::make_shared<Pending>();
    Bytes &bytes = all->incoming.emplace_back(array.bytes());
    array.read(bytes.data(), bytes.size());
    if (array.dtype() == DType::F16)
      addHalves(array, bytes);
    else {
      check(MPI_Iallreduce(MPI_IN_PLACE, bytes.data(),
                           checkedSize(array.size()), typeOf(array.dtype()),
                           MPI_SUM, communicator,
                           &all->requests.emplace_back()));
      wait(all);
    }
    array.write(bytes.data(), bytes.size());
  }

  std::function<void()> exchange(std::vector<Message> sends,
                                 std::vector<Message> receives) override {
    auto all = std::make_shared<Pending>();
    for (const Message &message : receives) {
      Bytes &bytes = all->incoming.emplace_back(message.array.bytes());
      check(MPI_Irecv(bytes.data(), checkedSize(bytes.size()), MPI_BYTE,
                      message.peer, 0, communicator,
                      &all->requests.emplace_back()));
    }
    for (const Message &message : sends) {
      Bytes &bytes = all->outgoing.emplace_back(message.array.bytes());
      message.array.read(bytes.data(), bytes.size());
      check(MPI_Isend(bytes.data(), checkedSize(bytes.size()), MPI_BYTE,
                      message.peer, 0, communicator,
                      &all->requests.emplace_back()));
    }
    return [this, all, receives] {
      wait(all);
      for (size_t k = 0; k < receives.size(); ++k)
        AnyArray(receives[k].array)
            .write(all->incoming[k].data(), all->incoming[k].size());
    };
  }

  void barrier() override {
    auto all = std::make_shared<Pending>();
    check(MPI_Ibarrier(communicator, &all->requests.emplace_back()));
    wait(all);
  }

private:
  [[noreturn]] void lose(const std::string &why) const {
    isBroken = true;
    throw Error(ErrorCode::RankLost, "rank " + std::to_string(own) + " of " +
                                         std::to_string(count) + ": " + why);
  }

  void check(int code) const {
    if (code == MPI_SUCCESS)
      return;
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    MPI_Error_string(code, text, &length);
    lose("MPI says: " + std::string(text, static_cast<size_t>(length)));
  }

  static int checkedSize(std::integral auto size) {
    if (!std::in_range<int>(size))
      throw Error(ErrorCode::BadArgument,
                  "MPI sends at most " + std::to_string(largestCount) +
                      " elements or bytes at once; use smaller arrays");
    return static_cast<int>(size);
  }

  void wait(const std::shared_ptr<Pending> &all) const {
    Clock::time_point end = Clock::now() + timeout;
    for (int done = 0;;) {
      check(MPI_Testall(static_cast<int>(all->requests.size()),
                        all->requests.data(), &done, MPI_STATUSES_IGNORE));
      if (done)
        return;
      if (Clock::now() > end) {
        new std::shared_ptr<Pending>(all); // MPI may write it at any time
        lose("another rank has not answered within " +
             std::to_string(timeout.count()) +
             " ms, or makes other calls than this one");
      }
      std::this_thread::yield();
    }
  }

  /// MPI has no such numbers: float, rounded once.
  void addHalves(const AnyArray &array, Bytes &bytes) const {
    std::vector<float> sums(static_cast<size_t>(array.size()));
    auto *halves = reinterpret_cast<f16 *>(bytes.data());
    std::copy_n(halves, sums.size(), sums.begin());
    auto all = std::make_shared<Pending>();
    check(MPI_Iallreduce(MPI_IN_PLACE, sums.data(), checkedSize(sums.size()),
                         MPI_FLOAT, MPI_SUM, communicator,
                         &all->requests.emplace_back()));
    wait(all);
    std::copy(sums.begin(), sums.end(), halves);
  }

  static MPI_Datatype typeOf(DType type) {
    switch (type) {
    case DType::Bool:
    case DType::U8:
      return MPI_UINT8_T;
    case DType::I8:
      return MPI_INT8_T;
    case DType::I16:
      return MPI_INT16_T;
    case DType::I32:
      return MPI_INT32_T;
    case DType::I64:
      return MPI_INT64_T;
    case DType::U16:
      return MPI_UINT16_T;
    case DType::U32:
      return MPI_UINT32_T;
    case DType::U64:
      return MPI_UINT64_T;
    case DType::F32:
    case DType::F16:
      return MPI_FLOAT;
    case DType::F64:
      return MPI_DOUBLE;
    }
    return MPI_BYTE;
  }

  std::chrono::milliseconds timeout;
  MPI_Comm communicator;
  int own = 0, count = 0;
};

} // namespace

static void finish() {
  int isFinished = 0;
  MPI_Finalized(&isFinished);
  if (!isFinished && !isBroken)
    MPI_Finalize();
}

static void begin() {
  int isInitialized = 0, provided = 0;
  MPI_Initialized(&isInitialized);
  if (isInitialized)
    return;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
  std::atexit(finish);
}

Group distributed::mpi(std::chrono::milliseconds timeout,
                       std::optional<int> communicator) {
  begin();
  return std::make_shared<Mpi>(
      communicator ? MPI_Comm_f2c(*communicator) : MPI_COMM_WORLD, timeout);
}
