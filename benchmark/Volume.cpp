#include "Volume.h"

#include "costate/syntax.h"

namespace costate::bench {

namespace {

/// The trilinear interpolation of `cube` at a point inside of it.
template <class T>
Expr<T> sample(ArrayRef<T, 3> cube, Expr<T> x, Expr<T> y, Expr<T> z) {
  auto cell = [&](Expr<T> at, int dim) -> Index {
    return min(cast<int64_t>(at), cube.size(dim) - 2);
  };
  Index i = cell(x, 0), j = cell(y, 1), k = cell(z, 2);
  Expr<T> u = x - cast<T>(i), v = y - cast<T>(j), w = z - cast<T>(k);
  auto mix = [](Expr<T> a, Expr<T> b, Expr<T> t) -> Expr<T> {
    return a + t * (b - a);
  };
  auto edge = [&](Index a, Index b) {
    return mix(cube(a, b, k), cube(a, b, k + 1), w);
  };
  return mix(mix(edge(i, j), edge(i, j + 1), v),
             mix(edge(i + 1, j), edge(i + 1, j + 1), v), u);
}

} // namespace

template <class T> Kernel volumeRenderer(int lanes) {
  auto body = [](ArrayRef<T, 3> density, ArrayRef<T, 0> sigma,
                 ArrayRef<T, 2> image) {
    parallel({image.size(0), image.size(1)}, [&](Index i, Index j) {
      Expr<T> depth = cast<T>(density.size(2) - 1), step = T(0.5);
      Expr<T> across = (cast<T>(i) + T(0.5)) / cast<T>(image.size(0)) - T(0.5);
      Expr<T> down = (cast<T>(j) + T(0.5)) / cast<T>(image.size(1)) - T(0.5);
      Var<T> z = T(0.25), light = T(1), seen = T(0);
      WHILE (z < depth) {
        Expr<T> wide = T(0.5) * depth + T(0.5) * z;
        Expr<T> d = sample<T>(density, T(0.5) * depth + across * wide,
                              T(0.5) * depth + down * wide, z);
        Expr<T> through = exp(-sigma() * d * step);
        seen += light * (T(1) - through) * (T(1) - z / depth);
        light *= through;
        IF (light < T(0.01)) {
          BREAK;
        }
        z += step;
      }
      image(i, j) = seen;
    });
  };
  return kernel("volume", body, {.lanes = lanes});
}

template Kernel volumeRenderer<float>(int lanes);
template Kernel volumeRenderer<double>(int lanes);

} // namespace costate::bench
