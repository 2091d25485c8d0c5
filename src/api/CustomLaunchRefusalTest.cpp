#include "api/CustomLaunchTest.h"

#include <stdexcept>
#include <thread>

using namespace costate;
using namespace costate::test;

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
