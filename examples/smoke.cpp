/// Which wind makes a letter of a cloud? Smoke drifts in a fluid that cannot
/// be compressed; what is sought is how the fluid moves at the start, so that
/// in the end the smoke is a C. Gradient descent goes through the simulation:
/// stable fluids (Stam, SIGGRAPH 1999) with semi-Lagrangian advection and a
/// pressure from Jacobi's iteration.
///
/// Each step overwrites the arrays of the one before, so memory holds no
/// history. The recording copies what its gradient needs, and nothing else.

#include "common/Picture.h"
#include "common/Problem.h"

#include <costate/costate.h>
#include <costate/syntax.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

using namespace costate;
using namespace example;

namespace {

using Flow = ArrayRef<Vec<double, 2>, 2>; ///< in cells per step
using Smoke = ArrayRef<double, 2>;

constexpr int sweeps = 12; ///< of Jacobi's iteration

/// The value at a point between the cells of a grid without borders: what
/// leaves on one side comes in on the other.
template <class Grid> auto sample(Grid grid, VecExpr<double, 2> point) {
  Index n = grid.size(0);
  VecExpr<double, 2> part = fract(point);
  Index i = mod(cast<int64_t>(floor(point.x())), n), k = mod(i + 1, n);
  Index j = mod(cast<int64_t>(floor(point.y())), n), l = mod(j + 1, n);
  auto left = mix(grid(i, j), grid(i, l), part.y());
  auto right = mix(grid(k, j), grid(k, l), part.y());
  return mix(left, right, part.x());
}

/// What flows here comes from where it was a step before.
template <class Grid> void advect(Flow flow, Grid old, Grid next) {
  parallel({next.size(0), next.size(1)}, [&](Index i, Index j) {
    VecExpr<double, 2> here(cast<double>(i), cast<double>(j));
    next(i, j) = sample(old, here - flow(i, j));
  });
}
Kernel advectFlow = kernel(
    "advect_flow", [](Flow flow, Flow next) { advect(flow, flow, next); });
Kernel advectSmoke =
    kernel("advect_smoke", [](Flow flow, Smoke smoke, Smoke next) {
      advect(flow, smoke, next);
    });

/// The neighbours of a cell.
struct Around {
  Around(Index i, Index j, Index n)
      : west(mod(i - 1, n)), east(mod(i + 1, n)), south(mod(j - 1, n)),
        north(mod(j + 1, n)) {}
  Index west, east, south, north;
};

Kernel diverge = kernel("diverge", [](Flow flow, Smoke divergence) {
  Index n = flow.size(0);
  parallel({n, n}, [&](Index i, Index j) {
    Around to(i, j, n);
    divergence(i, j) = 0.5 * (flow(to.east, j)[0] - flow(to.west, j)[0] +
                              flow(i, to.north)[1] - flow(i, to.south)[1]);
  });
});

Kernel relax = kernel("relax", [](Smoke divergence, Smoke old, Smoke next) {
  Index n = old.size(0);
  parallel({n, n}, [&](Index i, Index j) {
    Around to(i, j, n);
    next(i, j) = 0.25 * (old(to.east, j) + old(to.west, j) + old(i, to.north) +
                         old(i, to.south) - divergence(i, j));
  });
});

/// Takes away what the pressure does not allow.
Kernel project = kernel("project", [](Smoke pressure, Flow flow) {
  Index n = flow.size(0);
  parallel({n, n}, [&](Index i, Index j) {
    Around to(i, j, n);
    VecExpr<double, 2> slope(pressure(to.east, j) - pressure(to.west, j),
                             pressure(i, to.north) - pressure(i, to.south));
    flow(i, j) = flow(i, j) - 0.5 * slope;
  });
});

Kernel start =
    kernel("start", [](Flow wind, Smoke cloud, Flow flow, Smoke smoke) {
      parallel({wind.size(0), wind.size(1)}, [&](Index i, Index j) {
        flow(i, j) = wind(i, j);
        smoke(i, j) = cloud(i, j);
      });
    });

Kernel compare =
    kernel("compare", [](Smoke smoke, Smoke letter, ArrayRef<double, 0> loss) {
      Index n = smoke.size(0);
      parallel({n, n}, [&](Index i, Index j) {
        Expr<double> miss = smoke(i, j) - letter(i, j);
        loss() += miss * miss / cast<double>(n * n);
      });
    });

class Weather : public Problem {
public:
  Weather(Device device, int n, int steps) : n(n), steps(steps) {
    auto field = [&] { return device.array<double>({n, n}, grad); };
    auto vectors = [&] { return device.array<Vec<double, 2>>({n, n}, grad); };
    wind = vectors(), flow = vectors(), otherFlow = vectors();
    cloud = field(), letter = field(), smoke = field(), otherSmoke = field();
    divergence = field(), pressure = field(), otherPressure = field();
    miss = device.array<double>({}, grad);
    cloud.from_host(picture([](double r, double) { return r - 0.235; }));
    letter.from_host(picture([](double r, double angle) {
      return std::max(std::abs(r - 0.25) - 0.07, 0.2 - 0.25 * angle);
    }));
  }

