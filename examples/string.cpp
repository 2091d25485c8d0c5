/// How was the string plucked? A string is let go and swings; the further it is
/// from rest, the harder it is pulled back. A camera has seen some of its
/// shapes on the way. Gradient descent finds the shape that it started from.
///
/// Each step overwrites the older of two arrays, so that memory holds no
/// history. A recording copies what its gradient needs before it is
/// overwritten.

#include <costate/costate.h>
#include <costate/syntax.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>
#include <vector>

using namespace costate;

constexpr int points = 48, steps = 1000, every = 25;

/// The shape one step later, from those now and one step before; the ends are
/// held.
Kernel step =
    kernel("step", [](ArrayRef<double, 1> before, ArrayRef<double, 1> now) {
      parallel(now.size() - 2, [&](Index j) {
        Index i = j + 1;
        Expr<double> u = now(i), bend = now(i - 1) - 2.0 * u + now(i + 1);
        before(i) = 2.0 * u - before(i) + 0.2 * bend - 0.0002 * u * u * u;
      });
    });

/// How far a shape is from the one that the camera has seen.
Kernel compare =
    kernel("compare", [](ArrayRef<double, 1> now, ArrayRef<double, 2> seen,
                         Scalar<int> picture, ArrayRef<double, 0> loss) {
      parallel(now.size(), [&](Index i) {
        Expr<double> difference = now(i) - seen(picture, i);
        loss() += difference * difference;
      });
    });

/// The string starts at rest.
Kernel pluck =
    kernel("pluck", [](ArrayRef<double, 1> shape, ArrayRef<double, 1> before,
                       ArrayRef<double, 1> now) {
      parallel(shape.size(), [&](Index i) {
        before(i) = shape(i);
        now(i) = shape(i);
      });
    });

int main() {
  Device device = Device::best();
  Array<double> shape = device.array<double>({points}, grad);
  Array<double> before = device.array<double>({points}, grad);
  Array<double> now = device.array<double>({points}, grad);
  Array<double> seen = device.array<double>({steps / every, points});
  Array<double> loss = device.array<double>({}, grad);

  // What happens after the string is let go; `watch` looks at some shapes.
  auto swing = [&](auto &&watch) {
    Array<double> older = before, newer = now;
    pluck(shape, older, newer);
    for (int t = 0; t < steps; ++t) {
      step(older, newer);
      std::swap(older, newer);
      if (t % every == 0)
        watch(t / every, newer);
    }
  };

  std::vector<double> plucked(points), pictures, guess(points, 0.0);
  for (int i = 0; i < points; ++i)
    plucked[i] = std::min(i / 12.0, (points - 1 - i) / 35.0);
  shape.from_host(plucked);
  swing([&](int, Array<double> &now) {
    for (double value : now.to_host())
      pictures.push_back(value);
  });
  seen.from_host(pictures);

  double error = 0;
  for (int iteration = 0; iteration <= 40; ++iteration) {
    shape.from_host(guess);
    loss.fill(0);
    Tape tape;
    {
      auto recording = tape.record();
      swing([&](int picture, Array<double> &now) {
        compare(now, seen, picture, loss);
      });
    }
    shape.grad().fill(0);
    tape.backward(loss);

    std::vector<double> gradient = shape.grad().to_host();
    error = 0;
    for (int i = 1; i < points - 1; ++i) {
      error = std::max(error, std::abs(guess[i] - plucked[i]));
      guess[i] -= 0.01 * gradient[i];
    }
    if (iteration % 10 == 0)
      std::printf(
          "iteration %2d   loss %10.3e   largest error of the shape %8.1e\n",
          iteration, loss.to_host()[0], error);
  }
  std::printf("%.1f kB held the arrays and what the recording kept\n",
              device.peak_bytes() / 1e3);
  return error < 1e-5 ? 0 : 1;
}
