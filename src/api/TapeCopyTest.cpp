#include "api/TapeTest.h"

#include <cmath>
#include <sstream>
#include <thread>

using namespace costate;
using namespace costate::test;

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

/// A long recording has a short report.
TEST_F(Tapes, ReportCopiesOfTheSameKindTogether) {
  {
    auto recording = tape.record();
    for (int k = 0; k < 50; ++k) {
      square(x, y);
      square(y, x);
    }
    sum(x, loss);
  }
  std::ostringstream text;
  text << tape.report();
  EXPECT_EQ(tape.report().copies.size(), 99u);
  for (const char *part :
       {"99 copies, 7.734 KiB", "7.734 KiB: f64 array of shape (10), 99 times",
        "and others like it"})
    EXPECT_NE(text.str().find(part), std::string::npos) << text.str();
  std::string lines = text.str();
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 4) << lines;
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
  EXPECT_NE(tape.report().copies[1].overwritten_by.find("TapeCopyTest.cpp:"),
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

// RULE: recordings
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
                 "entry 3", "TestKernels.h", "never_copy", "time index"},
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
                  {"entry 1", "a write by the host", "TapeCopyTest.cpp",
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

/// Of two arguments one stands in a copy, and the other has to be moved, which
/// moves that copy, too.
TEST_F(Tapes, PutPartsOfAnArrayThatIsGivenTwiceInPlace) {
  Array<double> ring = device.array<double>({3, 10});
  Kernel product =
      kernel("product", [](ArrayRef<double, 1> from, ArrayRef<double, 2> a,
                           ArrayRef<double, 2> b, ArrayRef<double, 1> to) {
        parallel(from.size(0), [&](Index i) {
          to(i) = from(i) * a(0, i) * b(1, i) * b(2, i);
        });
      });
  Kernel set = kernel("set", [](ArrayRef<double, 2> a, Scalar<int> slot) {
    parallel(a.size(1), [&](Index i) { a(slot, i) = 100.0; });
  });
  std::vector<double> values(30);
  for (size_t k = 0; k < values.size(); ++k)
    values[k] = 2 + k / 10;
  ring.from_host(values);
  {
    auto recording = tape.record();
    product(x, ring, ring, y);
    for (int slot : {0, 1, 2})
      set(ring, slot);
    sum(y, loss);
  }
  for (int round = 1; round <= 2; ++round) {
    tape.backward(loss);
    EXPECT_EQ(x.grad().to_host()[3], round * 2 * 3 * 4);
    EXPECT_EQ(ring.to_host(), std::vector<double>(30, 100));
  }
}
