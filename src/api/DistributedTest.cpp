/// Halos, sums and parts of ranks that are threads: their values, gradients and
/// tangents on each device, and what is refused on all of them.

#include "conformance/HaloKernels.h"

#include <gtest/gtest.h>

#include <numeric>
#include <thread>

using namespace costate;
using namespace costate::distributed;
using costate::test::neighbours, costate::test::squares;

namespace {
using Values = std::vector<double>;
using Body = std::function<void(Group, Device)>;

class Distributed : public testing::TestWithParam<const char *> {
protected:
  /// What each rank has thrown, or nothing.
  static std::vector<std::string>
  run(int size, const Body &body,
      std::chrono::milliseconds timeout = std::chrono::seconds(20)) {
    std::vector<Group> groups = in_process(size, timeout);
    std::vector<std::string> errors(static_cast<size_t>(size));
    std::vector<std::thread> threads;
    for (size_t rank = 0; rank < errors.size(); ++rank)
      threads.emplace_back(
          [&body, &errors, rank, group = std::move(groups[rank])]() mutable {
            try {
              body(std::move(group), Device::open(GetParam(), {.threads = 1}));
            } catch (const Error &error) {
              errors[rank] =
                  std::to_string(static_cast<int>(error.code())) + error.what();
            }
          });
    for (std::thread &thread : threads)
      thread.join();
    return errors;
  }

  static void expectNone(const std::vector<std::string> &errors) {
    for (const std::string &error : errors)
      EXPECT_EQ(error, "");
  }
  static void expectAll(const std::vector<std::string> &errors, ErrorCode code,
                        const std::string &part) {
    for (const std::string &error : errors) {
      EXPECT_TRUE(error.starts_with(std::to_string(static_cast<int>(code))))
          << error;
      EXPECT_NE(error.find(part), std::string::npos) << error;
    }
  }
};

constexpr int rows = 12, columns = 3;

/// Two steps with halos; what a rank has of the gradient, and the loss.
struct Domain {
  Domain(const Group &group, Device device, int64_t width, bool periodic)
      : group(group), device(std::move(device)), width(width),
        first(group->rank() * rows / group->size()),
        own((group->rank() + 1) * rows / group->size() - first),
        u(array(own + 2 * width)), v(array(own + 2 * width)),
        loss(this->device.array<double>({}, grad | dual)),
        halos{Halo(u, 0, width, periodic, group),
              Halo(v, 0, width, periodic, group)} {
    Values start(static_cast<size_t>(u.size()));
    for (int64_t i = 0; i < own; ++i)
      for (int64_t j = 0; j < columns; ++j)
        start[static_cast<size_t>((i + width) * columns + j)] =
            std::sin(double((first + i) * columns + j));
    u.from_host(start);
  }
  Array<double> array(int64_t extent) const {
    return device.array<double>({extent, columns}, grad | dual);
  }
  Values owned(const Array<double> &array) const {
    Values all = array.to_host();
    return {all.begin() + width * columns, all.end() - width * columns};
  }

  Group group;
  Device device;
  int64_t width, first, own;
  Array<double> u, v, loss;
  Halo halos[2];
};

/// A step and its gradient by hand; the halo in two parts, or not.
void stepAndBack(const Kernel &step, Domain &domain, bool inParts) {
  const Halo &halo = domain.halos[0];
  if (inParts)
    halo.start(), halo.finish();
  else
    halo();
  step(domain.u, domain.v, domain.width);
  domain.v.grad().fill(1);
  step.grad(domain.u, domain.v, domain.width);
  if (inParts)
    halo.finish_grad(), halo.start_grad();
  else
    halo.grad();
}
} // namespace

INSTANTIATE_TEST_SUITE_P(On, Distributed, testing::Values("cpu", "simt"),
                         [](const auto &info) {
                           return std::string(info.param);
                         });

