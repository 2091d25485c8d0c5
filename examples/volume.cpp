/// What is inside? Pictures of a glowing cloud from a few sides are given; what
/// is sought is the density of the cloud in every cell of a grid. A ray goes
/// through the cloud with as many steps as it needs: it ends where it leaves,
/// or where hardly any light from behind would come through. Gradient descent
/// through the rays finds a cloud that gives these pictures, and others.

#include "common/Picture.h"
#include "common/Problem.h"

#include <costate/costate.h>
#include <costate/syntax.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numbers>

using namespace costate;
using namespace example;

namespace {

using Volume = ArrayRef<double, 3>;
using Images = ArrayRef<double, 3>; ///< by side, row and column

constexpr double opaque = 1e-3; ///< less light than this ends a ray

/// The density at a point of the unit cube, between the cells.
Expr<double> densityAt(Volume density, VecExpr<double, 3> point) {
  Index n = density.size(0);
  VecExpr<double, 3> cell = point * cast<double>(n - 1);
  VecExpr<double, 3> part = fract(cell);
  auto index = [&](int k) { return clamp(cast<int64_t>(cell[k]), 0, n - 2); };
  Index i = index(0), j = index(1), k = index(2);
  auto along = [&](Index i, Index j) {
    return mix(density(i, j, k), density(i, j, k + 1), part[2]);
  };
  return mix(mix(along(i, j), along(i, j + 1), part[1]),
             mix(along(i + 1, j), along(i + 1, j + 1), part[1]), part[0]);
}

/// Densities are positive, whatever the parameters are.
Kernel densify = kernel("densify", [](Volume parameters, Volume density) {
  Index n = density.size(0);
  parallel({n, n, n}, [&](Index i, Index j, Index k) {
    density(i, j, k) = log1p(exp(parameters(i, j, k)));
  });
});

/// Parallel rays through the cloud from sides all around.
Kernel render = kernel("render", [](Volume density, Images images) {
  Index sides = images.size(0), pixels = images.size(1);
  parallel({sides, pixels, pixels}, [&](Index s, Index row, Index column) {
    auto coordinate = [&](Index k) {
      return (cast<double>(k) + 0.5) / cast<double>(pixels) - 0.5;
    };
    Expr<double> angle = cast<double>(s) * (2 * std::numbers::pi / 9);
    VecExpr<double, 3> up(0.0, 0.0, 1.0);
    VecExpr<double, 3> ahead(cos(angle), sin(angle), 0.0);
    VecExpr<double, 3> start = 0.5 - 0.8 * ahead - coordinate(row) * up * 1.2 +
                               coordinate(column) * 1.2 * cross(ahead, up);
    Expr<double> h = 0.7 / cast<double>(density.size(0));
    Var<double> way = 0.0, light = 0.0, clear = 1.0;
    WHILE ((way < 1.6) & (clear > opaque)) {
      VecExpr<double, 3> point = start + way * ahead;
      IF (all((point > 0.0) & (point < 1.0))) {
        Expr<double> passes = exp(-h * densityAt(density, point));
        light += clear * (1 - passes) * mix(1.0, 0.1, way / 1.6); // far is dark
        clear *= passes;
      }
      way += h;
    }
    images(s, row, column) = light;
  });
});

/// The last side is not compared.
Kernel compare = kernel(
    "compare", [](Images images, Images given, ArrayRef<double, 0> loss) {
      Index sides = images.size(0) - 1, pixels = images.size(1);
      parallel({sides, pixels, pixels}, [&](Index s, Index row, Index column) {
        Expr<double> miss = images(s, row, column) - given(s, row, column);
        loss() += miss * miss / cast<double>(sides * pixels * pixels);
      });
    });

/// A ball in a tilted ring: dense where the distance to them is negative.
Numbers ballInRing(int n) {
  Numbers density;
  for (int k = 0; k < n * n * n; ++k) {
    auto coordinate = [&](int k) { return double(k % n) / (n - 1) - 0.5; };
    double x = coordinate(k / n / n), y = coordinate(k / n), z = coordinate(k);
    double height = 0.8 * z - 0.6 * x, across = 0.6 * z + 0.8 * x;
    double ball = std::hypot(x, y, z) - 0.13;
    double ring = std::hypot(std::hypot(across, y) - 0.36, height) - 0.07;
    density.push_back(60 *
                      std::clamp(0.5 - std::min(ball, ring) * n, 0.0, 1.0));
  }
  return density;
}

class Scan : public Problem {
public:
  static constexpr int sides = 9;

