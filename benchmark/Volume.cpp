#include "Volume.h"

#include "costate/syntax.h"

namespace costate::bench {

namespace {

using Cube = ArrayRef<double, 3>;

/// The trilinear interpolation of `cube` at a point inside of it.
Expr<double> sample(Cube cube, Expr<double> x, Expr<double> y, Expr<double> z) {
  auto cell = [&](Expr<double> at, int dim) -> Index {
    return min(cast<int64_t>(at), cube.size(dim) - 2);
  };
  Index i = cell(x, 0), j = cell(y, 1), k = cell(z, 2);
  Expr<double> u = x - cast<double>(i), v = y - cast<double>(j),
               w = z - cast<double>(k);
  auto mix = [](Expr<double> a, Expr<double> b,
                Expr<double> t) -> Expr<double> { return a + t * (b - a); };
  auto edge = [&](Index a, Index b) {
    return mix(cube(a, b, k), cube(a, b, k + 1), w);
  };
  return mix(mix(edge(i, j), edge(i, j + 1), v),
             mix(edge(i + 1, j), edge(i + 1, j + 1), v), u);
}

} // namespace

Kernel volumeRenderer() {
  return kernel("volume", [](Cube density, ArrayRef<double, 0> sigma,
                             ArrayRef<double, 2> image) {
    parallel({image.size(0), image.size(1)}, [&](Index i, Index j) {
      Expr<double> depth = cast<double>(density.size(2) - 1), step = 0.5;
      Expr<double> across =
          (cast<double>(i) + 0.5) / cast<double>(image.size(0)) - 0.5;
      Expr<double> down =
          (cast<double>(j) + 0.5) / cast<double>(image.size(1)) - 0.5;
      Var<double> z = 0.25, light = 1.0, seen = 0.0;
      WHILE (z < depth) {
        Expr<double> wide = 0.5 * depth + 0.5 * z;
        Expr<double> d = sample(density, 0.5 * depth + across * wide,
                                0.5 * depth + down * wide, z);
        Expr<double> through = exp(-sigma() * d * step);
        seen += light * (1.0 - through) * (1.0 - z / depth);
        light *= through;
        IF (light < 0.01) {
          BREAK;
        }
        z += step;
      }
      image(i, j) = seen;
    });
  });
}

} // namespace costate::bench