TEST_P(Distributed, GradientsAndTangentsAreThoseOfOneRank) {
  Kernel step = neighbours(), measure = squares();
  for (int64_t width = 1; width <= 3; ++width)
    for (bool periodic : {false, true}) {
      Values alone;
      double tangentAlone = 0;
      for (int size : {1, 2, 4}) {
        Values gradient(rows * columns);
        std::vector<double> tangents(static_cast<size_t>(size));
        expectNone(run(size, [&](Group group, Device device) {
          Domain domain(group, device, width, periodic);
          Tape tape({.snapshots = size == 4 ? size_t(1) : 0});
          {
            auto recording = tape.record();
            domain.halos[0]();
            step(domain.u, domain.v, width);
            domain.halos[1].start();
            domain.halos[1].finish();
            step(domain.v, domain.u, width);
            measure(domain.u, domain.loss, width);
          }
          tape.backward(domain.loss);
          Values own = domain.owned(domain.u.grad());
          std::copy(own.begin(), own.end(),
                    gradient.begin() + domain.first * columns);
          Domain forward(group, device, width, periodic);
          forward.u.dual().fill(1);
          forward.halos[0].jvp();
          step.jvp(forward.u, forward.v, width);
          forward.halos[1].start_jvp();
          forward.halos[1].finish_jvp();
          step.jvp(forward.v, forward.u, width);
          measure.jvp(forward.u, forward.loss, width);
          sum_over_ranks(forward.loss.dual(), group);
          tangents[static_cast<size_t>(group->rank())] =
              forward.loss.dual().to_host()[0];
        }));
        if (size == 1)
          alone = gradient, tangentAlone = tangents[0];
        for (size_t i = 0; i < gradient.size(); ++i)
          EXPECT_NEAR(gradient[i], alone[i], 1e-14);
        for (double tangent : tangents)
          EXPECT_NEAR(tangent, tangentAlone, 1e-13 * std::abs(tangentAlone));
      }
      if (periodic) {
        double sum = 0;
        for (double one : alone)
          sum += one;
        EXPECT_NEAR(sum, tangentAlone, 1e-12 * std::abs(sum));
      }
    }
}

TEST_P(Distributed, AllReduceIsItsOwnAdjoint) {
  expectNone(run(3, [](Group group, Device device) {
    Array<double> x = device.array<double>({2}, grad | dual);
    x.fill(group->rank() + 1);
    for (bool ordered : {false, true}) {
      AllReduce all(x, group, {.ordered = ordered});
      x.fill(group->rank() + 1);
      x.dual().fill(1);
      all.jvp();
      EXPECT_EQ(x.to_host(), Values({6, 6}));
      EXPECT_EQ(x.dual().to_host(), Values({3, 3}));
      x.grad().fill(group->rank());
      all.grad();
      EXPECT_EQ(x.grad().to_host(), Values({3, 3}));
    }
    AllReduce once(x, group, {.replicated = true});
    x.grad().fill(5);
    once.grad();
    EXPECT_EQ(x.grad().to_host(), Values({5, 5}));
    x.grad().fill(1);
    sum_gradients({x}, group);
    EXPECT_EQ(x.grad().to_host(), Values({3, 3}));
  }));
}

TEST_P(Distributed, ScatterAndGatherAreAdjoints) {
  expectNone(run(3, [](Group group, Device device) {
    Array<float> part =
        device.array<float>({2 + group->rank() % 2, 2}, costate::grad);
    Array<float> whole;
    if (group->rank() == 1) {
      whole = device.array<float>({7, 2}, costate::grad);
      std::vector<float> numbers(14);
      std::iota(numbers.begin(), numbers.end(), 0.0f);
      whole.from_host(numbers);
      whole.grad().fill(1);
    }
    Scatter scatter(whole, part, group, 1);
    Gather gather(part, whole, group, 1);
    scatter();
    EXPECT_EQ(
        part.to_host()[0],
        std::vector<float>({0, 4, 10})[static_cast<size_t>(group->rank())]);
    gather();
    gather.grad();
    EXPECT_EQ(part.grad().to_host()[0], 1);
    scatter.grad();
    EXPECT_EQ(part.grad().to_host()[0], 0);
    if (whole) {
      EXPECT_EQ(whole.to_host()[13], 13);
      EXPECT_EQ(whole.grad().to_host(), std::vector<float>(14, 1));
    }
  }));
}

