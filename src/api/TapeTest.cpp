#include "conformance/Errors.h"
#include "costate/costate.h"
#include "costate/syntax.h"

#include <atomic>
#include <cmath>
#include <sstream>
#include <thread>

using namespace costate;
using costate::test::expectError;

namespace {
class Tapes : public testing::Test {
protected:
  Device device = Device::open("cpu", {.threads = 2});
  Array<double> x = device.array<double>({10}, grad);
  Array<double> y = device.array<double>({10}, grad);
  Array<double> z = device.array<double>({10}, grad);
  Array<double> loss = device.array<double>({}, grad);
  Tape tape;

  Kernel square =
      kernel("square", [](ArrayRef<double, 1> from, ArrayRef<double, 1> to) {
        parallel(from.size(0), [&](Index i) { to(i) = from(i) * from(i); });
      });
  Kernel sum =
      kernel("sum", [](ArrayRef<double, 1> from, ArrayRef<double, 0> total) {
        parallel(from.size(0), [&](Index i) { total() += from(i); });
      });
  /// s(t + 1) = sin(s(t))
  Kernel step = kernel("step", [](ArrayRef<double, 2> s, Scalar<int> t) {
    parallel(s.size(1), [&](Index i) { s(t + 1, i) = sin(s(t, i)); });
  });

  void SetUp() override { x.fill(3); }
};
} // namespace

TEST_F(Tapes, ReverseSeveralLaunches) {
  {
    auto recording = tape.record();
    square(x, y);
    square(y, z);
    sum(z, loss);
  }
  EXPECT_EQ(tape.size(), 3u);
  z.grad().fill(99); // leftovers are cleared
  for (int round = 1; round <= 2; ++round) {
    tape.backward(loss);
    EXPECT_DOUBLE_EQ(x.grad().to_host()[4], round * 4 * 27);
  }
  square(x, y); // not recorded
  EXPECT_EQ(tape.size(), 3u);
  tape.clear();
  EXPECT_EQ(tape.size(), 0u);
}

TEST_F(Tapes, NameALossThatTheyDoNotCompute) {
  expectError(ErrorCode::BadArgument, {"nothing is recorded"},
              [&] { tape.backward(loss); });
  {
    auto recording = tape.record();
    square(x, y);
  }
  expectError(ErrorCode::BadArgument, {"nothing on the tape writes"},
              [&] { tape.backward(loss); });
}

TEST_F(Tapes, TakeTheSeedsOfTheUser) {
  {
    auto recording = tape.record();
    square(x, y);
  }
  y.grad().fill(2);
  tape.backward();
  EXPECT_DOUBLE_EQ(x.grad().to_host()[0], 12);
}

/// d sum(x^4) / dx, where y is overwritten in between.
TEST_F(Tapes, KeepWhatALaunchOverwrites) {
  {
    auto recording = tape.record();
    square(x, y);
    square(y, z);
    square(x, y);
    sum(z, loss);
  }
  TapeReport report = tape.report();
  ASSERT_EQ(report.copies.size(), 1u);
  EXPECT_EQ(report.copies[0].bytes, 80u);
  EXPECT_EQ(report.bytes, 80u);
  EXPECT_EQ(report.entries, 4u);
  std::ostringstream text;
  text << report;
  for (const char *part :
       {"f64 array of shape (10)", "argument 1 of kernel `square`",
        "(entry 2 of the recording)", "overwritten by kernel `square`",
        "(entry 3 of the recording)", "1 copies, 80 bytes"})
    EXPECT_NE(text.str().find(part), std::string::npos) << text.str();
  for (int round = 1; round <= 3; ++round) {
    tape.backward(loss);
    EXPECT_DOUBLE_EQ(x.grad().to_host()[0], round * 4 * 27);
    EXPECT_EQ(y.to_host()[0], 9);
  }
}

