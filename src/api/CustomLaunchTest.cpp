#include "conformance/Errors.h"
#include "costate/costate.h"
#include "costate/syntax.h"

#include <cmath>
#include <stdexcept>
#include <thread>

using namespace costate;
using costate::test::expectError;

namespace {
class CustomLaunches : public testing::Test {
protected:
  using Values = std::vector<double>;
  static constexpr int n = 6;

  Array<double> make(double value = 0) {
    Array<double> array = device.array<double>({n}, grad | dual);
    array.fill(value);
    return array;
  }
  /// Of one element.
  static double at(const Array<double> &array) { return array.to_host()[2]; }

  Device device = Device::open("cpu", {.threads = 2});
  Array<double> x = make(0.5), y = make(), z = make();
  Array<double> loss = device.array<double>({}, grad);
  Tape tape;

  Kernel square =
      kernel("square", [](ArrayRef<double, 1> from, ArrayRef<double, 1> to) {
        parallel(from.size(0), [&](Index i) { to(i) = from(i) * from(i); });
      });
  Kernel sine =
      kernel("sine", [](ArrayRef<double, 1> from, ArrayRef<double, 1> to) {
        parallel(from.size(0), [&](Index i) { to(i) = sin(from(i)); });
      });
  Kernel sum =
      kernel("sum", [](ArrayRef<double, 1> from, ArrayRef<double, 0> total) {
        parallel(from.size(0), [&](Index i) { total() += from(i); });
      });
  /// adjoint of `from` += by * adjoint of `to`, which is consumed
  Kernel pull =
      kernel("pull", [](ArrayRef<double, 1> by, ArrayRef<double, 1> to,
                        ArrayRef<double, 1> from) {
        parallel(by.size(0), [&](Index i) {
          from(i) += by(i) * to(i);
          to(i) = 0;
        });
      });

  /// y = exp(x), by the host; its derivative is y.
  CustomLaunch exponential() {
    return {.name = "exponential",
            .reads = {x},
            .writes = {y},
            .unneeded = {x},
            .primal =
                [this] {
                  Values values = x.to_host();
                  for (double &value : values)
                    value = std::exp(value);
                  y.from_host(values);
                },
            .gradient = [this] { pull(y, y.grad(), x.grad()); },
            .tangent =
                [this] {
                  Values values = x.to_host(), tangents = x.dual().to_host();
                  for (int i = 0; i < n; ++i) {
                    values[i] = std::exp(values[i]);
                    tangents[i] *= values[i];
                  }
                  y.from_host(values);
                  y.dual().from_host(tangents);
                }};
  }
};
} // namespace

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
  EXPECT_EQ(at(x), value);
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