/// Engines of the host send at each replay, which a GPU cannot ask for.
TEST_P(Distributed, GraphsOfCpusRepeatExchanges) {
  Kernel step = neighbours();
  auto errors = run(3, [&](Group group, Device device) {
    for (bool inParts : {false, true}) {
      Domain expected(group, device, 1, true), found(group, device, 1, true);
      Graph graph = device.capture([&] { stepAndBack(step, found, inParts); });
      for (int t = 0; t < 2; ++t) {
        stepAndBack(step, expected, false);
        graph.replay();
        EXPECT_EQ(found.v.to_host(), expected.v.to_host());
        EXPECT_EQ(found.u.grad().to_host(), expected.u.grad().to_host());
        for (Domain *one : {&expected, &found})
          one->u.from_host(one->v.to_host());
      }
    }
  });
  if (GetParam() == std::string("cpu"))
    expectNone(errors);
  else
    expectAll(errors, ErrorCode::CannotCapture,
              "cannot repeat the exchange of a halo");
}

TEST_P(Distributed, GraphsOfCpusRepeatSums) {
  auto errors = run(3, [&](Group group, Device device) {
    Array<double> x = device.array<double>({2}, grad);
    for (bool ordered : {false, true}) {
      AllReduce sum(x, group, {.ordered = ordered});
      Graph graph = device.capture([&] {
        sum();
        sum.grad();
      });
      x.fill(1);
      x.grad().fill(2);
      graph.replay();
      graph.replay();
      EXPECT_EQ(x.to_host(), Values({9, 9}));
      EXPECT_EQ(x.grad().to_host(), Values({18, 18}));
    }
  });
  if (GetParam() == std::string("cpu"))
    expectNone(errors);
  else
    expectAll(errors, ErrorCode::CannotCapture, "a sum over ranks");
}

TEST_P(Distributed, BothPartsOfAnExchangeStandInOneGraph) {
  auto with = [](const std::function<void(const Halo &, const Device &)> &use) {
    return run(1, [use](Group group, Device device) {
      Array<double> u = device.array<double>({6}, grad);
      use(Halo(u, 0, 1, true, group), device);
    });
  };
  expectAll(with([](const Halo &halo, const Device &device) {
              (void)device.capture([&] { halo.start(); });
            }),
            ErrorCode::CannotCapture, "not finished there");
  expectAll(with([](const Halo &halo, const Device &device) {
              halo.start();
              (void)device.capture([&] { halo.finish(); });
            }),
            ErrorCode::CannotCapture, "in different places");
  expectAll(with([](const Halo &halo, const Device &device) {
              EXPECT_THROW((void)device.capture([&] { halo.start(); }), Error);
              halo.start();
              halo.finish();
              halo.start_grad();
            }),
            ErrorCode::BadArgument, "comes after that of its finish");
}

TEST_P(Distributed, OnlyGpusHaveNccl) {
  expectAll(run(2, [](Group group, Device device) { nccl(device, group); }),
            ErrorCode::BadArgument, "only `cuda` sends");
}

TEST_P(Distributed, RefuseOnAllRanksWhatDoesNotFit) {
  expectAll(run(3,
                [](Group group, Device device) {
                  auto u = device.array<double>({9, 2 + group->rank() / 2});
                  Halo(u, 0, 1, false, group);
                }),
            ErrorCode::BadArgument, "rank 2 asks for a halo of width 1");
  expectAll(run(2,
                [](Group group, Device device) {
                  auto u = device.array<double>({10 - 3 * group->rank()});
                  Halo(u, 0, 3, true, group);
                }),
            ErrorCode::BadArgument, "thinner than the halo");
  expectAll(run(2,
                [](Group group, Device device) {
                  auto u =
                      device.array<double>({4}, group->rank() ? grad : none);
                  AllReduce(u, group);
                }),
            ErrorCode::BadArgument, "with gradients");
}

TEST_P(Distributed, FindARankThatIsLost) {
  auto errors = run(3, [](Group group, Device device) {
    auto u = device.array<double>({4});
    Halo halo(u, 0, 1, true, group);
    halo();
    if (group->rank() == 1)
      throw Error(ErrorCode::KernelFailed, "of the user");
    halo();
  });
  expectAll({errors[0], errors[2]}, ErrorCode::RankLost, "has left");
  errors = run(
      2,
      [](Group group, Device device) {
        auto u = device.array<double>({4});
        Halo halo(u, 0, 1, true, group);
        if (group->rank() == 0)
          halo();
        else
          std::this_thread::sleep_for(std::chrono::milliseconds(600));
      },
      std::chrono::milliseconds(200));
  expectAll({errors[0]}, ErrorCode::RankLost, "within 200 ms");
}
