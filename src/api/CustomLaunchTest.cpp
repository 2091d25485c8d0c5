#include "api/CustomLaunchTest.h"

#include <thread>

using namespace costate;
using namespace costate::test;

TEST_F(CustomLaunches, RunTheFunctionsOfTheUser) {
  CustomLaunch launch = exponential();
  launch();
  EXPECT_EQ(at(y), std::exp(0.5));
  y.grad().fill(2);
  launch.grad();
  EXPECT_EQ(at(x.grad()), 2 * std::exp(0.5));
  EXPECT_EQ(at(y.grad()), 0);
  x.dual().fill(3);
  launch.jvp();
  EXPECT_EQ(at(y.dual()), 3 * std::exp(0.5));
  CustomLaunch empty{.name = "empty"};
  expectError(ErrorCode::BadArgument, {"`empty`", "`primal`", "Test.cpp:"},
              [&] { empty(); });
  expectError(ErrorCode::NotDifferentiable, {"`empty`", "`gradient`"},
              [&] { empty.grad(); });
  expectError(ErrorCode::NotDifferentiable, {"`empty`", "`tangent`"},
              [&] { empty.jvp(); });
}

TEST_F(CustomLaunches, AreOneEntryOfARecording) {
  CustomLaunch launch = exponential();
  for (bool tangent : {false, true}) {
    tape.clear();
    x.fill(0.5);
    {
      auto recording = tape.record();
      square(x, z);
      sum(z, loss);
      tangent ? launch.jvp() : launch();
      sum(y, loss);
    }
    EXPECT_EQ(tape.size(), 4u);
    y.fill(100); // what it left is needed
    x.fill(7);   // by `square` only
    EXPECT_EQ(tape.report().copies.size(), 2u);
    EXPECT_NE(tape.report().copies[0].needed_by.find(
                  "array 1 of `writes` of custom launch `exponential`"),
              std::string::npos)
        << tape.report();
    tape.backward(loss, {.clear_inputs = true});
    EXPECT_EQ(at(x.grad()), 1 + std::exp(0.5));
    EXPECT_EQ(at(y), 100);
    EXPECT_EQ(at(x), 7);
  }
}

/// x = x^2 in place: the gradient needs what was there before.
TEST_F(CustomLaunches, SeeWhatTheyRead) {
  Kernel clear = kernel("clear", [](ArrayRef<double, 1> to) {
    parallel(to.size(0), [&](Index i) { to(i) = 0; });
  });
  CustomLaunch inPlace{.name = "in place",
                       .reads = {x},
                       .writes = {x, z},
                       .unneeded = {z},
                       .primal =
                           [&] {
                             square(x, z);
                             x.from_host(z.to_host());
                           },
                       .gradient =
                           [&] {
                             Values value = x.to_host(), g = x.grad().to_host();
                             for (int i = 0; i < n; ++i)
                               g[i] *= 2 * value[i];
                             x.grad().from_host(g);
                             clear(x); // is put back
                           }};
  {
    auto recording = tape.record();
    sine(x, y);
    for (int times = 0; times < 3; ++times)
      inPlace();
    sum(x, loss);
    sum(y, loss);
  }
  Values newest = x.to_host();
  EXPECT_EQ(tape.report().copies.size(), 3u);
  for (int times = 0; times < 2; ++times) {
    tape.backward(loss, {.clear_inputs = true});
    EXPECT_NEAR(at(x.grad()), 8 * std::pow(0.5, 7) + std::cos(0.5), 1e-15);
    EXPECT_EQ(x.to_host(), newest);
  }
}

/// A hundred steps between two buffers, which only the state at the start of
/// every ten is kept for.
TEST_F(CustomLaunches, MakeCheckpoints) {
  constexpr int steps = 100, segment = 10;
  auto advance = [&] {
    for (int t = 0; t < segment; t += 2) {
      sine(x, y);
      sine(y, x);
    }
  };
  size_t innerBytes = 0;
  CustomLaunch part{.name = "part",
                    .reads = {x},
                    .writes = {x, y},
                    .unneeded = {y},
                    .primal = advance,
                    .gradient = [&] {
                      Tape inner;
                      {
                        auto recording = inner.record();
                        advance();
                      }
                      innerBytes = inner.report().bytes;
                      inner.backward();
                    }};
  {
    auto recording = tape.record();
    for (int t = 0; t < steps; t += segment)
      part();
    sum(x, loss);
  }
  EXPECT_EQ(tape.report().bytes, size_t(steps / segment) * n * 8);
  Values newest = x.to_host();
  double value = 0.5, slope = 1;
  for (int t = 0; t < steps; ++t) {
    slope *= std::cos(value);
    value = std::sin(value);
  }
  for (int times = 0; times < 2; ++times) {
    tape.backward(loss, {.clear_inputs = true});
    EXPECT_NEAR(at(x.grad()), slope, 1e-15);
    EXPECT_EQ(x.to_host(), newest);
  }
  EXPECT_NEAR(at(x), value, 1e-15);
  x.fill(0.5);
  for (int t = 0; t < steps; t += segment)
    advance(); // not recorded
  EXPECT_EQ(x.to_host(), newest);
  EXPECT_EQ(innerBytes, size_t(segment - 1) * n * 8);
}

