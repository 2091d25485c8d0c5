#include "api/TapeTest.h"

using namespace costate;
using namespace costate::test;

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

TEST_F(Tapes, NameALossThatTheyDoNotCompute) {
  expectError(ErrorCode::BadArgument, {"recorded nothing"},
              [&] { tape.backward(loss); });
  {
    auto recording = tape.record();
    square(x, y);
  }
  expectError(ErrorCode::BadArgument, {"nothing in the recording writes"},
              [&] { tape.backward(loss); });
}

TEST_F(Tapes, ALossThatOnlyTheHostWritesIsAnError) {
  {
    auto recording = tape.record();
    square(x, y);
    loss.fill(3);
  }
  expectError(ErrorCode::BadArgument,
              {"nothing in the recording writes", "launch"},
              [&] { tape.backward(loss); });
}

TEST_F(Tapes, NeedALossWithAGradient) {
  Array<double> plain = device.array<double>({});
  expectError(ErrorCode::MissingGradient, {"`backward`"},
              [&] { tape.backward(plain); });
}

// RULE: carriers
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

/// A gradient of another recording is a derivative that this one cannot know.
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
  expectError(ErrorCode::MissingGradient, {"another `Tape`", "entry 1"},
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
