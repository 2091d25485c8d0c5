/// Components of vectors and matrices that the lanes have side by side: the
/// same bits for every number of lanes, whatever the array holds besides.

#include "conformance/Gradients.h"

using namespace costate;
using namespace costate::test;

namespace {

constexpr int counts[] = {1, 2, 8, 16};

/// More than two vectors of 16 lanes, and a rest.
constexpr int64_t size = 45;

template <class T> using Vectors = ArrayRef<T, 2>;
template <class T> using Numbers = ArrayRef<T, 1>;

template <class T> std::vector<T> some(size_t count, double from) {
  std::vector<T> values(count);
  for (size_t k = 0; k < count; ++k)
    values[k] = T(from + 0.03 * double(k * 7 % 41));
  return values;
}

/// What a kernel leaves in its arrays, and in their gradients.
template <class T> using Results = std::vector<std::vector<T>>;

/// Runs `body(x, w, y, z)` and its gradient. Vectors have `extent` components.
template <class T, class F>
Results<T> run(const F &body, int64_t extent, int lanes) {
  Kernel k = kernel("components", body, KernelOptions{.lanes = lanes});
  auto vectors = [&](double from) {
    return active(some<T>(size_t(size * extent), from), {size, extent});
  };
  Array<T> x = vectors(0.2), y = vectors(-0.3), z = vectors(0.5),
           w = active(some<T>(size_t(size), -0.6));
  Results<T> results;
  for (Array<T> *array : {&y, &z})
    array->grad().from_host(some<T>(size_t(size * extent), 0.1));
  k(x, w, y, z);
  for (Array<T> *array : {&x, &w, &y, &z})
    results.push_back(array->to_host());
  k.grad(x, w, y, z);
  for (Array<T> *array : {&x, &w, &y, &z})
    results.push_back(array->grad().to_host());
  return results;
}

/// Whether the components that the kernel names are all, or one is left out.
template <class T, class F> void expectSame(const F &body, int64_t named) {
  for (int64_t extent : {named, named + 1}) {
    Results<T> alone = run<T>(body, extent, 1);
    for (int lanes : counts)
      EXPECT_EQ(run<T>(body, extent, lanes), alone)
          << lanes << " lanes, " << extent << " components";
  }
}

/// Momenta to velocities in cells that have mass: loads under a mask, stores
/// without.
template <class T, int count> struct Divide {
  void operator()(Vectors<T> x, Numbers<T> w, Vectors<T> y,
                  Vectors<T> z) const {
    parallel(w.size(0), [&](Index i) {
      std::vector<Var<T>> v(count);
      IF (w(i) > T(0)) {
        for (int c = 0; c < count; ++c)
          v[size_t(c)] = x(i, c) / w(i);
        IF (v[0] < T(1)) {
          v[count - 1] -= v[0];
        }
      }
      for (int c = 0; c < count; ++c)
        y(i, c) = v[size_t(c)];
      for (int c = 0; c < count; ++c)
        z(i, c) += v[size_t(c)] * x(i, 0);
    });
  }
};

TEST(LaneComponents, AreLoadedWhereLanesTakeABranch) {
  expectSame<double>(Divide<double, 2>(), 2);
  expectSame<float>(Divide<float, 3>(), 3);
  expectSame<double>(Divide<double, 4>(), 4);
}

/// Two of three, in cells that take the branch, on top of what is there.
struct Some {
  void operator()(Vectors<double> x, Numbers<double> w, Vectors<double> y,
                  Vectors<double> z) const {
    parallel(w.size(0), [&](Index i) {
      Var<double> v = x(i, 1);
      IF (w(i) > 0.0) {
        v = sin(v) * x(i, 2);
        y(i, 2) = v;
        z(i, 0) += v * v;
        y(i, 0) = v * w(i);
      }
      z(i, 1) -= v;
    });
  }
};

TEST(LaneComponents, LeaveOthersAsTheyAre) { expectSame<double>(Some(), 3); }

/// Each reads what has been stored just before.
struct Alternating {
  void operator()(Vectors<double> x, Numbers<double> w, Vectors<double> y,
                  Vectors<double> z) const {
    parallel(w.size(0), [&](Index i) {
      y(i, 0) = x(i, 1) * w(i);
      Var<double> v = y(i, 0) + y(i, 1);
      y(i, 1) = v * v;
      z(i, 0) += y(i, 1);
      IF (w(i) > 0.0) {
        z(i, 1) = z(i, 0) * y(i, 0);
        z(i, 0) += cos(z(i, 1));
      }
      y(i, 0) = z(i, 1) + z(i, 0);
    });
  }
};

TEST(LaneComponents, KeepTheOrderOfStoresAndLoads) {
  for (int64_t extent : {2, 3}) {
    Results<double> alone;
    for (int lanes : counts) {
      Kernel k =
          kernel("alternating", Alternating(), KernelOptions{.lanes = lanes});
      auto vectors = [&](double from) {
        return active(some<double>(size_t(size * extent), from),
                      {size, extent});
      };
      auto x = vectors(0.2), y = vectors(-0.3), z = vectors(0.5),
           w = active(some<double>(size_t(size), -0.6));
      k(x, w, y, z);
      Results<double> found = {y.to_host(), z.to_host()};
      alone = alone.empty() ? found : alone;
      EXPECT_EQ(found, alone) << lanes << " lanes, " << extent;
    }
  }
}

/// A matrix for each work item of two dimensions, and what is beside it.
TEST(LaneComponents, MayBeThoseOfAMatrix) {
  using Matrices = ArrayRef<double, 4>;
  for (std::vector<int64_t> shape :
       {std::vector<int64_t>{2, 19, 2, 2}, std::vector<int64_t>{2, 19, 2, 3}}) {
    size_t count = size_t(2 * 19 * 2 * shape[3]);
    for (int lanes : counts) {
      Kernel k = kernel(
          "matrices",
          [](Matrices x, Matrices y) {
            parallel({x.size(0) - 1, x.size(1)}, [&](Index i, Index j) {
              Var<double> v = x(i + 1, j, 1, 0) * x(i + 1, j, 0, 1);
              IF (v > 0.213) {
                v = sin(v) + x(i, j, 1, 1);
              }
              y(i, j, 0, 0) = v * x(i, j, 0, 0);
              y(i, j, 1, 1) = v * x(i, j, 1, 0);
            });
          },
          KernelOptions{.lanes = lanes});
      auto x = active(some<double>(count, 0.2), shape),
           y = active(std::vector<double>(count, 0.7), shape);
      k(x, y);
      expectGradients({x}, {y}, k, x, y);
    }
  }
}

} // namespace