  double loss(const Numbers &values) override {
    set(values);
    blow();
    return miss.to_host()[0];
  }

  double gradient(const Numbers &values, Numbers &slope) override {
    set(values); // before the recording: it is what the gradient is for
    Tape tape;
    {
      auto recording = tape.record();
      blow();
    }
    wind.grad().fill({0, 0});
    tape.backward(miss);
    slope = flat(wind.grad().to_host());
    return miss.to_host()[0];
  }

  bool draw(const std::string &file) const;

private:
  /// 1 where the distance to a shape, by radius and angle, is negative, 0
  /// outside, with a soft border.
  template <class Distance> Numbers picture(Distance distance) const {
    Numbers values;
    for (int i = 0; i < n; ++i)
      for (int j = 0; j < n; ++j) {
        double x = (i + 0.5) / n - 0.5, y = (j + 0.5) / n - 0.5;
        double d = distance(std::hypot(x, y), std::abs(std::atan2(y, x)));
        values.push_back(std::clamp(0.5 - d * n / 3, 0.0, 1.0));
      }
    return values;
  }

  void set(const Numbers &values) {
    wind.from_host(pointsOf<2>(values));
    miss.fill(0);
  }

  void makeIncompressible() {
    diverge(flow, divergence);
    for (int k = 0; k < sweeps; ++k) {
      relax(divergence, pressure, otherPressure);
      std::swap(pressure, otherPressure);
    }
    project(pressure, flow);
  }

  void blow() {
    film = {cloud.to_host()};
    start(wind, cloud, flow, smoke);
    pressure.fill(0);
    for (int t = 1; t <= steps; ++t) {
      makeIncompressible();
      if (t == 1)
        gust = flow.to_host();
      advectSmoke(flow, smoke, otherSmoke);
      advectFlow(flow, otherFlow);
      std::swap(smoke, otherSmoke);
      std::swap(flow, otherFlow);
      if (t % (steps / 3) == 0)
        film.push_back(smoke.to_host());
    }
    film.push_back(letter.to_host());
    compare(smoke, letter, miss);
  }

  const int n, steps;
  Array<Vec<double, 2>> wind, flow, otherFlow;
  Array<double> cloud, letter, smoke, otherSmoke;
  Array<double> divergence, pressure, otherPressure, miss;
  // Of the last run: smoke at four times and the letter; the flow at the start.
  std::vector<Numbers> film;
  Points<2> gust;
};

bool Weather::draw(const std::string &file) const {
  Picture picture(file, 960, 238);
  picture.data("film", [&](std::ostream &out) {
    for (const Numbers &smoke : film) {
      for (int j = 0; j < n; ++j, out << "\n")
        for (int i = 0; i < n; ++i)
          out << smoke[size_t(i * n + j)] << " ";
      out << "\n\n";
    }
  });
  picture.data("gust", [&](std::ostream &out) {
    for (int i = 2; i < n; i += 4)
      for (int j = 2; j < n; j += 4) {
        auto [x, y] = gust[size_t(i * n + j)];
        out << i << " " << j << " " << x << " " << y << "\n";
      }
  });
  return picture.draw("steps = " + std::to_string(steps) + R"(
set multiplot layout 1,5 margins 0.01,0.99,0.02,0.86 spacing 0.012
set palette defined (0 '#f1ede2', 1 '#26355d'); set cbrange [0:1]; unset colorbox
unset tics; set size square
set title 'smoke and wind' font ',13'
plot $film index 0 matrix with image, $gust using ($1-3*$3):($2-3*$4):(6*$3):(6*$4) \
     with vectors head size 1.2,25 filled lc rgb '#c2542d' lw 1.4
do for [k=1:3] {
  set title sprintf('after %d steps', k * steps / 3)
  plot $film index k matrix with image
}
set title 'what was wanted'
plot $film index 4 matrix with image
)");
}

/// A light wind: without any, all points would be sampled at a kink, where they
/// are cells.
Numbers breeze(int n) {
  Numbers wind(size_t(2 * n * n));
  for (size_t k = 0; k < wind.size(); ++k)
    wind[k] = 0.005 * std::sin(1.0 + double(k * k % 997));
  return wind;
}

} // namespace

int main(int argc, char **argv) {
  Weather weather(Device::best(), 64, 24);
  Numbers wind = breeze(64);
  printSlopes(weather, wind);
  Numbers losses = descend(weather, wind, 70, 0.02);
  bool isDrawn = weather.draw(argc > 1 ? argv[1] : "smoke.png");
  return isDrawn && losses.back() < 0.03 * losses.front() ? 0 : 1;
}