TEST_F(Tapes, KeepWhatTheHostOverwrites) {
  Array<double> more = device.array<double>({10});
  {
    auto recording = tape.record();
    square(x, y);
    x.fill(2);
    square(x, z); // its x has no gradient any more: a constant
    sum(y, loss);
    sum(z, loss);
  }
  x.from_host(std::vector<double>(10, 7)); // needed by entry 3
  EXPECT_EQ(tape.report().copies.size(), 2u);
  x.mutable_data()[0] = 8; // nobody needs the 7
  EXPECT_EQ(tape.report().copies.size(), 2u);
  EXPECT_NE(tape.report().copies[1].overwritten_by.find("TapeTest.cpp:"),
            std::string::npos);
  tape.backward(loss);
  EXPECT_EQ(x.grad().to_host()[3], 6);
  EXPECT_EQ(x.to_host()[0], 8);
  EXPECT_EQ(x.to_host()[1], 7);
}

TEST_F(Tapes, KeepWhatIsOverwrittenAfterTheRecording) {
  const std::function<void()> writes[] = {
      [&] { x.fill(1); }, [&] { x.from_host(std::vector<double>(10)); },
      [&] { std::fill_n(x.mutable_data(), 10, 5.0); }, [&] { square(y, x); },
      [&] { std::thread([&] { square(y, x); }).join(); }};
  for (const auto &write : writes) {
    x.fill(3);
    x.grad().fill(0);
    tape.clear();
    {
      auto recording = tape.record();
      square(x, y);
      sum(y, loss);
    }
    write();
    std::vector<double> newest = x.to_host();
    EXPECT_EQ(tape.report().bytes, 80u);
    EXPECT_NE(
        tape.report().copies[0].overwritten_by.find("outside of the recording"),
        std::string::npos);
    tape.backward(loss);
    EXPECT_EQ(x.grad().to_host()[9], 6);
    EXPECT_EQ(x.to_host(), newest);
  }
}

TEST_F(Tapes, KeepAGradientThatALaunchHasRead) {
  Kernel weigh =
      kernel("weigh", [](ArrayRef<double, 1> weight, ArrayRef<double, 1> from,
                         ArrayRef<double, 1> to) {
        parallel(from.size(0), [&](Index i) { to(i) = weight(i) * from(i); });
      });
  Array<double> w = device.array<double>({10}, grad);
  w.grad().fill(4);
  {
    auto recording = tape.record();
    weigh(w.grad(), x, y);
    sum(y, loss);
  }
  y.grad().fill(1);
  square.grad(w, y); // w is 0: adds 0, and may as well add something
  w.grad().fill(9);
  EXPECT_EQ(tape.report().bytes, 80u);
  tape.backward(loss);
  EXPECT_EQ(x.grad().to_host()[2], 4);
  EXPECT_EQ(w.grad().to_host()[2], 9);
}

TEST_F(Tapes, CopyNothingThatNobodyNeeds) {
  Kernel twice = kernel("twice", [](ArrayRef<double, 1> a) {
    parallel(a.size(0), [&](Index i) { a(i) = 2.0 * a(i); });
  });
  {
    auto recording = tape.record();
    twice(x);
    twice(x);
    sum(x, loss);
    x.fill(1);
  }
  x.fill(2);
  EXPECT_EQ(tape.report().peak_bytes, 0u);
  tape.backward(loss);
  EXPECT_EQ(x.grad().to_host()[0], 4);
}

/// s(slot) of a ring with three slots: only the slot is copied.
TEST_F(Tapes, CopyOnlyTheSlotOfARing) {
  std::vector<Kernel> advance;
  for (int from : {0, 1, 2})
    advance.push_back(kernel("advance", [from](ArrayRef<double, 2> s) {
      parallel(s.size(1),
               [&](Index i) { s((from + 1) % 3, i) = sin(s(from, i)); });
    }));
  Array<double> ring = device.array<double>({3, 10}, grad);
  ring.from_host(std::vector<double>(30, 0.7));
  constexpr int steps = 20;
  {
    auto recording = tape.record();
    for (int t = 0; t < steps; ++t)
      advance[t % 3](ring);
  }
  // Steps 2 to 19 overwrite slots that are needed by steps 0 to 17.
  ASSERT_EQ(tape.report().copies.size(), size_t(steps - 2));
  EXPECT_EQ(tape.report().bytes, size_t(steps - 2) * 80);
  EXPECT_NE(tape.report().copies[1].array.find("elements [1, 0:10] of"),
            std::string::npos)
      << tape.report();
  std::vector<double> seeds(30);
  seeds[(steps % 3) * 10 + 4] = 1;
  ring.grad().from_host(seeds);
  tape.backward();
  double value = 0.7, slope = 1;
  for (int t = 0; t < steps; ++t) {
    slope *= std::cos(value);
    value = std::sin(value);
  }
  EXPECT_NEAR(ring.grad().to_host()[4], slope, 1e-15);
}

