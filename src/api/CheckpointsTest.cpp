#include "TemporaryFolder.h"
#include "api/TapeTest.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <thread>

using namespace costate;
using namespace costate::test;
using Values = std::vector<double>;

namespace {
/// The wave equation: next = 2 u - next + c^2 (u(i-1) - 2 u + u(i+1)).
class Waves {
public:
  Waves(const Device &device, int64_t n)
      : device(device), c(device.array<double>({n}, grad)),
        u(device.array<double>({n}, grad)), v(device.array<double>({n}, grad)),
        loss(device.array<double>({}, grad)) {}

  void start() {
    Values first, speeds;
    for (int64_t i = 0; i < u.size(0); ++i) {
      first.push_back(std::sin(0.3 * static_cast<double>(i)));
      speeds.push_back(0.3 + 0.001 * static_cast<double>(i % 100));
    }
    u.from_host(first);
    v.from_host(first);
    c.from_host(speeds);
    for (Array<double> *one : {&u, &v, &c})
      one->grad().fill(0);
    loss.fill(0);
  }
  void run(int64_t t) { t % 2 ? wave(v, u, c) : wave(u, v, c); }
  void end() { sum(u, loss); }
  /// Of c and of the states at the end.
  std::vector<Values> results() {
    return {c.grad().to_host(), u.grad().to_host(), v.grad().to_host(),
            u.to_host(),        v.to_host(),        loss.to_host()};
  }
  std::vector<Values> reversed(Tape &tape, int64_t steps, bool told = true) {
    start();
    record(tape, steps, told);
    tape.backward(loss);
    return results();
  }
  void record(Tape &tape, int64_t steps, bool told = true) {
    auto recording = tape.record();
    if (told)
      for (int64_t t : tape.steps(steps))
        run(t);
    for (int64_t t = 0; !told && t < steps; ++t)
      run(t);
    end();
  }

  Device device;
  Array<double> c, u, v, loss;
  Kernel wave = kernel("wave", [](ArrayRef<double, 1> u, ArrayRef<double, 1> v,
                                  ArrayRef<double, 1> c) {
    parallel(u.size(0), [&](Index i) {
      Index n = u.size(0);
      Expr<double> bent = u((i + 1) % n) - 2.0 * u(i) + u((i + n - 1) % n);
      v(i) = 2.0 * u(i) - v(i) + c(i) * c(i) * bent;
    });
  });
  Kernel sum = makeSum();
};

class Checkpointed : public Tapes {
protected:
  Checkpointed() { device = Device::open("cpu", {.threads = 1}); }
  uint64_t launches() { return device.statistics().primal_launches; }
};
} // namespace

TEST_F(Checkpointed, GiveTheGradientsOfATapeThatSavesAll) {
  Waves waves(device, 40);
  Tape all;
  for (int64_t steps : {1, 2, 3, 10, 137}) {
    all.clear();
    std::vector<Values> expected = waves.reversed(all, steps);
    for (size_t snapshots : {1, 2, 3, 7, 200})
      for (bool told : {true, false}) {
        Tape tape({.snapshots = snapshots});
        EXPECT_EQ(waves.reversed(tape, steps, told), expected)
            << steps << " steps, " << snapshots << " snapshots " << told;
      }
  }
}

TEST_F(Checkpointed, RunAsManyLaunchesAsTheBestSchedule) {
  Waves waves(device, 8);
  constexpr int64_t steps = 2048;
  for (auto [snapshots, best] : {std::pair{16, 7052.0}, {64, 4030.0}})
    for (auto [told, factor] : {std::pair{true, 1.05}, {false, 1.5}}) {
      Tape tape({.snapshots = static_cast<size_t>(snapshots)});
      device.reset_statistics();
      waves.reversed(tape, steps, told);
      EXPECT_LE(static_cast<double>(launches()), factor * best)
          << snapshots << " " << told;
      EXPECT_GE(static_cast<double>(launches()), best);
    }
}