  Scan(Device device, int n, int pixels) : n(n), pixels(pixels) {
    parameters = device.array<double>({n, n, n}, grad);
    density = device.array<double>({n, n, n}, grad);
    images = device.array<double>({sides, pixels, pixels}, grad);
    given = device.array<double>({sides, pixels, pixels});
    miss = device.array<double>({}, grad);
    density.from_host(ballInRing(n));
    render(density, images);
    given.from_host(images.to_host());
  }

  double loss(const Numbers &values) override {
    set(values);
    look();
    return miss.to_host()[0];
  }

  double gradient(const Numbers &values, Numbers &slope) override {
    set(values);
    Tape tape;
    {
      auto recording = tape.record();
      look();
    }
    parameters.grad().fill(0);
    tape.backward(miss);
    slope = parameters.grad().to_host();
    return miss.to_host()[0];
  }

  Numbers pictures() const { return images.to_host(); }
  Numbers givenPictures() const { return given.to_host(); }

  const int n, pixels;

private:
  void set(const Numbers &values) {
    parameters.from_host(values);
    miss.fill(0);
  }

  void look() {
    densify(parameters, density);
    render(density, images);
    compare(images, given, miss);
  }

  Array<double> parameters, density, images, given, miss;
};

/// One row for each of `rows`: some sides, the one that was not given last.
bool draw(const std::vector<Numbers> &rows, int pixels,
          const std::string &file) {
  Picture picture(file, 900, 560);
  picture.data("images", [&](std::ostream &out) {
    for (const Numbers &row : rows)
      for (int side : {0, 2, 4, 6, 8}) {
        for (int k = 0; k < pixels * pixels; ++k)
          out << row[size_t(side * pixels * pixels + k)]
              << ((k + 1) % pixels ? " " : "\n");
        out << "\n\n";
      }
  });
  return picture.draw(R"(
set multiplot layout 3,5 margins 0.1,0.99,0.02,0.93 spacing 0.008,0.012
set palette defined (0 '#10131f', 0.25 '#5b2a5e', 0.5 '#d1495b', 0.75 '#f3a65a', 1 '#fff6dc')
set cbrange [0:0.75]; unset colorbox; unset tics; set yrange [] reverse; unset border
array name[3] = ['given', 'at first', 'learnt']
do for [k=0:14] {
  unset title; unset ylabel
  if (k < 4) { set title sprintf('side %d', 2*k+1) font ',13' }
  if (k == 4) { set title 'not given' font ',13' }
  if (k % 5 == 0) { set ylabel name[k/5+1] font ',14' }
  plot $images index k matrix with image
}
)");
}

} // namespace

int main(int argc, char **argv) {
  Scan scan(Device::best(), 28, 36);
  Numbers parameters(size_t(scan.n * scan.n * scan.n), 0.5); // a thin fog
  printSlopes(scan, parameters);
  scan.loss(parameters);
  Numbers fog = scan.pictures();
  Numbers losses = descend(scan, parameters, 120, 0.3);
  bool isDrawn = draw({scan.givenPictures(), fog, scan.pictures()}, scan.pixels,
                      argc > 1 ? argv[1] : "volume.png");
  return isDrawn && losses.back() < 0.02 * losses.front() ? 0 : 1;
}