TEST_F(Tapes, NameWhatTheyMayNotCopy) {
  for (bool general : {false, true}) {
    Tape strict({.snapshot = !general});
    strict.never_copy(y);
    {
      auto recording = strict.record();
      square(x, y);
      square(y, z);
      square(x, y);
      sum(z, loss);
    }
    x.grad().fill(5);
    expectError(ErrorCode::CannotReplay,
                {"`square`", "entry 2", "argument 1", "overwritten by",
                 "entry 3", "TapeTest.cpp", "never_copy", "time index"},
                [&] { strict.backward(loss); });
    EXPECT_EQ(x.grad().to_host()[0], 5);
    EXPECT_EQ(strict.report().bytes, 0u);
    strict.clear();
    {
      auto recording = strict.record();
      square(x, y);
      sum(y, loss);
    }
    x.fill(1);
    if (general)
      expectError(ErrorCode::CannotReplay,
                  {"entry 1", "a write by the host", "TapeTest.cpp",
                   "outside of the recording"},
                  [&] { strict.backward(loss); });
    else
      strict.backward(loss); // of x copies are allowed
    x.fill(3);
  }
}

TEST_F(Tapes, RefuseAnOverwriteWithoutMemoryForTheCopy) {
  Device small = Device::open("cpu", {.threads = 1, .memory_limit = 100 << 10});
  Array<double> a = small.array<double>({3000}, grad),
                b = small.array<double>({3000}, grad),
                total = small.array<double>({}, grad);
  a.fill(3);
  {
    auto recording = tape.record();
    square(a, b);
    sum(b, total);
    uint64_t version = a.version();
    for (auto &&write : {std::function<void()>([&] { a.fill(4); }),
                         std::function<void()>([&] { square(b, a); })})
      expectError(ErrorCode::OutOfMemory,
                  {"overwrites", "f64 of shape (3000)",
                   "nothing has been "
                   "written",
                   "`clear`"},
                  write);
    EXPECT_EQ(a.version(), version);
  }
  EXPECT_EQ(a.to_host()[2999], 3);
  EXPECT_EQ(tape.size(), 2u);
  tape.backward(total);
  EXPECT_EQ(a.grad().to_host()[2999], 6);
  tape.clear();
  a.fill(4);
  EXPECT_EQ(a.to_host()[0], 4);
}

TEST_F(Tapes, ReleaseCopiesWithTheirEntries) {
  size_t before = device.current_bytes();
  {
    Tape other;
    for (Tape *each : {&tape, &other}) {
      auto recording = each->record();
      square(x, y);
    }
    x.fill(1);
    EXPECT_GT(device.current_bytes(), before);
    tape.clear();
    EXPECT_EQ(tape.report().bytes, 0u);
    EXPECT_EQ(tape.report().peak_bytes, 0u);
    EXPECT_EQ(other.report().bytes, 80u);
  }
  EXPECT_EQ(device.current_bytes(), before);
  x.fill(2); // nobody is told
}

TEST_F(Tapes, KeepAFailureToDifferentiateForBackward) {
  Kernel race =
      kernel("race", [](ArrayRef<double, 1> from, ArrayRef<double, 0> to) {
        parallel(from.size(0), [&](Index i) { to() = from(i); });
      });
  {
    auto recording = tape.record();
    for (int times = 0; times < 3; ++times)
      race(x, loss);
  }
  EXPECT_EQ(tape.size(), 3u);
  EXPECT_THROW(tape.backward(loss), Error);
  EXPECT_EQ(loss.to_host()[0], 3);
}

