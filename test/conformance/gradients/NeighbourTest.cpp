/// Gradients of kernels whose work items load elements of their neighbours.

#include "conformance/Gradients.h"

#include <array>
#include <functional>

using namespace costate;
using namespace costate::test;

namespace {

using Row = const ArrayRef<double, 1> &;
using Body = std::function<void(Row, Row, Row, Index, Index)>;

/// w(i) from neighbours in u and a factor k(i), for all i.
Kernel alongRow(const char *name, const Body &body) {
  return kernel(name, [&](ArrayRef<double, 1> u, ArrayRef<double, 1> k,
                          ArrayRef<double, 1> w) {
    Index n = u.size(0);
    parallel(n, [&](Index i) { body(u, k, w, i, n); });
  });
}

Kernel oneSided() {
  return alongRow("one_sided", [](Row u, Row k, Row w, Index i, Index n) {
    Var<double> s = -2.0 * u(i);
    IF (i > 0) {
      s += u(i - 1) * u(i - 1);
    }
    IF (i < n - 1) {
      s += u(i + 1) * k(i);
    }
    w(i) = u(i) + k(i) * s;
  });
}

Kernel inside() {
  return alongRow("inside", [](Row u, Row k, Row w, Index i, Index n) {
    IF ((i > 1) & (i < n - 2)) {
      w(i) = k(i) * (u(i - 2) * u(i + 2) + sin(u(i + 1)));
    }
  });
}

Kernel clamped() {
  return alongRow("clamped", [](Row u, Row k, Row w, Index i, Index n) {
    Expr<double> left = u(max(i - 2, 0)), right = u(min(i + 1, n - 1));
    w(i) = k(i) * left * left + right * u(i);
  });
}

Kernel periodic() {
  return alongRow("periodic", [](Row u, Row k, Row w, Index i, Index n) {
    Expr<double> left = u((i + n - 1) % n), right = u((i + 1) % n);
    w(i) += k((i + 1) % n) * (left * left + right) * u(i);
  });
}

/// The last work item and those before it load the same element.
Kernel reflected() {
  return alongRow("reflected", [](Row u, Row k, Row w, Index i, Index n) {
    Expr<double> left = u(abs(i - 1)), right = u(n - 1 - abs(n - 2 - i)),
                 far = u(select(i + 1 < n, i + 1, n - 2));
    w(i) = k(i) * left * left + right * u(i) + sin(far);
  });
}

/// A choice of indices, and one that depends on data.
Kernel chosen() {
  return alongRow("chosen", [](Row u, Row k, Row w, Index i, Index n) {
    Expr<double> right = u(select(i == n - 1, 0, i + 1));
    IF (k(i) > 1.1) {
      w(i) = right * right;
    }
    ELSE { w(i) = u(i) * k(select(i < 1, i, i - 1)); }
  });
}

/// A wave equation in two buffers: adjoints of the older one are taken and
/// replaced.
Kernel inPlace() {
  return alongRow("in_place", [](Row u, Row k, Row w, Index i, Index n) {
    IF ((i > 0) & (i < n - 1)) {
      w(i) = 2.0 * u(i) - w(i) + k(i) * sin(u(i - 1) + u(i + 1) - 2.0 * u(i));
    }
  });
}

/// Every second element, and those beside it.
Kernel coarse() {
  return kernel("coarse", [](ArrayRef<double, 1> u, ArrayRef<double, 1> k,
                             ArrayRef<double, 1> w) {
    parallel((u.size(0) - 1) / 2, [&](Index i) {
      w(i) = u(2 * i) + k(i) * u(2 * i + 1) * u(2 * i + 2);
    });
  });
}

/// Both the elements that a work item takes and those that it gives to.
Kernel levels() {
  return kernel("levels", [](ArrayRef<double, 2> u) {
    Index n = u.size(1);
    FOR (t, 0, u.size(0) - 1) {
      parallel(n, [&](Index i) {
        u(t + 1, i) = u(t, (i + 1) % n) * u(t, i) + u(t, max(i - 1, 0));
      });
    }
  });
}

/// A window, by a loop from the neighbour `first` before to the next one.
Kernel window(int first) {
  return alongRow("window", [&](Row u, Row k, Row w, Index i, Index n) {
    Var<double> s = 0.0;
    FOR (o, -first, 2) {
      IF ((i + o >= 0) & (i + o < n)) {
        s += u(i + o) * k(i);
      }
    }
    w(i) = s * s;
  });
}

/// A condition loads the one element or the other.
Kernel byValue() {
  return alongRow("by_value", [](Row u, Row k, Row w, Index i, Index n) {
    Var<double> left = 0.0, right = 0.0;
    IF (i > 0) {
      left = u(i - 1);
    }
    ELSE { left = u(n - 1); }
    IF (i < n - 1) {
      right = u(i + 1);
    }
    ELSE { right = u(i); }
    w(i) = left * right + k(i) * left;
  });
}

/// Work items are rows. In place: a row goes on with what the element before
/// has got; else iterations have elements of their own.
Kernel rows(bool inPlace) {
  return kernel("rows", [&](ArrayRef<double, 2> u, ArrayRef<double, 2> w) {
    Index n = u.size(1);
    parallel(u.size(0), [&](Index i) {
      FOR (j, 1, n) {
        Index above = max(i - 1, 0);
        w(i, j) = u(above, j) * u(i, j - 1) +
                  (inPlace ? 0.5 * w(i, j - 1) : 2.0 * w(i, j));
      }
    });
  });
}

/// Indices in three pieces with gaps between them, none of them long.
Kernel pieces() {
  return kernel("pieces", [](ArrayRef<double, 1> u, ArrayRef<double, 1> w) {
    parallel(w.size(0), [&](Index i) {
      w(i) = u(select(i < 2, i, select(i < 18, i + 20, i + 40)));
    });
  });
}

/// Fewer work items than elements: borders of the array are none of the range.
Kernel fewer(bool wraps) {
  return kernel("fewer", [&](ArrayRef<double, 1> u, ArrayRef<double, 1> w,
                             ArrayRef<double, 1> items) {
    Index n = u.size(0);
    parallel(items.size(0), [&](Index i) {
      w(i) = u(wraps ? (i + 1) % n : min(i + 1, n - 1)) + u(i + 2);
    });
  });
}

class Neighbours : public testing::TestWithParam<int> {};

void expectGradientsAlongRow(int n, const Kernel &k) {
  auto u = active(randomValues(n, 0.5, 1.5, 1)),
       c = active(randomValues(n, 0.5, 1.5, 2)),
       w = active(randomValues(n, 0.5, 1.5, 3));
  expectGradients({u, c, w}, {w}, k, u, c, w);
}

TEST_P(Neighbours, AlongARow) {
  for (const Kernel &k : {oneSided(), inside(), clamped(), periodic(), chosen(),
                          inPlace(), coarse(), window(2), byValue()})
    expectGradientsAlongRow(GetParam(), k);
}

TEST_P(Neighbours, ReflectedAtTheEnds) {
  if (GetParam() > 1)
    expectGradientsAlongRow(GetParam(), reflected());
}

TEST_P(Neighbours, InLevels) {
  int64_t n = GetParam();
  auto u = active(randomValues(3 * n, 0.5, 1.5, 1), {3, n});
  Kernel k = levels();
  expectGradients({u}, {u}, k, u);
}

TEST_P(Neighbours, InPieces) {
  int n = GetParam();
  auto u = active(randomValues(n + 40, 0.5, 1.5, 1)),
       w = active(randomValues(n, 0.5, 1.5, 2));
  Kernel k = pieces();
  expectGradients({u, w}, {w}, k, u, w);
}

TEST_P(Neighbours, OfFewerWorkItemsThanElements) {
  int n = GetParam();
  for (int more : {2, 3, 4, 13}) {
    auto u = active(randomValues(n + more, 0.5, 1.5, 1)),
         w = active(randomValues(n + 9, 0.5, 1.5, 2)),
         items = active(randomValues(n, 0.5, 1.5, 3));
    for (bool wraps : {false, true}) {
      Kernel k = fewer(wraps);
      expectGradients({u, w}, {w}, k, u, w, items);
    }
  }
}

TEST_P(Neighbours, OfIterationsWithElementsOfTheirOwn) {
  int64_t n = GetParam();
  for (bool inPlace : {false, true}) {
    auto u = active(randomValues(3 * n, 0.5, 1.5, 1), {3, n}),
         w = active(randomValues(3 * n, 0.5, 1.5, 2), {3, n});
    Kernel k = rows(inPlace);
    expectGradients({u, w}, {w}, k, u, w);
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, Neighbours, testing::Values(1, 2, 3, 4, 19, 40));

enum class Border { Inside, Periodic, Clamped };

/// w = u + k (sum of cubes of the neighbours - 6 u^3)
template <class T> Kernel laplacian(Border border) {
  return kernel("laplacian", [&](ArrayRef<T, 3> u, ArrayRef<T, 3> k,
                                 ArrayRef<T, 3> w) {
    auto cubeAt = [&](Index x, Index y, Index z) {
      Expr<T> v = u(x, y, z);
      return v * v * v;
    };
    auto cell = [&](Index x, Index y, Index z) {
      auto next = [&](Index i, int step, int dim) -> Index {
        Index n = u.size(dim);
        if (border == Border::Periodic)
          return (i + n + step) % n;
        if (border == Border::Clamped)
          return max(min(i + step, n - 1), 0);
        return i + step;
      };
      Expr<T> s = T(-6) * cubeAt(x, y, z);
      for (int step : {1, -1})
        s = s + cubeAt(next(x, step, 0), y, z) +
            cubeAt(x, next(y, step, 1), z) + cubeAt(x, y, next(z, step, 2));
      w(x, y, z) = u(x, y, z) + k(x, y, z) * s;
    };
    if (border == Border::Inside)
      parallel({u.size(0) - 2, u.size(1) - 2, u.size(2) - 2},
               [&](Index x, Index y, Index z) { cell(x + 1, y + 1, z + 1); });
    else
      parallel({u.size(0), u.size(1), u.size(2)}, cell);
  });
}

/// The adjoint of u by hand, and that of k.
std::array<std::vector<double>, 2>
byHand(Border border, std::array<int64_t, 3> n, const std::vector<double> &u,
       const std::vector<double> &k, const std::vector<double> &g) {
  std::vector<double> du(u.size()), dk(u.size());
  auto at = [&](int64_t x, int64_t y, int64_t z) {
    return (x * n[1] + y) * n[2] + z;
  };
  for (int64_t x = 0; x < n[0]; ++x)
    for (int64_t y = 0; y < n[1]; ++y)
      for (int64_t z = 0; z < n[2]; ++z) {
        std::array<int64_t, 3> me{x, y, z};
        auto isAtBorder = [&](int d) { return me[d] < 1 || me[d] > n[d] - 2; };
        if (border == Border::Inside &&
            (isAtBorder(0) || isAtBorder(1) || isAtBorder(2)))
          continue;
        int64_t i = at(x, y, z);
        double sum = -6 * u[i] * u[i] * u[i];
        du[i] += g[i] * (1 - 18 * k[i] * u[i] * u[i]);
        for (int d = 0; d < 3; ++d)
          for (int step : {1, -1}) {
            std::array<int64_t, 3> other = me;
            other[d] += step;
            if (border == Border::Periodic)
              other[d] = (other[d] + n[d]) % n[d];
            other[d] = std::clamp<int64_t>(other[d], 0, n[d] - 1);
            int64_t j = at(other[0], other[1], other[2]);
            sum += u[j] * u[j] * u[j];
            du[j] += g[i] * k[i] * 3 * u[j] * u[j];
          }
        dk[i] += g[i] * sum;
      }
  return {du, dk};
}

template <class T>
std::array<std::vector<T>, 3> laplacianGradient(const Device &device,
                                                Border border,
                                                std::array<int64_t, 3> n) {
  size_t count = n[0] * n[1] * n[2];
  auto filled = [&](unsigned seed) {
    std::vector<double> values = randomValues(count, 0.5, 1.5, seed);
    return std::vector<T>(values.begin(), values.end());
  };
  std::vector<int64_t> shape(n.begin(), n.end());
  Array<T> u = device.array<T>(shape, grad), k = device.array<T>(shape, grad),
           w = device.array<T>(shape, grad);
  u.from_host(filled(1));
  k.from_host(filled(2));
  w.grad().from_host(filled(3));
  laplacian<T>(border).grad(u, k, w);
  return {u.grad().to_host(), k.grad().to_host(), w.grad().to_host()};
}

constexpr Border borders[] = {Border::Inside, Border::Periodic,
                              Border::Clamped};

TEST(NeighboursInSpace, AreThoseOfAnAdjointByHand) {
  std::array<int64_t, 3> n{5, 7, 45};
  size_t count = n[0] * n[1] * n[2];
  for (Border border : borders) {
    auto [du, dk, dw] = laplacianGradient<double>(cpu(), border, n);
    auto [handU, handK] = byHand(border, n, randomValues(count, 0.5, 1.5, 1),
                                 randomValues(count, 0.5, 1.5, 2),
                                 randomValues(count, 0.5, 1.5, 3));
    for (size_t i = 0; i < count; ++i) {
      ASSERT_NEAR(du[i], handU[i], 1e-12 * 50) << i;
      ASSERT_NEAR(dk[i], handK[i], 1e-12 * 50) << i;
    }
  }
}

TEST(NeighboursInSpace, HaveTheBitsOfOneThread) {
  if (!isOnCpu())
    GTEST_SKIP() << "a GPU has no number of threads";
  std::array<int64_t, 3> n{20, 24, 50};
  for (Border border : borders) {
    auto one = laplacianGradient<float>(openDevice({.threads = 1}), border, n);
    for (int threads : {2, 7})
      EXPECT_EQ(
          laplacianGradient<float>(openDevice({.threads = threads}), border, n),
          one);
  }
}

} // namespace
