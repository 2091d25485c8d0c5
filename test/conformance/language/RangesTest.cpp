/// Ranges over the elements of an array, and over tiles.

#include "conformance/Errors.h"
#include "conformance/Gradients.h"

using namespace costate;
using namespace costate::test;

namespace {

using X = ArrayRef<double, 1>;
using M = ArrayRef<double, 2>;
using S = ArrayRef<double, 0>;
using Values = std::vector<double>;

TEST(Ranges, ElementsOfEveryRank) {
  Kernel k = kernel(
      "elements", [](ArrayRef<int, 0> a, ArrayRef<int, 1> b, ArrayRef<int, 3> c,
                     ArrayRef<Vec<float, 3>, 2> v, ArrayRef<int, 2> seen) {
        parallel(elements(a), [&] { a() += 1; });
        parallel(a, [&] { a() += 10; });
        parallel(elements(b), [&](Index i) { b(i) += cast<int>(i); });
        parallel(b, [&](Index i) { b(i) += 100; });
        parallel(c, [&](Index i, Index j, Index l) {
          c(i, j, l) = cast<int>(i * 100 + j * 10 + l);
        });
        parallel(elements(v), [&](Index i, Index j) { seen(i, j) += 1; });
      });
  auto a = cpu().array<int>({});
  a.fill(0);
  auto b = constant<int>({0, 0, 0});
  auto c = constant<int>(std::vector<int>(12), {2, 3, 2});
  auto seen = constant<int>(std::vector<int>(6), {2, 3});
  Array<Vec<float, 3>> v = cpu().array<Vec<float, 3>>({2, 3});
  k(a, b, c, v, seen);
  EXPECT_EQ(a.to_host()[0], 11);
  EXPECT_EQ(b.to_host(), (std::vector<int>{100, 101, 102}));
  EXPECT_EQ(c.to_host(), (std::vector<int>{0, 1, 10, 11, 20, 21, 100, 101, 110,
                                           111, 120, 121}));
  EXPECT_EQ(seen.to_host(), std::vector<int>(6, 1));
  auto none = constant<int>({}, {0});
  k(a, none, c, v, seen);
  EXPECT_EQ(a.to_host()[0], 22);
}

TEST(Ranges, GradientsOverElements) {
  Kernel k = kernel("elements", [](M x, M y, S loss) {
    parallel(x, [&](Index i, Index j) { y(i, j) = sin(x(i, j)) * x(0, j); });
    loss() +=
        sum(elements(y), [&](Index i, Index j) { return y(i, j) * x(i, j); });
  });
  auto x = active(randomValues(6, -1, 1), {2, 3}),
       y = active(Values(6), {2, 3});
  auto loss = zeroScalar(true);
  expectGradients({x}, {y, loss}, k, x, y, loss);
}

Kernel countTiles() {
  return kernel("tiles", [](ArrayRef<int, 2> seen, ArrayRef<int, 1> tiles_,
                            Scalar<int64_t> n, Scalar<int64_t> m) {
    parallel(tiles({n, m}, {4, 3}), [&](Tile<2> tile) {
      tiles_(0) += 1;
      atomic_max(tiles_(1), cast<int>(tile.size(0) * tile.size(1)));
      tile.each([&](Index i, Index j) { seen(i, j) += 1; });
    });
  });
}

/// Every element once, whatever the sizes are.
TEST(Ranges, TilesCoverTheRange) {
  Kernel k = countTiles();
  for (int64_t n : {-5, 0, 1, 4, 7, 8, 13})
    for (int64_t m : {-1, 0, 2, 3, 5, 9}) {
      int64_t rows = std::max<int64_t>(n, 1), columns = std::max<int64_t>(m, 1);
      auto seen =
          constant<int>(std::vector<int>(rows * columns), {rows, columns});
      auto count = constant<int>({0, 0});
      k(seen, count, n, m);
      bool empty = n <= 0 || m <= 0;
      EXPECT_EQ(seen.to_host(), std::vector<int>(rows * columns, !empty));
      int expected = empty ? 0 : int((n + 3) / 4 * ((m + 2) / 3));
      EXPECT_EQ(count.to_host()[0], expected) << n << " " << m;
      EXPECT_EQ(count.to_host()[1],
                empty ? 0 : std::min<int64_t>(n, 4) * std::min<int64_t>(m, 3));
    }
}

/// Sizes near the end of the numbers do not overflow.
TEST(Ranges, TilesOfHugeRanges) {
  Kernel k = kernel("huge", [](ArrayRef<int64_t, 1> out, Scalar<int64_t> n) {
    parallel(tiles(n, int64_t(1) << 62), [&](Tile<1> tile) {
      out(tile.begin() / (int64_t(1) << 62)) = tile.size();
    });
  });
  auto out = constant<int64_t>({0, 0});
  k(out, std::numeric_limits<int64_t>::max());
  EXPECT_EQ(out.to_host(),
            (std::vector<int64_t>{int64_t(1) << 62, (int64_t(1) << 62) - 1}));
}

TEST(Ranges, GradientsOverTiles) {
  Kernel k = kernel("blocked", [](M x, M y, X sums) {
    parallel(tiles(elements(x), {2, 2}), [&](Tile<2> tile) {
      Var<double> total = 0.0;
      tile.each([&](Index i, Index j) {
        y(i, j) = sin(x(i, j)) * x(tile.begin(0), tile.begin(1));
        total += y(i, j) * x(i, j);
      });
      sums(tile.begin(0)) += total;
    });
  });
  auto x = active(randomValues(15, -1, 1), {3, 5}),
       y = active(Values(15), {3, 5});
  auto sums = active(Values(3));
  expectGradients({x}, {y, sums}, k, x, y, sums);
}

TEST(Ranges, LoopsOverTheEndsOfATile) {
  Kernel k = kernel("ends", [](X x, X y) {
    parallel(tiles(x.size(), 4), [&](Tile<1> tile) {
      FOR (i, tile.begin(), tile.end()) {
        y(i) = x(i) * x(tile.end() - 1);
      }
    });
  });
  auto x = active<double>({1, 2, 3, 4, 5, 6}), y = active(Values(6));
  k(x, y);
  EXPECT_EQ(y.to_host(), (Values{4, 8, 12, 16, 30, 36}));
  expectGradients({x}, {y}, k, x, y);
}

TEST(Ranges, TilesOfNothing) {
  int line = 0;
  auto build = [&] {
    kernel("bad", [&](X x) {
      line = __LINE__ + 1;
      parallel(tiles(x.size(), 0), [&](Tile<1> tile) { x(tile.begin()) = 1; });
    });
  };
  expectError(ErrorCode::BadKernel, {"a tile of 0 work items"}, build);
  expectError(ErrorCode::BadKernel, {here(__FILE__, line)}, build);
}

} // namespace