TEST_F(Tapes, ClearTheGradientsThatTheyAreAskedToClear) {
  {
    auto recording = tape.record();
    square(x, y);
    sum(y, loss);
  }
  x.grad().fill(100);
  z.grad().fill(100);
  tape.backward(loss);
  EXPECT_EQ(x.grad().to_host()[0], 106);
  for (int round = 0; round < 2; ++round) {
    tape.backward(loss, {.clear_inputs = true});
    EXPECT_EQ(x.grad().to_host()[0], 6);
  }
  y.grad().fill(2);
  loss.grad().fill(0);
  tape.backward({.clear_inputs = true}); // seeds stay
  EXPECT_EQ(x.grad().to_host()[0], 12);
  EXPECT_EQ(z.grad().to_host()[0], 100);
}

TEST_F(Tapes, AHostWriteCutsTheFlow) {
  Kernel add =
      kernel("add", [](ArrayRef<double, 1> from, ArrayRef<double, 1> to) {
        parallel(from.size(0), [&](Index i) { to(i) += from(i); });
      });
  {
    auto recording = tape.record();
    add(x, y);
    y.fill(1);
    add(z, y);
    sum(y, loss);
  }
  tape.backward(loss);
  EXPECT_EQ(x.grad().to_host()[0], 0);
  EXPECT_EQ(z.grad().to_host()[0], 1);
}

/// Of the elements that it writes, and keeps these alone.
TEST_F(Tapes, AHostWriteOfAnElementCutsThatElement) {
  Array<double> w = device.array<double>({2, 10}, grad);
  auto put = [](AnyArray array, std::vector<int64_t> index,
                std::vector<double> values) {
    array.write_at(index, values.data(), values.size() * sizeof(double));
  };
  Kernel both =
      kernel("both", [](ArrayRef<double, 2> from, ArrayRef<double, 0> total) {
        parallel(from.size(1), [&](Index i) {
          total() += from(0, i) * from(0, i) + from(1, i);
        });
      });
  w.fill(3);
  {
    auto recording = tape.record();
    put(w, {0, 4}, {7}); // before the first launch
    both(w, loss);
    put(w, {0, 4}, {8});
    put(w, {1}, std::vector<double>(10, 5));
    both(w, loss);
    put(loss, {}, {100});
    both(w, loss);
  }
  EXPECT_EQ(tape.size(), 7u);
  EXPECT_EQ(tape.report().bytes, sizeof(double));
  EXPECT_EQ(loss.to_host()[0], 100 + 9 * 9 + 64 + 50);
  tape.backward(loss);
  std::vector<double> slopes = w.grad().to_host();
  EXPECT_EQ(slopes[3], 6);
  EXPECT_EQ(slopes[4], 0);
  EXPECT_EQ(slopes[14], 0);
  expectError(ErrorCode::BadArgument, {"(2, 0)", "(2, 10)"},
              [&] { put(w, {2, 0}, {1}); });
  expectError(ErrorCode::BadArgument, {"10 numbers", "has 1"},
              [&] { put(w, {0}, {1}); });
}

TEST_F(Tapes, ALossThatOnlyTheHostWritesIsAnError) {
  {
    auto recording = tape.record();
    square(x, y);
    loss.fill(3);
  }
  expectError(ErrorCode::BadArgument, {"nothing on the tape writes", "launch"},
              [&] { tape.backward(loss); });
}

TEST_F(Tapes, NameAnArrayThatWouldDropADerivative) {
  Array<double> plain = device.array<double>({10});
  {
    auto recording = tape.record();
    square(x, plain);
    square(plain, y);
    sum(y, loss);
  }
  expectError(ErrorCode::MissingGradient,
              {"entry 2", "entry 1", "argument 1", "grad)"},
              [&] { tape.backward(loss); });
  tape.clear();
  {
    auto recording = tape.record();
    square(x, plain); // nobody reads it
    plain.fill(1);
    square(plain, z); // a constant by now
    square(x, y);
    sum(y, loss);
  }
  tape.backward(loss);
  EXPECT_DOUBLE_EQ(x.grad().to_host()[0], 6);
}

TEST_F(Tapes, NameAWriteBetweenTwoRecordings) {
  {
    auto recording = tape.record();
    sum(x, loss);
  }
  x.fill(1); // is not recorded, and would not be cleared
  {
    auto recording = tape.record();
    sum(x, loss);
  }
  expectError(ErrorCode::CannotReplay,
              {"`sum`", "entry 2", "argument 1", "outside of the recording"},
              [&] { tape.backward(loss); });
}

