/// One rank of several under mpirun: gradients through halos beside those of
/// the same domain on one rank. Prints `passed`, or what is wrong. With
/// `lost`: rank 1 stops answering; with `kill`: it ends. COSTATE_DEVICE=cuda:
/// each rank of a host has a GPU of its own, and NCCL connects them.

#include "conformance/HaloKernels.h"
#include "costate/mpi.h"

#include <csignal>
#include <cstring>
#include <iostream>
#include <thread>

using namespace costate;
using namespace costate::distributed;
using costate::test::neighbours, costate::test::squares;

using Values = std::vector<double>;
constexpr int rows = 12, columns = 3;

static const Device &deviceOfTests() {
  const char *name = std::getenv("COSTATE_DEVICE");
  static Device device = Device::open(name ? name : "cpu", {.threads = 1});
  return device;
}

static Group connected(std::chrono::milliseconds timeout) {
  Group ranks = mpi(timeout);
  const Device &device = deviceOfTests();
  return device.name() == "cuda" ? nccl(device, ranks, timeout) : ranks;
}

/// The gradient of all rows, on all ranks.
static Values gradientOn(const Group &group, int64_t width, bool periodic) {
  const Device &device = deviceOfTests();
  int64_t first = group->rank() * rows / group->size();
  int64_t own = (group->rank() + 1) * rows / group->size() - first;
  auto make = [&] {
    return device.array<double>({own + 2 * width, columns}, grad);
  };
  Array<double> u = make(), v = make(), loss = device.array<double>({}, grad);
  Values start(static_cast<size_t>(u.size()));
  for (int64_t k = 0; k < own * columns; ++k)
    start[static_cast<size_t>(width * columns + k)] =
        std::sin(double(first * columns + k));
  u.from_host(start);
  Halo before(u, 0, width, periodic, group),
      after(v, 0, width, periodic, group);
  Kernel step = neighbours(), measure = squares();
  Tape tape;
  {
    auto recording = tape.record();
    before();
    step(u, v, width);
    after.start();
    after.finish();
    step(v, u, width);
    measure(u, loss, width);
  }
  tape.backward(loss);
  Values slopes = u.grad().to_host(), all(rows * columns);
  std::copy(slopes.begin() + width * columns, slopes.end() - width * columns,
            all.begin() + first * columns);
  Array<double> shared = device.array<double>({rows * columns});
  shared.from_host(all);
  sum_over_ranks(shared, group);
  return shared.to_host();
}

template <class T>
static bool sums(const Group &group, SumOptions options = {}) {
  Array<T> x = deviceOfTests().array<T>({3});
  x.fill(T(group->rank() + 1));
  sum_over_ranks(x, group, options);
  int expected = group->size() * (group->size() + 1) / 2;
  return x.to_host()[2] == T(expected);
}

static std::string problem(const Group &group) {
  Group alone = in_process(1).front();
  for (int64_t width = 1; width <= 3; ++width)
    for (bool periodic : {false, true}) {
      Values found = gradientOn(group, width, periodic);
      Values expected = gradientOn(alone, width, periodic);
      for (size_t k = 0; k < found.size(); ++k)
        if (std::abs(found[k] - expected[k]) > 1e-14)
          return "the gradient differs";
    }
  if (!(sums<f16>(group) && sums<float>(group) && sums<int8_t>(group) &&
        sums<uint16_t>(group, {.ordered = true}) && sums<int64_t>(group)))
    return "a sum differs";
  group->barrier();
  return "";
}

/// Rank 1 goes, the others say what they get.
static void lose(const Group &group, bool kill) {
  Array<double> u = deviceOfTests().array<double>({4});
  Halo halo(u, 0, 1, true, group);
  halo();
  if (group->rank() == 1 && kill)
    std::raise(SIGKILL);
  if (group->rank() == 1)
    std::this_thread::sleep_for(std::chrono::seconds(4));
  else
    halo();
  u.to_host();
}

int main(int count, char **arguments) {
  bool loses = count > 1;
  if (const char *rank = std::getenv("OMPI_COMM_WORLD_LOCAL_RANK"))
    setenv("CUDA_VISIBLE_DEVICES", rank, 0);
  try {
    Group group = connected(std::chrono::milliseconds(loses ? 1000 : 30000));
    if (loses)
      lose(group, std::strcmp(arguments[1], "kill") == 0);
    std::string wrong = loses ? "" : problem(group);
    if (!loses)
      std::cout << (wrong.empty() ? "passed" : wrong) << std::endl;
  } catch (const Error &error) {
    bool isLost = error.code() == ErrorCode::RankLost;
    std::cout << (isLost ? "RankLost " : "") << error.what() << std::endl;
    std::_Exit(0);
  }
  return 0;
}