TEST_F(CustomLaunches, ThatThrowLeaveEverythingAsItWas) {
  bool fails = true;
  CustomLaunch launch{.name = "launch",
                      .reads = {x},
                      .writes = {y},
                      .primal = [&] { square(x, y); },
                      .gradient =
                          [&] {
                            y.fill(77);
                            x.grad().fill(55);
                            if (fails)
                              throw std::runtime_error("of the user");
                            x.grad().fill(44);
                          }};
  {
    auto recording = tape.record();
    sine(x, z);
    launch();
    x.fill(2);
    sum(y, loss);
    sum(z, loss);
  }
  y.fill(3);
  x.grad().fill(1);
  y.grad().fill(2);
  EXPECT_THROW(tape.backward(loss), std::runtime_error);
  EXPECT_EQ(at(x), 2);
  EXPECT_EQ(at(y), 3);
  EXPECT_EQ(at(x.grad()), 1);
  EXPECT_EQ(at(y.grad()), 2);
  fails = false;
  tape.backward(loss);
  EXPECT_EQ(at(x.grad()), 44 + std::cos(0.5));
  EXPECT_EQ(at(x), 2);
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

TEST_F(CustomLaunches, ThatFailAreNotRecorded) {
  CustomLaunch launch{.name = "launch",
                      .reads = {x},
                      .writes = {x, y},
                      .primal =
                          [&] {
                            x.fill(2);
                            throw std::runtime_error("of the user");
                          },
                      .gradient = [] {}};
  {
    auto recording = tape.record();
    EXPECT_THROW(launch(), std::runtime_error);
    square(x, y);
  }
  EXPECT_EQ(tape.size(), 1u);
  ASSERT_EQ(tape.report().copies.size(), 1u);
  EXPECT_NE(tape.report().copies[0].needed_by.find("failed"),
            std::string::npos);
  tape.backward(y);
  EXPECT_EQ(at(x.grad()), 4);
}

TEST_F(CustomLaunches, NameWhatIsWrongWithThem) {
  auto recording = std::make_unique<Tape::Recording>(tape.record());
  CustomLaunch launch{.name = "launch",
                      .reads = {x, AnyArray()},
                      .writes = {y},
                      .primal = [] {}};
  expectError(ErrorCode::BadArgument,
              {"`launch`", "Test.cpp:", "without storage"}, [&] { launch(); });
  launch.reads = {x};
  launch.unneeded = {z};
  expectError(ErrorCode::BadArgument, {"`launch`", "`unneeded`", "`reads`"},
              [&] { launch(); });
  launch.unneeded = {};
  launch();
  EXPECT_EQ(tape.size(), 1u);
  recording.reset();
  expectError(ErrorCode::NotDifferentiable, {"`launch`", "`gradient`"},
              [&] { tape.backward(y); });
}

TEST_F(CustomLaunches, MustNameWhatTheirPrimalUses) {
  CustomLaunch launch{.name = "launch", .reads = {x}, .writes = {y}};
  auto expectRefused = [&](std::initializer_list<std::string> parts,
                           std::function<void()> primal) {
    launch.primal = std::move(primal);
    auto recording = tape.record();
    expectError(ErrorCode::BadArgument, parts, [&] { launch(); });
    EXPECT_EQ(tape.size(), 0u);
  };
  expectRefused({"`primal` of custom launch `launch`", "reads",
                 "argument 1 of kernel `square`", "`reads`"},
                [&] { square(z, y); });
  expectRefused({"writes argument 2 of kernel `square`", "`writes`"},
                [&] { square(x, z); });
  expectRefused({"reads an array of f64", "`reads`"}, [&] { z.to_host(); });
  expectRefused({"reads an array of f64"}, [&] { z.data(); });
  expectRefused({"writes an array of f64"}, [&] { z.fill(1); });
  expectRefused({"reads argument 1", "only its `writes`"},
                [&] { square(y, make()); });
  expectRefused({"writes argument 2"}, [&] { square(x, x.grad()); });
  expectRefused({"reads argument 1"},
                [&] { square.grad(initial_state, z, y); });
  launch.primal = [&] {
    Array<double> own = make();
    square(x, own);
    square(own, y);
    square(y, own);
    (void)y.to_host();
  };
  launch(); // is not recorded
  auto recording = tape.record();
  launch();
  EXPECT_EQ(tape.size(), 1u);
}

TEST_F(CustomLaunches, MustNameWhatTheirGradientReads) {
  Array<double> w = make(3);
  CustomLaunch launch{.name = "launch",
                      .reads = {x, w},
                      .writes = {y},
                      .unneeded = {y},
                      .primal = [&] { square(x, y); }};
  auto run = [&](std::function<void()> gradient) {
    launch.gradient = std::move(gradient);
    tape.clear();
    {
      auto recording = tape.record();
      launch();
    }
    tape.backward(y);
  };
  expectError(ErrorCode::BadArgument,
              {"`gradient` of custom launch `launch`", "reads",
               "argument 1 of kernel `square`", "`reads`"},
              [&] { run([&] { square(z, x.grad()); }); });
  expectError(ErrorCode::BadArgument, {"reads argument 1", "`unneeded`"},
              [&] { run([&] { square(y, x.grad()); }); });
  expectError(ErrorCode::BadArgument, {"reads argument 1"},
              [&] { run([&] { square.grad(z, y); }); });
  run([&] {
    square(x, y); // again
    square(y, z);
    square(w, make());
    pull(z, y.grad(), x.grad());
  });
  EXPECT_NEAR(at(x.grad()), std::pow(0.5, 4), 1e-15);
}

TEST_F(CustomLaunches, KeepReadersOnOtherThreadsFromOldValues) {
  CustomLaunch launch{
      .name = "launch",
      .reads = {x},
      .writes = {y},
      .primal = [&] { square(x, y); },
      .gradient =
          [&] {
            EXPECT_EQ(at(x), 0.5);
            std::thread([&] {
              for (auto &&read :
                   {std::function<void()>([&] { x.to_host(); }),
                    std::function<void()>([&] { x.data(); }),
                    std::function<void()>([&] { square(x, z); }),
                    std::function<void()>([&] { square.grad(x, y); })})
                expectError(ErrorCode::BadArgument, {"another thread"}, read);
              EXPECT_EQ(at(z), 0);
            }).join();
          }};
  {
    auto recording = tape.record();
    launch();
  }
  x.fill(2);
  tape.backward(y);
  EXPECT_EQ(at(x), 2);
}

TEST_F(CustomLaunches, NeedGradientsOfWhatTheyCarry) {
  Array<double> plain = device.array<double>({n});
  CustomLaunch launch{.name = "launch",
                      .reads = {x},
                      .writes = {plain},
                      .primal = [&] { square(x, plain); },
                      .gradient = [] {}};
  {
    auto recording = tape.record();
    launch();
    sum(plain, loss);
  }
  expectError(ErrorCode::MissingGradient,
              {"argument 1", "`sum`", "entry 2", "`launch`", "entry 1"},
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

/// A gradient by hand leaves what the recording cannot differentiate.
TEST_F(CustomLaunches, NameAGradientThatALaunchReads) {
  CustomLaunch launch = exponential();
  {
    auto recording = tape.record();
    launch();
    launch.grad();
    sum(x.grad(), loss);
  }
  expectError(ErrorCode::MissingGradient,
              {"`sum`", "the gradient of custom launch `exponential`"},
              [&] { tape.backward(loss); });
}