TEST_F(Tapes, NameADerivativeThatALaunchReads) {
  Array<double> u = device.array<double>({10}, grad | dual);
  Array<double> v = device.array<double>({10}, grad | dual);
  {
    auto recording = tape.record();
    square.jvp(u, v);
    sum(v.dual(), loss);
  }
  expectError(ErrorCode::MissingGradient,
              {"`sum`", "entry 2", "entry 1", "second derivatives"},
              [&] { tape.backward(loss); });
  tape.clear();
  {
    auto recording = tape.record();
    square.grad(x, y);
    sum(x.grad(), loss);
  }
  expectError(ErrorCode::MissingGradient, {"second derivatives"},
              [&] { tape.backward(loss); });
  tape.clear();
  {
    auto recording = tape.record();
    square.grad(x, y); // nobody reads it
    square(x, y);
    sum(y, loss);
  }
  x.grad().fill(0);
  tape.backward(loss);
  EXPECT_DOUBLE_EQ(x.grad().to_host()[0], 6);
}

TEST_F(Tapes, NameAGradientThatBackwardChanges) {
  Kernel weigh =
      kernel("weigh", [](ArrayRef<double, 1> weight, ArrayRef<double, 1> from,
                         ArrayRef<double, 1> to) {
        parallel(from.size(0), [&](Index i) { to(i) = weight(i) * from(i); });
      });
  {
    auto recording = tape.record();
    square(x, y);
    weigh(x.grad(), y, z);
    sum(z, loss);
  }
  expectError(ErrorCode::CannotReplay,
              {"`weigh`", "argument 1", "itself a gradient"},
              [&] { tape.backward(loss); });
}

TEST_F(Tapes, NameArraysThatOverlapBeforeAnyGradientChanges) {
  Kernel dot = kernel("dot", [](ArrayRef<double, 1> a, ArrayRef<double, 1> b,
                                ArrayRef<double, 0> total) {
    parallel(a.size(0), [&](Index i) { total() += a(i) * b(i); });
  });
  {
    auto recording = tape.record();
    dot(x, x, loss);
  }
  loss.grad().fill(7);
  expectError(ErrorCode::BadArgument,
              {"`dot`", "gradient of argument 1", "gradient of argument 2"},
              [&] { tape.backward(loss); });
  EXPECT_EQ(loss.grad().to_host()[0], 7);
}

TEST_F(Tapes, RefuseAPointerToWriteThrough) {
  auto recording = tape.record();
  expectError(ErrorCode::BadArgument, {"pointer", "from_host"},
              [&] { (void)x.mutable_data(); });
}

TEST_F(Tapes, FollowATimeIndex) {
  constexpr int steps = 50;
  Array<double> s = device.array<double>({steps + 1, 10}, grad);
  std::vector<double> start(s.size());
  for (int i = 0; i < 10; ++i)
    start[i] = 0.1 * i;
  s.from_host(start);
  Kernel last =
      kernel("last", [](ArrayRef<double, 2> s, ArrayRef<double, 0> total) {
        parallel(s.size(1), [&](Index i) { total() += s(s.size(0) - 1, i); });
      });
  {
    auto recording = tape.record();
    for (int t = 0; t < steps; ++t)
      step(s, t);
    last(s, loss);
  }
  EXPECT_EQ(tape.report().peak_bytes, 0u);
  tape.backward(loss);
  double value = 0.5, slope = 1;
  for (int t = 0; t < steps; ++t) {
    slope *= std::cos(value);
    value = std::sin(value);
  }
  EXPECT_NEAR(s.grad().to_host()[5], slope, 1e-14);
}

TEST_F(Tapes, KeepARepeatedTimeIndex) {
  Array<double> s = device.array<double>({5, 10}, grad);
  s.from_host(std::vector<double>(50, 0.5));
  {
    auto recording = tape.record();
    step(s, 0);
    step(s, 1);
    step(s, 0);
  }
  EXPECT_EQ(tape.report().bytes, 80u); // s(1), which entry 2 needs
  std::vector<double> seeds(50);
  seeds[20] = 1;
  s.grad().from_host(seeds);
  tape.backward();
  EXPECT_NEAR(s.grad().to_host()[0], std::cos(std::sin(0.5)) * std::cos(0.5),
              1e-15);
}