/// The inner recording is made by the primal and stays as it is.
TEST_F(CustomLaunches, MayBeARecordingOfTheirOwn) {
  Tape inner;
  CustomLaunch part{.name = "part",
                    .reads = {x},
                    .writes = {x, y},
                    .primal =
                        [&] {
                          auto recording = inner.record();
                          square(x, y);
                          sine(y, x);
                          square(x, y);
                        },
                    .gradient = [&] { inner.backward(); }};
  {
    auto recording = tape.record();
    square(x, z);
    sum(z, loss);
    part();
    x.fill(0.25);
    sine(y, z);
    sum(z, loss);
    y.fill(-1);
  }
  EXPECT_EQ(tape.size(), 7u);
  double s = std::sin(0.25);
  for (int times = 0; times < 2; ++times) {
    tape.backward(loss, {.clear_inputs = true});
    EXPECT_NEAR(at(x.grad()),
                1 + std::cos(s * s) * 2 * s * std::cos(0.25) * 2 * 0.5, 1e-15);
    EXPECT_EQ(at(x), 0.25);
    EXPECT_EQ(at(y), -1);
  }
}

TEST_F(CustomLaunches, Nest) {
  CustomLaunch inner = exponential();
  CustomLaunch outer{.name = "outer",
                     .reads = {x},
                     .writes = {y, z},
                     .primal =
                         [&] {
                           inner();
                           square(y, z);
                         },
                     .gradient =
                         [&] {
                           Tape again;
                           {
                             auto recording = again.record();
                             inner();
                             square(y, z);
                           }
                           again.backward();
                         }};
  {
    auto recording = tape.record();
    outer();
    sum(z, loss);
  }
  EXPECT_EQ(tape.size(), 2u);
  x.fill(9);
  y.fill(9);
  tape.backward(loss);
  EXPECT_NEAR(at(x.grad()), 2 * std::exp(1.0), 1e-15);
  EXPECT_EQ(at(y), 9);
}

/// What their gradients write and is put back is no write between entries, and
/// not what the last launch left.
TEST_F(CustomLaunches, MayBeReversedBetweenTwoRecordings) {
  Kernel both = kernel("both", [](ArrayRef<double, 1> from,
                                  ArrayRef<double, 1> to,
                                  ArrayRef<double, 0> total) {
    parallel(from.size(0), [&](Index i) { to(i) = sin(from(i)); });
    parallel(from.size(0), [&](Index i) { total() += to(i) * to(n - 1 - i); });
  });
  auto compute = [&] { both(x, y, loss); };
  CustomLaunch part{.name = "part",
                    .reads = {x, loss},
                    .writes = {y, loss},
                    .primal = compute,
                    .gradient = [&] {
                      Tape inner;
                      {
                        auto recording = inner.record();
                        x.fill(0.1); // is put back, as what follows
                        compute();
                      }
                      inner.clear();
                      {
                        auto recording = inner.record();
                        x.fill(0.5);
                        compute();
                      }
                      both.grad(x, y, loss);
                    }};
  {
    auto recording = tape.record();
    part();
  }
  y.fill(1);
  tape.backward(loss);
  double slope = 2 * std::sin(0.5) * std::cos(0.5);
  EXPECT_NEAR(at(x.grad()), slope, 1e-15);
  expectError(ErrorCode::CannotReplay, {"`both`", "written since"},
              [&] { both.grad(x, y, loss); });
  tape.clear();
  for (int times = 0; times < 3; ++times) {
    {
      auto recording = tape.record();
      part();
    }
    EXPECT_EQ(at(x), 0.5);
    tape.backward(loss, {.clear_inputs = true});
    EXPECT_NEAR(at(x.grad()), (times + 1) * slope, 1e-14);
  }
  x.fill(1);
  {
    auto recording = tape.record();
    part();
  }
  expectError(ErrorCode::CannotReplay, {"outside of the recording"},
              [&] { tape.backward(loss); });
}

TEST_F(CustomLaunches, KeepTheirTapeToThemselves) {
  CustomLaunch launch{.name = "launch",
                      .reads = {x},
                      .writes = {y},
                      .primal = [&] { square(x, y); },
                      .gradient = [&] { tape.clear(); }};
  auto record = [&] {
    tape.clear();
    auto recording = tape.record();
    launch();
  };
  record();
  expectError(ErrorCode::BadArgument, {"`clear`", "its own `backward`"},
              [&] { tape.backward(y); });
  launch.gradient = [&] { tape.backward(y); };
  record();
  expectError(ErrorCode::BadArgument, {"`backward`", "its own `backward`"},
              [&] { tape.backward(y); });
  launch.gradient = [&] { (void)tape.record(); };
  record();
  expectError(ErrorCode::BadArgument, {"`record`", "its own `backward`"},
              [&] { tape.backward(y); });
  launch.gradient = [&] {
    std::thread([&] {
      expectError(ErrorCode::BadArgument,
                  {"a write by the host", "another thread"},
                  [&] { x.fill(1); });
      z.fill(1); // is not in the recording
    }).join();
  };
  record();
  tape.backward(y);
  EXPECT_EQ(at(z), 1);
  x.fill(1);
}
