#include "api/TapeTest.h"

#include <cmath>

using namespace costate;
using namespace costate::test;

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
  x.fill(3);
  for (int times = 0; times < launches; ++times)
    inPlace(x); // not recorded
  EXPECT_EQ(newest, x.to_host());
  x.fill(-1);
  double value = 3, slope = 1;
  for (int times = 0; times < launches; ++times) {
    slope *= std::cos(value);
    value = std::sin(value);
  }
  EXPECT_NEAR(newest[7], value, 1e-15);
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
      expectError(ErrorCode::CannotReplay,
                  {"`" + k.name() + "`", "overwrit", "never_copy",
                   "TapeOverwriteTest.cpp:"},
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
  Array<double> alone = device.array<double>({1, 10});
  alone.fill(0.5);
  for (int t = 0; t < 92; ++t)
    move(alone, 0, 0);
  EXPECT_EQ(s.to_host()[57], alone.to_host()[7]);
  EXPECT_NEAR(s.to_host()[57], value, 1e-15);
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