TEST_F(Tapes, RecordOneThreadAtATime) {
  Tape other;
  auto recording = tape.record();
  expectError(ErrorCode::BadArgument, {"recording already"},
              [&] { (void)other.record(); });
  std::thread([&] {
    expectError(ErrorCode::BadArgument, {"recording already", "another thread"},
                [&] { (void)tape.record(); });
  }).join();
  std::thread([&] { square(x, y); }).join();
  EXPECT_EQ(tape.size(), 0u);
  {
    auto moved = std::move(recording);
  }
  auto again = other.record();
  square(x, y);
  EXPECT_EQ(other.size(), 1u);
}

TEST_F(Tapes, NeedALossWithAGradient) {
  Array<double> plain = device.array<double>({});
  expectError(ErrorCode::MissingGradient, {"`backward`"},
              [&] { tape.backward(plain); });
}

TEST_F(Tapes, KeepWhatALaunchItselfOverwrites) {
  Kernel inPlace = kernel("inPlace", [](ArrayRef<double, 1> a) {
    parallel(a.size(0), [&](Index i) { a(i) = sin(a(i)); });
  });
  constexpr int launches = 30;
  {
    auto recording = tape.record();
    for (int times = 0; times < launches; ++times)
      inPlace(x);
    sum(x, loss);
  }
  TapeReport report = tape.report();
  ASSERT_EQ(report.copies.size(), size_t(launches));
  EXPECT_EQ(report.bytes, size_t(launches) * 80);
  EXPECT_EQ(report.peak_bytes, report.bytes);
  for (const std::string &text :
       {report.copies[4].needed_by, report.copies[4].overwritten_by})
    EXPECT_NE(text.find("kernel `inPlace`"), std::string::npos) << text;
  EXPECT_NE(report.copies[4].overwritten_by.find("entry 5"), std::string::npos);
  std::vector<double> newest = x.to_host();
  x.fill(-1);
  double value = 3, slope = 1;
  for (int times = 0; times < launches; ++times) {
    slope *= std::cos(value);
    value = std::sin(value);
  }
  EXPECT_EQ(newest[7], value);
  for (int times = 0; times < 2; ++times) {
    x.grad().fill(0);
    tape.backward(loss);
    EXPECT_NEAR(x.grad().to_host()[7], slope, 1e-15);
    EXPECT_EQ(x.to_host()[7], -1);
  }
  size_t before = device.current_bytes();
  tape.clear();
  EXPECT_LE(device.current_bytes() + report.bytes, before);
  EXPECT_EQ(tape.report().bytes, 0u);
}

TEST_F(Tapes, NameWhatALaunchItselfOverwritesIfTheyMayNotKeepIt) {
  Kernel inPlace = kernel("inPlace", [](ArrayRef<double, 1> a) {
    parallel(a.size(0), [&](Index i) { a(i) = sin(a(i)); });
  });
  Kernel twice = kernel("twice", [](ArrayRef<double, 1> a) {
    parallel(a.size(0), [&](Index i) { a(i) = sin(a(i)); });
    parallel(a.size(0), [&](Index i) { a(i) = a(i) * a(i); });
  });
  Array<double> u = device.array<double>({10}, grad | dual);
  Tape all({.snapshot = false}), one;
  one.never_copy(u);
  for (Tape *strict : {&all, &one})
    for (const Kernel &k : {inPlace, twice}) {
      strict->clear();
      {
        auto recording = strict->record();
        k(u);
      }
      EXPECT_EQ(strict->report().bytes, 0u);
      expectError(
          ErrorCode::CannotReplay,
          {"`" + k.name() + "`", "overwrit", "never_copy", "TapeTest.cpp:"},
          [&] { strict->backward(u); });
    }
  {
    auto recording = tape.record();
    twice.jvp(u);
  }
  expectError(ErrorCode::CannotReplay, {"`twice`", "tangent launch"},
              [&] { tape.backward(u); });
}

