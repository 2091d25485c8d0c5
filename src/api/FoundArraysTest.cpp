#include "api/TestKernels.h"
#include "conformance/Errors.h"

using namespace costate;
using costate::test::expectError;

namespace {
/// Custom launches that do not name their arrays.
class FoundArrays : public testing::Test {
protected:
  static constexpr int n = 4;

  Array<double> make(double value) {
    Array<double> array = device.array<double>({n}, grad);
    array.fill(value);
    return array;
  }
  CustomLaunch launch(std::function<void()> gradient) {
    return {.name = "launch",
            .finds_arrays = true,
            .primal = [this] { square(x, y); },
            .gradient = std::move(gradient)};
  }
  template <class Body> void record(Body body) {
    tape.clear();
    auto recording = tape.record();
    body();
  }

  Device device =
      Device::open("cpu", {.threads = 2, .memory_limit = size_t(1) << 20});
  Array<double> x = make(3), y = make(0), z = make(1);
  Array<double> loss = device.array<double>({}, grad);
  Tape tape;

  Kernel square = test::makeSquare();
  Kernel sum = test::makeSum();
};
} // namespace

TEST_F(FoundArrays, HoldWhatTheLaunchLeft) {
  CustomLaunch custom = launch([&] {
    EXPECT_EQ(x.to_host()[1], 3);
    EXPECT_EQ(y.to_host()[1], 9);
    square.grad(x, y);
    x.fill(100);
    z.fill(5); // is not in the recording
  });
  record([&] {
    custom();
    x.fill(7);
    sum(y, loss);
    y.fill(8);
  });
  EXPECT_EQ(tape.size(), 4u);
  for (int times = 0; times < 2; ++times) {
    tape.backward(loss, {.clear_inputs = true});
    EXPECT_EQ(x.grad().to_host()[1], 6);
    EXPECT_EQ(x.to_host()[1], 7);
    EXPECT_EQ(y.to_host()[1], 8);
    EXPECT_EQ(z.to_host()[1], 5);
  }
}

TEST_F(FoundArrays, AreErrorsWhereTheyAreNotKept) {
  CustomLaunch custom = launch([&] { square(z, x.grad()); });
  record([&] {
    custom();
    sum(y, loss);
  });
  z.fill(2); // was not used by the launch
  expectError(ErrorCode::CannotReplay,
              {"`gradient` of custom launch `launch`", "reads", "argument 1",
               "written since", "does not use"},
              [&] { tape.backward(loss); });
  // In one launch, what it reads it may have written first, unless it is old.
  Kernel both =
      kernel("both", [](ArrayRef<double, 1> a, ArrayRef<double, 1> b) {
        parallel(a.size(0), [&](Index i) { a(i) = a(i) + b(i); });
      });
  custom.gradient = [&] { both(z, x); };
  record([&] { custom(); });
  z.fill(2);
  expectError(ErrorCode::CannotReplay, {"written since"},
              [&] { tape.backward(y); });
  custom.gradient = [&] {
    z.fill(1);
    both(z, x);
    square.grad(x, y);
  };
  tape.clear();
  record([&] { custom(); });
  tape.backward(y);
  custom.reads = {x};
  expectError(ErrorCode::BadArgument, {"names arrays"},
              [&] { record([&] { custom(); }); });
}

/// Nobody knows that they are needed, so a program without them has to run.
TEST_F(FoundArrays, AreNotKeptWhereMemoryIsShort) {
  constexpr int many = 60000; // 480 of 1024 KB
  Array<double> big = device.array<double>({many});
  bool reads = false;
  CustomLaunch custom{.name = "launch",
                      .finds_arrays = true,
                      .primal =
                          [&] {
                            big.fill(1);
                            square(x, y);
                          },
                      .gradient =
                          [&] {
                            if (reads)
                              big.to_host();
                            square.grad(x, y);
                          }};
  record([&] {
    custom();
    big.fill(2);
    sum(y, loss);
  });
  tape.backward(loss);
  EXPECT_EQ(x.grad().to_host()[0], 6);
  reads = true;
  expectError(ErrorCode::CannotReplay, {"no copy could be kept"},
              [&] { tape.backward(loss); });
}

TEST_F(FoundArrays, PassByWithoutAGradient) {
  CustomLaunch aside{.name = "aside", .finds_arrays = true, .primal = [&] {
                       z.fill(4);
                       square(z, y);
                     }};
  record([&] {
    square(x, y);
    aside();
    sum(y, loss);
  });
  tape.backward(loss);
  EXPECT_EQ(loss.to_host()[0], 4 * 16);
  EXPECT_EQ(x.grad().to_host()[0], 6);
  record([&] {
    aside();
    square(x, z);
  });
  expectError(ErrorCode::BadArgument, {"nothing in the recording writes"},
              [&] { tape.backward(y); });
}

/// As `primal` lets go of it.
TEST_F(FoundArrays, LiveNoLongerThanOthersWantThem) {
  CustomLaunch custom = launch([&] { square.grad(x, y); });
  custom.primal = [&] {
    Array<double> temporary = device.array<double>({1000});
    temporary.fill(1);
    square(x, y);
  };
  size_t before = device.current_bytes();
  record([&] { custom(); });
  EXPECT_EQ(device.current_bytes(), before);
}
