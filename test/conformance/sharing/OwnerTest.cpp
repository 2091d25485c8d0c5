/// Gradients ask at run time whether several work items use an element, and
/// refuse where what one of them finds is left to chance.

#include "conformance/Errors.h"
#include "conformance/Gradients.h"

using namespace costate;
using namespace costate::test;

namespace {

/// Leaves add to their parents, in the array that they are read from: several
/// to one, which nobody reads.
TEST(Owner, SeveralAddToAnElementThatNobodyReads) {
  Kernel k = kernel("collect", [](ArrayRef<double, 1> x, ArrayRef<int, 1> leaf,
                                  ArrayRef<int, 1> parent) {
    parallel(leaf.size(), [&](Index i) { x(parent(i)) += 0.5 * x(leaf(i)); });
  });
  auto x = active<double>({1, 2, 3, 4, 5, 6, 7});
  auto leaf = constant<int>({3, 4, 5, 6});
  auto parent = constant<int>({1, 1, 1, 2});
  k(x, leaf, parent);
  x.grad().from_host({1, 2, 3, 4, 5, 6, 7});
  k.grad(x, leaf, parent);
  std::vector<double> expected{1, 2, 3, 5, 6, 7, 8.5};
  EXPECT_EQ(x.grad().to_host(), expected);
  // Read by somebody else, and by the first or last of those who add to it.
  for (std::vector<int> to :
       {std::vector{1, 1, 3, 2}, {3, 3, 1, 1}, {1, 1, 6, 6}}) {
    auto read = constant<int>(to);
    x.grad().from_host({1, 2, 3, 4, 5, 6, 7});
    expectError(ErrorCode::CannotReplay, {"`collect`", "uses the element"},
                [&] { k.grad(x, leaf, read); });
    EXPECT_EQ(x.grad().to_host()[3], 4);
  }
}

/// Likewise beside stores to elements of one's own.
TEST(Owner, SeveralAddToAnElementThatNobodyStores) {
  Kernel k = kernel("gather", [](ArrayRef<double, 1> x, ArrayRef<double, 1> y,
                                 ArrayRef<int, 1> to) {
    parallel(x.size(), [&](Index i) {
      y(i) = 3 * x(i);
      y(to(i)) += 2 * y(i);
    });
  });
  auto x = active<double>({1, 2, 3}), y = active<double>({0, 0, 0, 0, 0});
  auto apart = constant<int>({4, 4, 3}), own = constant<int>({4, 4, 0});
  k(x, y, apart);
  EXPECT_EQ(y.to_host(), (std::vector<double>{3, 6, 9, 18, 18}));
  y.grad().from_host({1, 10, 100, 1000, 10000});
  k.grad(x, y, apart);
  EXPECT_EQ(x.grad().to_host(), (std::vector<double>{60003, 60030, 6300}));
  expectError(ErrorCode::CannotReplay, {"`gather`"},
              [&] { k.grad(x, y, own); });
}

/// And beside stores whose indices are in memory, of numbers with and without a
/// derivative: who stores where another one adds, stores or loads is refused.
TEST(Owner, SeveralAddBesideStoresFoundInMemory) {
  Kernel k = kernel("place", [](ArrayRef<double, 1> x, ArrayRef<double, 1> y,
                                ArrayRef<int, 1> at, ArrayRef<int, 1> from,
                                ArrayRef<int, 1> to) {
    parallel(x.size(), [&](Index i) {
      IF (i < 2) {
        y(at(i)) = 3 * x(i);
      }
      ELSE { y(at(i)) = 5.0; }
      y(to(i)) += 2 * y(from(i));
    });
  });
  auto x = active<double>({1, 2, 3}), y = active<double>({0, 0, 0, 0, 0});
  auto at = constant<int>({2, 1, 0}), to = constant<int>({4, 4, 3});
  k(x, y, at, at, to);
  EXPECT_EQ(y.to_host(), (std::vector<double>{5, 6, 3, 10, 18}));
  y.grad().from_host({1, 10, 100, 1000, 10000});
  k.grad(x, y, at, at, to);
  EXPECT_EQ(x.grad().to_host(), (std::vector<double>{60300, 60030, 0}));
  auto refuses = [&](std::vector<int> stored, std::vector<int> loaded,
                     std::vector<int> added) {
    auto a = constant<int>(stored), b = constant<int>(loaded),
         c = constant<int>(added);
    expectError(ErrorCode::CannotReplay, {"`place`"},
                [&] { k.grad(x, y, a, b, c); });
  };
  refuses({2, 1, 0}, {2, 1, 0}, {4, 4, 2}); // adds where another one stores
  refuses({2, 1, 0}, {2, 1, 0}, {4, 0, 3}); // likewise, what has no derivative
  refuses({2, 2, 0}, {2, 2, 0}, {4, 4, 3}); // both store
  refuses({2, 1, 2}, {2, 1, 2}, {4, 4, 3}); // likewise
  refuses({2, 1, 0}, {1, 1, 0}, {4, 4, 3}); // loads what another one stores
  refuses({2, 1, 0}, {2, 4, 0}, {4, 3, 3}); // loads where another one adds
}

} // namespace