/// An earlier launch needs the same values as one that overwrites them.
TEST_F(Tapes, KeepOneCopyForAllThatNeedIt) {
  Kernel inPlace = kernel("inPlace", [](ArrayRef<double, 1> a) {
    parallel(a.size(0), [&](Index i) { a(i) = sin(a(i)); });
  });
  Array<double> u = device.array<double>({10}, grad | dual);
  for (bool tangent : {false, true}) {
    tape.clear();
    u.fill(0.5);
    {
      auto recording = tape.record();
      square(u, y);
      square(u, z);
      tangent ? inPlace.jvp(u) : inPlace(u);
      sum(u, loss);
      sum(y, loss);
      sum(z, loss);
    }
    EXPECT_EQ(tape.report().bytes, 80u);
    tape.backward(loss, {.clear_inputs = true});
    EXPECT_NEAR(u.grad().to_host()[1], std::cos(0.5) + 2, 1e-15);
  }
}

/// Slots that only the scalars of a launch tell.
TEST_F(Tapes, CopyOnlyTheSlotThatALaunchOverwrites) {
  Kernel move = kernel(
      "move", [](ArrayRef<double, 2> s, Scalar<int> from, Scalar<int> to) {
        parallel(s.size(1), [&](Index i) { s(to, i) = sin(s(from, i)); });
      });
  Array<double> s = device.array<double>({100, 10}, grad);
  s.from_host(std::vector<double>(1000, 0.5));
  {
    auto recording = tape.record();
    for (int t = 0; t < 90; ++t)
      move(s, t, t + 1);
    EXPECT_EQ(tape.report().peak_bytes, 0u);
    move(s, 90, 90);
    EXPECT_EQ(tape.report().bytes, 80u);
    move(s, 90, 5); // needed by the launch from 5 to 6
  }
  EXPECT_EQ(tape.report().bytes, 160u);
  std::vector<double> seeds(1000);
  seeds[57] = 1;
  s.grad().from_host(seeds);
  tape.backward();
  double value = 0.5, slope = 1;
  for (int t = 0; t < 92; ++t) {
    slope *= std::cos(value);
    value = std::sin(value);
  }
  EXPECT_EQ(s.to_host()[57], value);
  EXPECT_NEAR(s.grad().to_host()[7], slope, 1e-15);
}

TEST_F(Tapes, RefuseALaunchWithoutMemoryForWhatItOverwrites) {
  Kernel inPlace = kernel("inPlace", [](ArrayRef<double, 1> a) {
    parallel(a.size(0), [&](Index i) { a(i) = sin(a(i)); });
  });
  Device small = Device::open("cpu", {.threads = 1, .memory_limit = 70 << 10});
  Array<double> a = small.array<double>({3000}, grad);
  a.fill(3);
  {
    auto recording = tape.record();
    expectError(ErrorCode::OutOfMemory,
                {"`inPlace`", "(3000)", "nothing has been written"},
                [&] { inPlace(a); });
    EXPECT_EQ(tape.size(), 0u);
  }
  EXPECT_EQ(a.to_host()[0], 3);
  EXPECT_EQ(tape.report().bytes, 0u);
  inPlace(a);
  EXPECT_EQ(a.to_host()[0], std::sin(3.0));
}

TEST_F(Tapes, RefuseToBeReversedOrClearedWhileTheyRecord) {
  auto recording = tape.record();
  square(x, y);
  expectError(ErrorCode::BadArgument, {"`backward`", "still recording"},
              [&] { tape.backward(y); });
  expectError(ErrorCode::BadArgument, {"`clear`", "still recording"},
              [&] { tape.clear(); });
  sum(y, loss);
  EXPECT_EQ(tape.size(), 2u);
  {
    auto ended = std::move(recording);
  }
  tape.backward(loss);
  EXPECT_EQ(x.grad().to_host()[0], 6);
}

TEST_F(Tapes, EndARecordingFromAnotherThread) {
  auto recording = std::make_unique<Tape::Recording>(tape.record());
  square(x, y);
  std::thread([&] { recording.reset(); }).join();
  square(y, z);
  EXPECT_EQ(tape.size(), 1u);
  Tape other;
  auto next = other.record();
  square(x, y);
  EXPECT_EQ(other.size(), 1u);
}

TEST_F(Tapes, OutliveTheirHandleWhileTheyRecord) {
  auto tape = std::make_unique<Tape>();
  auto recording = tape->record();
  square(x, y);
  tape.reset();
  square(x, y);
  x.fill(1);
}