TEST_F(Checkpointed, KeepTheirMemoryWithinWhatTheyPromise) {
  constexpr int64_t n = 10000, steps = 300;
  constexpr size_t state = 2 * 8 * n;
  Waves waves(device, n);
  for (bool told : {true, false}) {
    Tape tape({.snapshots = 10});
    waves.start();
    size_t before = device.current_bytes();
    device.reset_peak_bytes();
    waves.record(tape, steps, told);
    tape.backward(waves.loss);
    size_t most = device.peak_bytes() - before;
    EXPECT_LE(tape.report().peak_bytes, 11 * state + 100);
    EXPECT_LE(most, (10 + 2) * state + 4 * 81920) << told;
    EXPECT_LE(tape.report().peak_bytes, most);
    EXPECT_GE(tape.report().peak_bytes + 5000, 11 * state) << told;
  }
}

TEST_F(Checkpointed, StayWithinABudget) {
  constexpr int64_t n = 10000, steps = 300;
  Waves waves(device, n);
  Tape all;
  std::vector<Values> expected = waves.reversed(all, steps);
  all.clear();
  for (bool told : {true, false})
    for (size_t budget : {600'000, 1'000'000, 3'000'000}) {
      Tape tape({.budget = budget});
      waves.start();
      size_t before = device.current_bytes();
      device.reset_peak_bytes();
      waves.record(tape, steps, told);
      tape.backward(waves.loss);
      EXPECT_EQ(waves.results(), expected) << budget << " " << told;
      EXPECT_LE(tape.report().peak_bytes, budget);
      EXPECT_GE(tape.report().peak_bytes, budget / 2);
      // Memory comes in pages.
      EXPECT_LE(device.peak_bytes() - before, budget + budget / 20);
    }
}

TEST_F(Checkpointed, NameTheBytesThatTheyNeedAtLeast) {
  Waves waves(device, 10000);
  Tape tape({.budget = 100'000});
  waves.start();
  expectError(ErrorCode::OutOfMemory,
              {"budget of 97.66 KiB", "at least", "one snapshot"},
              [&] { waves.record(tape, 10); });
  tape.clear();
  Tape enough({.budget = 340'000});
  waves.reversed(enough, 10);
}

TEST_F(Checkpointed, ReverseAgainAndRecordOn) {
  Waves waves(device, 10);
  Tape all, some({.snapshots = 3});
  std::vector<std::vector<Values>> results;
  for (Tape *tape : {&all, &some}) {
    waves.start();
    waves.record(*tape, 20);
    tape->backward(waves.loss);
    results.push_back(waves.results());
    tape->backward(waves.loss);
    results.push_back(waves.results());
    waves.record(*tape, 11, false);
    tape->backward(waves.loss);
    results.push_back(waves.results());
    waves.u.fill(7);
    tape->backward(waves.loss);
    results.push_back(waves.results());
  }
  for (size_t k = 0; k < 4; ++k)
    EXPECT_EQ(results[k], results[k + 4]) << k;
}

TEST_F(Checkpointed, KeepSnapshotsElsewhere) {
  for (const char *name : {"cpu", "simt"}) {
    device = Device::open(name, {.threads = 1});
    Waves waves(device, 40);
    Tape all;
    std::vector<Values> expected = waves.reversed(all, 50);
    all.clear();
    size_t before = device.current_bytes();
    for (TapeOptions options :
         {TapeOptions{.snapshots = 4, .on_host = true},
          TapeOptions{.snapshots = 4, .folder = testing::TempDir()}}) {
      Tape tape(options);
      waves.start();
      waves.record(tape, 50);
      bool isHere = name == std::string("cpu") && options.folder.empty();
      EXPECT_EQ(device.current_bytes() > before, isHere) << name;
      tape.backward(waves.loss);
      EXPECT_EQ(waves.results(), expected) << name;
    }
  }
  expectError(ErrorCode::BadArgument, {"/no/such/folder", "make it"}, [] {
    Tape nowhere({.snapshots = 2, .folder = "/no/such/folder"});
  });
  std::optional<test::TemporaryFolder> place(std::in_place);
  const std::string folder = place->path;
  Tape gone({.snapshots = 2, .folder = folder});
  place.reset();
  Waves waves(device, 40);
  waves.start();
  expectError(ErrorCode::OutOfMemory, {folder, "give a folder"},
              [&] { waves.record(gone, 5); });
}

/// What is elsewhere leaves its room to others, not to copies of more steps.
TEST_F(Checkpointed, LeaveTheMemoryOfAGpuToOthers) {
  device = Device::open("simt", {.threads = 1});
  constexpr int64_t n = 20'000;
  constexpr size_t state = 2 * 8 * n, between = 4 << 20;
  Waves waves(device, n);
  Tape all;
  std::vector<Values> expected = waves.reversed(all, 120);
  all.clear();
  for (bool told : {true, false})
    for (TapeOptions options :
         {TapeOptions{.snapshots = 40, .on_host = true},
          TapeOptions{.snapshots = 40, .folder = testing::TempDir()}}) {
      Tape tape(options);
      size_t before = device.current_bytes();
      device.reset_peak_bytes();
      // Blocks add in any order.
      std::vector<Values> results = waves.reversed(tape, 120, told);
      for (size_t k = 0; k < results.size(); ++k)
        for (size_t i = 0; i < results[k].size(); ++i)
          ASSERT_NEAR(results[k][i], expected[k][i], 1e-9) << k << " " << i;
      EXPECT_LE(device.peak_bytes() - before, 4 * state + between) << told;
      EXPECT_GE(tape.report().peak_bytes, 20 * state) << told;
      tape.clear();
      EXPECT_EQ(device.current_bytes(), before);
    }
}

/// What cannot run again is kept where snapshots are.
TEST_F(Checkpointed, KeepResultsElsewhere) {
  constexpr int64_t n = 20'000;
  constexpr size_t array = 8 * n, between = 4 << 20;
  constexpr int steps = 80;
  for (const char *name : {"cpu", "simt"}) {
    device = Device::open(name, {.threads = 1});
    Array<double> a = device.array<double>({n}, grad),
                  b = device.array<double>({n}, grad),
                  total = device.array<double>({}, grad);
    Kernel bend =
        kernel("bend", [](ArrayRef<double, 1> a, ArrayRef<double, 1> b) {
          parallel(a.size(0), [&](Index i) { b(i) = sin(a(i)); });
        });
    Kernel mix =
        kernel("mix", [](ArrayRef<double, 1> a, ArrayRef<double, 1> b) {
          parallel(a.size(0), [&](Index i) { a(i) = 0.9 * a(i) * cos(b(i)); });
        });
    CustomLaunch custom{.name = "custom",
                        .reads = {a},
                        .writes = {b},
                        .primal = [&] { bend(a, b); },
                        .gradient = [&] { bend.grad(a, b); }};
    std::vector<Values> results;
    for (TapeOptions options :
         {TapeOptions{}, TapeOptions{.snapshots = 3, .on_host = true},
          TapeOptions{.snapshots = 3, .folder = testing::TempDir()}}) {
      Tape some(options);
      a.fill(0.5), b.fill(0), total.fill(0);
      a.grad().fill(0), b.grad().fill(0);
      size_t before = device.current_bytes();
      device.reset_peak_bytes();
      {
        auto recording = some.record();
        for (int k = 0; k < steps; ++k) {
          custom();
          mix(a, b);
        }
        sum(a, total);
      }
      some.backward(total);
      results.push_back(a.grad().to_host());
      EXPECT_EQ(results.back(), results.front()) << name;
      bool isElsewhere =
          !options.folder.empty() || (options.on_host && name[0] == 's');
      if (isElsewhere) {
        EXPECT_EQ(some.report().kept.size(), steps);
        EXPECT_LE(device.peak_bytes() - before, 8 * array + between) << name;
      }
    }
  }
}

TEST_F(Checkpointed, HoldWhatArraysHeldWhenSomethingThrows) {
  Kernel odd = kernel("odd", [](ArrayRef<double, 1> a) {
    parallel(a.size(0), [&](Index i) { a(i) = a(i) * a(i); });
  });
  for (Tape *tape : {&this->tape}) {
    *tape = Tape({.snapshots = 2});
    CustomLaunch fails{.name = "fails",
                       .reads = {x},
                       .writes = {y},
                       .primal = [&] { y.fill(2); },
                       .gradient = [] { throw std::runtime_error("no"); }};
    {
      auto recording = tape->record();
      for (int k = 0; k < 5; ++k)
        odd(x);
      fails();
      for (int k = 0; k < 5; ++k)
        odd(x);
      sum(y, loss);
      sum(x, loss);
    }
    Values before = x.to_host();
    EXPECT_THROW(tape->backward(loss), std::runtime_error);
    EXPECT_EQ(x.to_host(), before);
  }
}

TEST_F(Checkpointed, RefuseWhatContradicts) {
  expectError(ErrorCode::BadArgument, {"snapshot", "leave out"},
              [] { Tape({.snapshot = false, .snapshots = 3}); });
  for (TapeOptions nowhere :
       {TapeOptions{.on_host = true}, TapeOptions{.folder = "/tmp"}})
    expectError(ErrorCode::BadArgument,
                {"takes none", "give `snapshots` or `budget`"},
                [&] { Tape tape(nowhere); });
  Tape some({.snapshots = 3});
  expectError(ErrorCode::BadArgument, {"never_copy", "snapshots"},
              [&] { some.never_copy(x); });
  expectError(ErrorCode::BadArgument, {"-1 steps"},
              [&] { (void)some.steps(-1); });
}

TEST_F(Checkpointed, SayNothingTwice) {
  Kernel speaks = kernel("speaks", [](ArrayRef<double, 1> a) {
    parallel(a.size(0), [&](Index i) {
      a(i) = a(i) * a(i);
      IF (i == 0) {
        print("here");
      }
    });
  });
  Tape some({.snapshots = 1});
  testing::internal::CaptureStdout();
  {
    auto recording = some.record();
    for (int k = 0; k < 4; ++k)
      speaks(x);
    sum(x, loss);
  }
  some.backward(loss);
  std::string said = testing::internal::GetCapturedStdout();
  size_t lines =
      static_cast<size_t>(std::count(said.begin(), said.end(), '\n'));
  EXPECT_EQ(lines, 4u) << said;
}

TEST_F(Checkpointed, KeepWhatCannotRunAgain) {
  int runs = 0;
  CustomLaunch effect{.name = "effect",
                      .reads = {x},
                      .writes = {x},
                      .primal =
                          [&] {
                            Values values = x.to_host();
                            for (double &value : values)
                              value += ++runs;
                            x.from_host(values);
                          },
                      .gradient = [] {}};
  for (bool repeatable : {false, true}) {
    effect.repeatable = repeatable;
    runs = 0;
    Tape some({.snapshots = 2});
    {
      auto recording = some.record();
      for (int k = 0; k < 5; ++k)
        effect();
      sum(x, loss);
    }
    TapeReport report = some.report();
    EXPECT_EQ(report.kept.size(), repeatable ? 0u : 5u);
    if (!repeatable) {
      EXPECT_NE(report.kept[0].entry.find("custom launch `effect`"),
                std::string::npos);
    }
    some.backward(loss);
    EXPECT_EQ(runs > 50, repeatable);
  }
}

TEST_F(Checkpointed, TellTheirPlan) {
  Tape tape({.snapshots = 16});
  EXPECT_EQ(tape.report().steps_again, 0u);
  (void)tape.steps(2048);
  TapeReport plan = tape.report();
  EXPECT_EQ(plan.steps, 2048u);
  EXPECT_EQ(plan.snapshots, 16u);
  EXPECT_EQ(plan.steps_again, 7052u - 2047u);
}

/// A step may have many launches; those that no gradient looks at do not run
/// again when their step is reversed.
TEST_F(Checkpointed, TakeMarkedSteps) {
  Kernel both =
      kernel("both", [](ArrayRef<double, 1> a, ArrayRef<double, 1> b) {
        parallel(a.size(0), [&](Index i) { a(i) += 0.1 * sin(b(i)); });
      });
  std::vector<Values> results;
  for (size_t snapshots : {0, 1, 4}) {
    Tape tape({.snapshots = snapshots});
    x.fill(0.3), y.fill(0.7), loss.fill(0);
    x.grad().fill(0), y.grad().fill(0);
    {
      auto recording = tape.record();
      for (int k = 0; k < 30; ++k) {
        tape.step();
        both(x, y);
        both(y, x);
        both(x, y);
      }
      tape.step();
      sum(x, loss);
    }
    if (snapshots) {
      EXPECT_EQ(tape.report().steps, 31u);
    }
    device.reset_statistics();
    tape.backward(loss);
    if (snapshots == 4) {
      // 30 steps, 4 snapshots: 54 steps; two of three in those reversed.
      EXPECT_LE(launches(), 3 * 60u + 2 * 30u);
    }
    results.push_back(x.grad().to_host());
    results.push_back(y.grad().to_host());
  }
  for (size_t k = 2; k < 6; ++k)
    EXPECT_EQ(results[k], results[k % 2]);
}

/// Each of two recordings of the same arrays sees what the other one does.
TEST_F(Checkpointed, LeaveOtherRecordingsAlone) {
  Waves waves(device, 10);
  std::vector<Values> results;
  for (size_t snapshots : {0, 2})
    for (bool firstFirst : {true, false}) {
      Tape one({.snapshots = snapshots}), other({.snapshots = snapshots});
      waves.start();
      waves.record(one, 9);
      waves.record(other, 12, /*told=*/false);
      for (Tape *tape :
           {firstFirst ? &one : &other, firstFirst ? &other : &one, &one}) {
        tape->backward(waves.loss);
        for (const Values &values : waves.results())
          results.push_back(values);
      }
    }
  for (size_t k = 0, half = results.size() / 2; k < half; ++k)
    EXPECT_EQ(results[k + half], results[k]) << k;
}

TEST_F(Checkpointed, RefuseOtherThreadsWhatIsOld) {
  Tape some({.snapshots = 2});
  auto isRefused = [&](const std::function<void()> &use) {
    bool refused = false;
    std::thread([&] {
      try {
        use();
      } catch (const Error &error) {
        refused = error.code() == ErrorCode::BadArgument;
      }
    }).join();
    return refused;
  };
  int looked = 0;
  CustomLaunch looks{.name = "looks",
                     .reads = {z},
                     .writes = {z},
                     .primal = [] {},
                     .gradient =
                         [&] {
                           ++looked;
                           EXPECT_TRUE(isRefused([&] { (void)x.to_host(); }));
                           EXPECT_TRUE(isRefused([&] { x.fill(1); }));
                           EXPECT_TRUE(isRefused([&] { square(x, y); }));
                         }};
  {
    auto recording = some.record();
    square(x, y);
    square(y, x);
    looks();
    square(x, y);
    square(y, x);
    sum(x, loss);
  }
  some.backward(loss);
  EXPECT_EQ(looked, 1);
  EXPECT_FALSE(isRefused([&] { (void)x.to_host(); }));
  EXPECT_FALSE(isRefused([&] { x.fill(1); }));
}

TEST_F(Checkpointed, ReverseTangentLaunches) {
  Array<double> a = device.array<double>({10}, grad | dual);
  Kernel bend = kernel("bend", [](ArrayRef<double, 1> a) {
    parallel(a.size(0), [&](Index i) { a(i) = a(i) + 0.1 * sin(a(i)); });
  });
  Array<double> out = device.array<double>({}, grad | dual);
  std::vector<Values> results;
  for (size_t snapshots : {0, 1, 3}) {
    Tape tape({.snapshots = snapshots});
    a.fill(0.5), out.fill(0), a.dual().fill(1), a.grad().fill(0);
    {
      auto recording = tape.record();
      for (int k = 0; k < 7; ++k)
        k % 2 ? bend(a) : bend.jvp(a);
      sum(a, out);
    }
    tape.backward(out);
    results.push_back(a.grad().to_host());
    results.push_back(a.dual().to_host());
    results.push_back(a.to_host());
  }
  for (size_t k = 3; k < 9; ++k)
    EXPECT_EQ(results[k], results[k % 3]) << k;
}

/// Which work item gets which number is another one each time.
TEST_F(Checkpointed, KeepWhatIsLeftToChance) {
  device = Device::open("cpu", {.threads = 2});
  constexpr int64_t n = 20000;
  Array<double> from = device.array<double>({n}, grad),
                to = device.array<double>({n}, grad);
  Array<int> place = device.array<int>({n}), count = device.array<int>({});
  Array<double> total = device.array<double>({}, grad);
  Kernel number =
      kernel("number", [](ArrayRef<int, 0> count, ArrayRef<int, 1> place) {
        parallel(place.size(0),
                 [&](Index i) { place(i) = atomic_add(count(), 1); });
      });
  Kernel move =
      kernel("move", [](ArrayRef<int, 1> place, ArrayRef<double, 1> from,
                        ArrayRef<double, 1> to) {
        parallel(place.size(0), [&](Index i) { to(place(i)) = from(i); });
      });
  Kernel weigh =
      kernel("weigh", [](ArrayRef<double, 1> from, ArrayRef<double, 0> total) {
        parallel(from.size(0),
                 [&](Index i) { total() += cast<double>(i) * from(i); });
      });
  Values first(n);
  std::iota(first.begin(), first.end(), 0);
  from.from_host(first);
  Tape tape({.snapshots = 2});
  {
    auto recording = tape.record();
    for (int k = 0; k < 4; ++k) {
      count.fill(0);
      number(count, place);
      move(place, from, to);
      count.fill(0);
      number(count, place);
      move(place, to, from);
    }
    weigh(from, total);
  }
  EXPECT_EQ(tape.report().kept.size(), 8u);
  tape.backward(total);
  // The value k of `from` has come to the place whose number is its weight.
  Values gradient = from.grad().to_host(), last = from.to_host();
  for (int64_t i = 0; i < n; ++i)
    ASSERT_EQ(gradient[static_cast<size_t>(last[static_cast<size_t>(i)])],
              static_cast<double>(i));
}

TEST_F(Checkpointed, MakeRoomForStepsThatWriteMore) {
  constexpr int64_t n = 1000;
  Array<double> small = device.array<double>({n}, grad),
                big = device.array<double>({20 * n}, grad),
                total = device.array<double>({}, grad);
  Kernel bend = kernel("bend", [](ArrayRef<double, 1> a) {
    parallel(a.size(0), [&](Index i) { a(i) = a(i) + 0.1 * sin(a(i)); });
  });
  std::vector<Values> results;
  for (size_t budget : {0, 1'000'000}) {
    Tape tape({.budget = budget});
    small.fill(0.5), big.fill(0.25), total.fill(0);
    small.grad().fill(0), big.grad().fill(0);
    {
      auto recording = tape.record();
      for (int k = 0; k < 60; ++k) {
        bend(small);
        if (k >= 30)
          bend(big);
      }
      sum(small, total);
      sum(big, total);
    }
    tape.backward(total);
    if (budget) {
      EXPECT_LE(tape.report().peak_bytes, budget);
      EXPECT_GE(tape.report().peak_bytes, budget / 2);
    }
    results.push_back(small.grad().to_host());
    results.push_back(big.grad().to_host());
  }
  EXPECT_EQ(results[0], results[2]);
  EXPECT_EQ(results[1], results[3]);
}

TEST_F(Checkpointed, StayWithinABudgetWhereFunctionsFindArrays) {
  Kernel move =
      kernel("move", [](ArrayRef<double, 1> u, ArrayRef<double, 1> f) {
        parallel(u.size(0), [&](Index i) { u(i) = sin(u(i)) * f(i); });
      });
  Array<double> total = device.array<double>({}, grad);
  auto gradient = [&](TapeOptions options) {
    Array<double> u = device.array<double>({1000}, grad);
    Array<double> f = device.array<double>({1000}, grad);
    CustomLaunch quiet{.name = "quiet", .finds_arrays = true, .primal = [&] {
                         Kernel set = kernel("set", [](ArrayRef<double, 1> f) {
                           parallel(f.size(0), [&](Index i) { f(i) = 0.5; });
                         });
                         set(f);
                       }};
    u.fill(0.3), f.fill(0.1), total.fill(0);
    Tape some(options);
    {
      auto recording = some.record();
      for (int64_t t : some.steps(6)) {
        if (t == 1)
          quiet();
        if (t >= 1)
          move(u, f);
      }
      sum(u, total);
    }
    some.backward(total);
    if (options.budget) {
      EXPECT_LE(some.report().peak_bytes, options.budget);
    }
    return std::pair(u.grad().to_host(), f.grad().to_host());
  };
  auto expected = gradient({});
  size_t fits = 0;
  for (size_t budget = 8000; budget < 80000; budget += 2000)
    try {
      EXPECT_EQ(gradient({.budget = budget}), expected) << budget;
      ++fits;
    } catch (const Error &error) {
      EXPECT_EQ(error.code(), ErrorCode::OutOfMemory) << error.what();
    }
  EXPECT_GE(fits, 10u);
}

/// What an entry has written that was none after all is found by the next one.
TEST_F(Checkpointed, FindWhatAFailedEntryHasLeft) {
  CustomLaunch fails{.name = "fails",
                     .writes = {y},
                     .primal =
                         [&] {
                           y.fill(2);
                           throw std::runtime_error("no");
                         },
                     .gradient = [] {}};
  Tape some({.snapshots = 2});
  {
    auto recording = some.record();
    square(x, z);
    EXPECT_THROW(fails(), std::runtime_error);
    square(y, z);
    square(z, x);
    sum(x, loss);
  }
  some.backward(loss);
  EXPECT_EQ(y.grad().to_host(), Values(10, 4 * 8.0));
}

namespace {
/// s(t + 1) = sin(s(t)), of an array that has all times; in front of Waves.
class TimeIndexed : public Checkpointed {
protected:
  static constexpr int64_t times = 60, n = 40;
  Array<double> s = device.array<double>({times + 1, n}, grad);
  Waves waves{device, n};
  Kernel last =
      kernel("last", [](ArrayRef<double, 2> s, ArrayRef<double, 0> loss) {
        parallel(s.size(1), [&](Index i) {
          loss() += s(s.size(0) - 1, i) * s(s.size(0) - 1, i);
        });
      });
  Kernel copy =
      kernel("copy", [](ArrayRef<double, 2> s, ArrayRef<double, 1> u) {
        parallel(s.size(1), [&](Index i) { u(i) += s(s.size(0) - 1, i); });
      });

  void start() {
    waves.start();
    Values first;
    for (int64_t k = 0; k < s.size(); ++k)
      first.push_back(0.01 * static_cast<double>(k));
    s.from_host(first);
    s.grad().fill(0);
  }
  void indexed() {
    for (int t = 0; t < times; ++t)
      step(s, t);
  }
  void inPlace(int64_t steps) {
    for (int64_t t = 0; t < steps; ++t)
      waves.run(t);
  }
  std::vector<Values> results() {
    std::vector<Values> all = waves.results();
    all.push_back(s.grad().to_host());
    all.push_back(s.to_host());
    return all;
  }
  /// What `use` does with a `Tape` of these options.
  std::vector<Values> of(TapeOptions options,
                         const std::function<void(Tape &)> &use) {
    Tape tape(options);
    start();
    use(tape);
    return results();
  }
  void expectSame(const std::function<void(Tape &)> &use) {
    std::vector<Values> expected = of({}, use);
    for (TapeOptions options :
         {TapeOptions{.snapshots = 1}, TapeOptions{.snapshots = 4},
          TapeOptions{.budget = 200'000}})
      EXPECT_EQ(of(options, use), expected) << options.snapshots;
  }
};
} // namespace

TEST_F(TimeIndexed, NeedsNoSnapshots) {
  auto use = [&](Tape &tape) {
    {
      auto recording = tape.record();
      for (int64_t t : tape.steps(times))
        step(s, static_cast<int>(t));
      last(s, waves.loss);
    }
    EXPECT_EQ(tape.report().bytes, 0u);
    EXPECT_EQ(tape.report().steps_again, 0u);
    tape.backward(waves.loss);
    EXPECT_EQ(tape.report().peak_bytes, 0u);
    if (tape.report().snapshots) {
      EXPECT_EQ(tape.report().steps, times + 1);
    }
  };
  std::vector<Values> expected = of({}, use);
  for (TapeOptions options :
       {TapeOptions{.snapshots = 1}, TapeOptions{.budget = 1}}) {
    device.reset_statistics();
    EXPECT_EQ(of(options, use), expected);
    EXPECT_EQ(launches(), times + 1);
  }
}

TEST_F(TimeIndexed, MayBeFollowedByWhatOverwrites) {
  for (bool told : {true, false})
    expectSame([&](Tape &tape) {
      {
        auto recording = tape.record();
        if (told)
          (void)tape.steps(times + 1 + 30);
        indexed();
        copy(s, waves.u);
        inPlace(30);
        waves.end();
      }
      tape.backward(waves.loss);
      tape.backward(waves.loss);
    });
}

TEST_F(TimeIndexed, MayBeRunTwice) {
  expectSame([&](Tape &tape) {
    {
      auto recording = tape.record();
      indexed();
      last(s, waves.loss);
      indexed();
      last(s, waves.loss);
    }
    tape.backward(waves.loss);
  });
}

/// By the host, by a launch, and by another thread, none of them recorded.
TEST_F(TimeIndexed, MayBeOverwrittenOutside) {
  for (int by = 0; by < 4; ++by)
    expectSame([&](Tape &tape) {
      {
        auto recording = tape.record();
        indexed();
        last(s, waves.loss);
      }
      if (by == 0)
        s.fill(0.5);
      else if (by == 1)
        step(s, times / 2);
      else if (by == 2)
        std::thread([&] { s.fill(0.25); }).join();
      tape.backward(waves.loss);
      {
        auto recording = tape.record();
        waves.end();
        inPlace(9);
        waves.end();
      }
      if (by == 3)
        s.fill(0.75);
      tape.backward(waves.loss);
      waves.u.fill(0.3);
      tape.backward(waves.loss);
    });
}

/// While the pass of one recording is under way, arrays hold old values, which
/// another one must not take for new ones.
TEST_F(TimeIndexed, IsNotConfusedByOtherRecordings) {
  expectSame([&](Tape &tape) {
    Tape other({.snapshots = 2});
    {
      auto recording = other.record();
      inPlace(11);
      step(s, 3);
      inPlace(4);
      waves.end();
    }
    {
      auto recording = tape.record();
      indexed();
      copy(s, waves.u);
    }
    other.backward(waves.loss);
    {
      auto recording = tape.record();
      inPlace(12);
      waves.end();
    }
    other.backward(waves.loss);
    tape.backward(waves.loss);
  });
}

TEST_F(TimeIndexed, CountsTheStepsOfAll) {
  Tape tape({.snapshots = 3});
  start();
  std::vector<size_t> told;
  {
    auto recording = tape.record();
    for (int64_t t : tape.steps(20)) {
      step(s, static_cast<int>(t));
      waves.run(t);
    }
    waves.end();
  }
  EXPECT_EQ(tape.report().steps, 21u);
  tape.backward(waves.loss, {.progress = [&](size_t done, size_t all) {
                  EXPECT_EQ(all, 21u);
                  told.push_back(done);
                }});
  EXPECT_TRUE(std::ranges::is_sorted(told));
  EXPECT_EQ(told.back(), 21u);
}

TEST_F(TimeIndexed, TellsOfEachStepThatDoesNotRunAgain) {
  Tape tape({.snapshots = 3});
  start();
  {
    auto recording = tape.record();
    for (int64_t t : tape.steps(10))
      step(s, static_cast<int>(t));
    last(s, waves.loss);
  }
  std::vector<size_t> told;
  tape.backward(waves.loss, {.progress = [&](size_t done, size_t all) {
                  EXPECT_EQ(all, 11u);
                  told.push_back(done);
                }});
  EXPECT_EQ(told, (std::vector<size_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
}
