/// Recordings with snapshots whose steps have arrays of their own.

#include "api/TapeTest.h"

#include <array>
#include <optional>

using namespace costate;
using namespace costate::test;
using Values = std::vector<double>;

namespace {
/// u = sin(u) f(t) + f(t), where f(t) is an array of its own for each step.
class StepInputs : public Tapes {
protected:
  static constexpr int64_t steps = 40, n = 1000;
  Array<double> u = device.array<double>({n}, grad);
  std::vector<Array<double>> inputs;
  Kernel drive =
      kernel("drive", [](ArrayRef<double, 1> u, ArrayRef<double, 1> f) {
        parallel(u.size(0), [&](Index i) { u(i) = sin(u(i)) * f(i) + f(i); });
      });

  /// An array that nobody has used, set by the host.
  Array<double> input(int64_t t) {
    Values values;
    for (int64_t i = 0; i < n; ++i)
      values.push_back(0.5 + 0.001 * static_cast<double>(i + t));
    inputs.push_back(device.array<double>({n}, grad));
    inputs.back().from_host(values);
    return inputs.back();
  }

  /// `act` records a step and may write more. Reversed twice.
  template <class F> std::vector<Values> gradients(size_t snapshots, F act) {
    Tape some({.snapshots = snapshots});
    inputs.clear();
    u.fill(0.2), u.grad().fill(0), loss.fill(0);
    {
      auto recording = some.record();
      for (int64_t t : some.steps(steps))
        act(t);
      sum(u, loss);
    }
    some.backward(loss);
    inputs[3].fill(0.125);
    some.backward(loss);
    peak = some.report().peak_bytes;
    std::vector<Values> all{u.grad().to_host(), u.to_host()};
    for (Array<double> &one : inputs)
      all.push_back(one.grad().to_host()), all.push_back(one.to_host());
    return all;
  }
  template <class F> void expectSame(F act) {
    std::vector<Values> expected = gradients(0, act);
    for (size_t snapshots : {1, 2, 5, 100})
      EXPECT_EQ(gradients(snapshots, act), expected) << snapshots;
  }

  size_t peak = 0; ///< of the last one
};
} // namespace

TEST_F(StepInputs, AreNoPartOfStates) {
  auto act = [&](int64_t t) { drive(u, input(t)); };
  expectSame(act);
  gradients(4, act);
  // With u at the end, a step, and the input that the host overwrites, twice.
  EXPECT_LE(peak, 8 * n * (4 + 1 + 1 + 2u) + 100);
}

/// Once more by the host, in parts, and by launches.
TEST_F(StepInputs, MayBeOverwritten) {
  expectSame([&](int64_t t) {
    Array<double> f = input(t);
    drive(u, f);
    drive(f, u);
    drive(u, f);
  });
  expectSame([&](int64_t t) {
    Array<double> f = input(t);
    drive(u, f);
    const double one = 0.25;
    f.write_at(std::array<int64_t, 1>{t}, &one, sizeof one);
    drive(u, f);
    f.fill(0.5 + 0.01 * static_cast<double>(t));
    drive(u, f);
  });
}

/// The launch writes it once more, the host does not.
TEST_F(StepInputs, MayBeMadeByWhatRunsAgain) {
  Array<double> w = device.array<double>({n}, grad);
  std::optional<Array<double>> held;
  CustomLaunch makes{.name = "makes",
                     .reads = {u},
                     .writes = {w},
                     .repeatable = true,
                     .primal =
                         [&] {
                           if (!held)
                             held = device.array<double>({n}, grad);
                           held->fill(0.25);
                           drive(w, *held);
                         },
                     .gradient = [] {}};
  expectSame([&](int64_t t) {
    if (t == 0)
      held.reset(), w.fill(0.5);
    drive(u, t == 1 ? w : input(t));
    if (t == 1) {
      makes();
      held->fill(0.75);
    }
    if (t >= 1)
      drive(u, *held);
  });
}

/// Arrays of which only a part is set begin before that.
TEST_F(StepInputs, MayBeSetInParts) {
  expectSame([&](int64_t t) {
    inputs.push_back(device.array<double>({n}, grad));
    const double one = 0.25;
    inputs.back().write_at(std::array<int64_t, 1>{t}, &one, sizeof one);
    drive(u, inputs.back());
    drive(inputs.back(), u);
  });
}