/// A gradient of another recording is a derivative that the recording cannot know.
TEST_F(Tapes, NameAGradientOfAnotherTapeThatALaunchReads) {
  Tape other;
  {
    auto recording = other.record();
    square(x, y);
  }
  {
    auto recording = tape.record();
    other.backward();
    sum(x.grad(), loss);
  }
  expectError(ErrorCode::MissingGradient, {"another tape", "entry 1"},
              [&] { tape.backward(loss); });
}

TEST_F(Tapes, KeepWhatOtherThreadsOverwrite) {
  constexpr int count = 8;
  std::vector<Array<double>> inputs, outputs;
  for (int k = 0; k < count; ++k) {
    inputs.push_back(device.array<double>({10}, grad));
    outputs.push_back(device.array<double>({10}, grad));
    inputs[k].fill(k);
  }
  std::vector<std::thread> writers;
  {
    auto recording = tape.record();
    for (int k = 0; k < count; ++k) {
      square(inputs[k], outputs[k]);
      writers.emplace_back([&, k] {
        for (int round = 0; round < 50; ++round)
          round % 2 ? inputs[k].fill(-1) : square(inputs[k], outputs[k]);
      });
    }
  }
  for (std::thread &writer : writers)
    writer.join();
  for (int k = 0; k < count; ++k)
    outputs[k].grad().fill(1);
  tape.backward();
  for (int k = 0; k < count; ++k)
    EXPECT_EQ(inputs[k].grad().to_host()[5], 2 * k);
}

namespace {
/// A recording whose first launch, the last to be reversed, needs more memory
/// for its gradient than there is.
class FailingTapes : public Tapes {
protected:
  Kernel deep =
      kernel("deep", [](ArrayRef<double, 1> from, ArrayRef<int, 0> iterations,
                        ArrayRef<double, 1> to) {
        parallel(1, [&](Index) {
          Var<double> v = from(0);
          FOR (k, 0, iterations()) {
            v = sin(v);
          }
          to(0) += v;
        });
      });
  void record(int64_t size) {
    small = Device::open("cpu", {.threads = 1, .memory_limit = 12 << 20});
    a = small.array<double>({size}, grad);
    b = small.array<double>({size}, grad);
    total = small.array<double>({}, grad);
    iterations = small.array<int>({});
    iterations.fill(3);
    a.fill(3);
    auto recording = tape.record();
    deep(a, iterations, b);
    square(a, b);
    sum(b, total);
  }
  void makeDeep() {
    // The bound is needed too: the copy is what backward sees.
    tape.clear();
    iterations.fill(2000000);
    auto recording = tape.record();
    deep(a, iterations, b);
    square(a, b);
    sum(b, total);
  }

  Device small = device;
  Array<double> a, b, total;
  Array<int> iterations;
};
} // namespace

TEST_F(FailingTapes, LeaveSmallGradientsAsTheyWere) {
  record(100);
  makeDeep();
  a.grad().fill(1);
  b.grad().fill(2);
  total.grad().fill(3);
  a.fill(4); // needed
  expectError(ErrorCode::OutOfMemory, {"`deep`"},
              [&] { tape.backward(total); });
  EXPECT_EQ(a.grad().to_host(), std::vector<double>(100, 1));
  EXPECT_EQ(b.grad().to_host(), std::vector<double>(100, 2));
  EXPECT_EQ(total.grad().to_host()[0], 3);
  EXPECT_EQ(a.to_host(), std::vector<double>(100, 4));
  a.fill(5);          // the recording is not in use any more
  iterations.fill(2); // and neither is the bound that backward used
  expectError(ErrorCode::OutOfMemory, {"`deep`"},
              [&] { tape.backward(total); });
}

TEST_F(FailingTapes, SayThatLargeGradientsAreNotUsable) {
  record(100000);
  makeDeep();
  a.grad().fill(1);
  expectError(ErrorCode::OutOfMemory,
              {"`deep`", "not usable", "all_or_nothing"},
              [&] { tape.backward(total); });
  a.grad().fill(1);
  expectError(ErrorCode::OutOfMemory, {"`deep`"},
              [&] { tape.backward(total, {.all_or_nothing = true}); });
  EXPECT_EQ(a.grad().to_host(), std::vector<double>(100000, 1));
}
