/// Debug kernels find races between the work items of a range, wherever they
/// hide, and nothing else.

#include "conformance/Errors.h"
#include "conformance/Gradients.h"

#include <algorithm>
#include <numeric>

using namespace costate;
using namespace costate::test;

namespace {

using X = ArrayRef<double, 1>;
using At = ArrayRef<int, 1>;

/// Where the second use is: set in front of it.
int line = 0;

std::vector<int> permutation(int n) {
  std::vector<int> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937(7));
  return order;
}

/// Arrays on a device of the given number of threads.
class Races : public testing::TestWithParam<int> {
protected:
  void SetUp() override {
    if (!isOnCpu())
      GTEST_SKIP() << "races are looked for on the CPU";
  }

  template <class T> Array<T> array(const std::vector<T> &values) {
    Array<T> made = device.array<T>({int64_t(values.size())}, flagsOf<T>());
    made.from_host(values);
    return made;
  }
  Array<double> numbers(int n) { return array(randomValues(n, 0.5, 1.5)); }

  /// Expects a race in the primal and the tangent, and in the gradient.
  template <class... A>
  void expectRace(std::initializer_list<std::string> parts, const Kernel &k,
                  const A &...arguments) {
    std::vector<std::string> all(parts);
    all.push_back("`" + k.name() + "`");
    auto check = [&](auto &&run) {
      for (const std::string &part : all)
        expectError(ErrorCode::Race, {part}, run);
    };
    check([&] { k(arguments...); });
    check([&] { k.jvp(arguments...); });
    check([&] { k.grad(arguments...); });
  }

  /// Expects that nothing is found.
  template <class... A>
  void expectNone(const Kernel &k, const A &...arguments) {
    EXPECT_NO_THROW(k(arguments...));
    EXPECT_NO_THROW(k.grad(arguments...));
    EXPECT_NO_THROW(k.jvp(arguments...));
  }

  Device device = openDevice({.threads = GetParam()});

private:
  template <class T> static Flags flagsOf() {
    return std::is_same_v<T, double> ? grad | dual : none;
  }
};

const KernelOptions debug{.debug = true};

} // namespace

// RULE: own-elements
TEST_P(Races, AStoreByTwoWorkItems) {
  Kernel k = kernel(
      "scatter",
      [](At at, X x, X y) {
        parallel(x.size(), [&](Index i) {
          line = __LINE__ + 1;
          y(at(i)) = x(i);
        });
      },
      debug);
  const int n = 20000;
  std::vector<int> order = permutation(n);
  auto x = numbers(n), y = numbers(n);
  expectNone(k, array(order), x, y);
  order[17] = order[n - 1];
  expectRace({here(__FILE__, line),
              "element " + std::to_string(order[17]) + " ", "argument 3",
              "work item 17", "work item " + std::to_string(n - 1), "stores",
              "`+=`"},
             k, array(order), x, y);
  // The device and the arrays are as good as before.
  expectNone(k, array(permutation(n)), x, y);
}

// RULE: own-elements
TEST_P(Races, AStoreAndAnUpdate) {
  int storeLine = 0;
  Kernel k = kernel(
      "mix",
      [&](At at, X x, X y) {
        parallel(x.size(), [&](Index i) {
          IF (i == 0) {
            storeLine = __LINE__ + 1;
            y(at(i)) = x(i);
          }
          ELSE {
            line = __LINE__ + 1;
            y(at(i)) += x(i);
          }
        });
      },
      debug);
  auto x = numbers(50), y = numbers(50);
  std::vector<int> zeros(50, 0), others(50, 1);
  others[0] = 0;
  expectNone(k, array(others), x, y);
  expectRace({here(__FILE__, storeLine), here(__FILE__, line), "work item 0",
              "element 0", "argument 3"},
             k, array(zeros), x, y);
}

/// What an atomic does has its name.
TEST_P(Races, AReadAndAnyAtomic) {
  using Element = ElementRef<int>;
  auto expect = [&](const char *does, auto &&update) {
    Kernel k = kernel(
        "peek",
        [&](At flags, At out) {
          parallel(out.size(), [&](Index i) {
            IF (i == 0) {
              update(flags(0));
            }
            ELSE { out(i) = flags(0); }
          });
        },
        debug);
    auto flags = device.array<int>({1}), out = device.array<int>({3});
    expectError(ErrorCode::Race,
                {does, "element 0 of argument 1",
                 "read the array in a range of its own"},
                [&] { k(flags, out); });
  };
  expect(" adds to ", [](Element e) { e += 1; });
  expect(" adds to ", [](Element e) { atomic_sub(e, 1); });
  expect(" combines bits of ", [](Element e) { e |= 1; });
  expect(" combines bits of ", [](Element e) { atomic_xor(e, 1); });
  expect(" exchanges ", [](Element e) { atomic_exchange(e, 1); });
  expect(" exchanges ", [](Element e) { atomic_compare_exchange(e, 0, 1); });
  expect(" takes the minimum or maximum of ",
         [](Element e) { atomic_min(e, 1); });
}

TEST_P(Races, AStoreInsideALoop) {
  Kernel k = kernel(
      "fill",
      [](At count, X x, X y) {
        parallel(x.size(), [&](Index i) {
          FOR (j, 0, count(i)) {
            line = __LINE__ + 1;
            y(i + j) = x(i);
          }
        });
      },
      debug);
  auto x = numbers(30), y = numbers(31);
  std::vector<int> counts(30, 1);
  expectNone(k, array(counts), x, y);
  counts[4] = 2;
  expectRace({here(__FILE__, line), "work item 4", "work item 5", "element 5"},
             k, array(counts), x, y);
}

TEST_P(Races, TwoIndicesThatMeet) {
  Kernel k = kernel(
      "antidiagonals",
      [](ArrayRef<double, 2> x, X y, Scalar<int> stride) {
        parallel({x.size(0), x.size(1)}, [&](Index i, Index j) {
          line = __LINE__ + 1;
          y(stride * i + j) = x(i, j);
        });
      },
      debug);
  auto x = device.array<double>({4, 3}, grad | dual);
  auto y = numbers(20);
  x.fill(1);
  expectNone(k, x, y, 3);
  expectRace({here(__FILE__, line), "work item (0, ", "argument 2", "element "},
             k, x, y, 2);
}

// RULE: own-elements
TEST_P(Races, ANeighbourThatIsRead) {
  Kernel k = kernel(
      "smooth",
      [](X x, X y, Scalar<int> shift) {
        parallel(x.size() - 1, [&](Index i) {
          Var<double> left = x(i + shift);
          line = __LINE__ + 1;
          x(i) = 2 * y(i);
          y(i) = left;
        });
      },
      debug);
  auto x = numbers(20), y = numbers(20);
  EXPECT_NO_THROW(k(x, y, 0));
  expectError(ErrorCode::Race,
              {"`smooth`", here(__FILE__, line), here(__FILE__, line - 2),
               "argument 1", "reads", "stores", "another array"},
              [&] { k(x, y, 1); });
}

// RULE: updates
TEST_P(Races, AReadOfWhatIsUpdated) {
  Kernel k = kernel(
      "peek",
      [](At at, X x, X y) {
        parallel(x.size(), [&](Index i) {
          y(at(i)) += x(i);
          line = __LINE__ + 1;
          x(i) = y(i);
        });
      },
      debug);
  auto x = numbers(20), y = numbers(20);
  std::vector<int> order = permutation(20), own(20);
  std::iota(own.begin(), own.end(), 0);
  EXPECT_NO_THROW(k(array(own), x, y));
  expectError(ErrorCode::Race,
              {"`peek`", here(__FILE__, line), here(__FILE__, line - 2), "adds",
               "reads", "range of its own"},
              [&] { k(array(order), x, y); });
}

TEST_P(Races, SharingThatIsNoRace) {
  Kernel k = kernel(
      "share",
      [](At at, X x, X y, X z) {
        z(0) = 0; // serial code is free
        z(0) = z(0) + x(0);
        parallel(x.size(), [&](Index i) {
          Var<double> v = x(at(i)) + x(0);
          y(at(i) / 2) += v;
          y(0) += v;
          z(at(i)) = v;
          z(at(i)) += 1;
          z(at(i)) = 2 * z(at(i));
        });
        parallel(x.size(), [&](Index i) { z(at(i)) += y(0) + y(at(i)); });
        FOR (t, 0, 3) {
          z(0) = z(0) + z(1);
        }
      },
      debug);
  auto x = numbers(3000), y = numbers(3000), z = numbers(3000);
  auto at = array(permutation(3000));
  EXPECT_NO_THROW(k(at, x, y, z));
  EXPECT_NO_THROW(k.jvp(at, x, y, z));
}

TEST_P(Races, AFlagThatAnyWorkItemRaises) {
  Kernel k = kernel(
      "flags",
      [](X x, At flags, Scalar<int> at) {
        parallel(x.size(), [&](Index i) {
          IF (x(i) > 1) {
            flags(0) = 1;
          }
          ELSE { flags(at) = 2; }
        });
      },
      debug);
  auto x = numbers(500);
  auto flags = device.array<int>({2});
  EXPECT_NO_THROW(k(x, flags, 1));
  expectError(ErrorCode::Race, {"`flags`", "argument 2", "element 0"},
              [&] { k(x, flags, 0); });
}

TEST_P(Races, AFunctionThatStoresTwoValuesInCommon) {
  Kernel k = kernel(
      "twice",
      [](X x, At flags, Scalar<int> at) {
        auto raise = [&](auto i, int value) { flags(i) = value; };
        parallel(x.size(), [&](Index i) {
          IF (x(i) > 1) {
            raise(0, 1);
          }
          ELSE { raise(at, 2); }
        });
      },
      debug);
  auto x = numbers(500);
  auto flags = device.array<int>({2});
  EXPECT_NO_THROW(k(x, flags, 1));
  expectError(ErrorCode::Race, {"`twice`", "argument 2", "element 0"},
              [&] { k(x, flags, 0); });
}

TEST_P(Races, AValueInCommonThatManyWorkItemsStore) {
  Kernel k = kernel(
      "common",
      [](X x, At at, X y) {
        Var<double> both = x(0) * x(1);
        parallel(x.size(), [&](Index i) {
          IF (x(i) > 0.7) {
            y(at(i)) = both;
          }
          y(7) = both;
        });
      },
      debug);
  const int n = 4000;
  auto x = numbers(n), y = numbers(8);
  std::vector<int> at(n);
  for (int i = 0; i < n; ++i)
    at[size_t(i)] = i % 5;
  auto targets = array(at);
  expectNone(k, x, targets, y);
  for (int round = 0; round < 20; ++round) {
    x.grad().fill(0);
    y.grad().from_host({1, 2, 4, 8, 16, 32, 64, 128});
    k.grad(x, targets, y);
    std::vector<double> values = x.to_host(), g = x.grad().to_host();
    EXPECT_EQ(g[0], (31 + 128) * values[1]);
    EXPECT_EQ(g[1], (31 + 128) * values[0]);
    EXPECT_EQ(y.grad().to_host(),
              (std::vector<double>{0, 0, 0, 0, 0, 32, 64, 0}));
  }
}

TEST_P(Races, TimeIndexedArrays) {
  Kernel k = kernel(
      "relax",
      [](ArrayRef<double, 2> u, At at, Scalar<int> t) {
        parallel(u.size(1), [&](Index i) {
          FOR (s, 0, 3) {
            u(3 * t + s + 1, at(i)) = 0.5 * u(3 * t + s, at(i));
          }
        });
      },
      debug);
  auto u = device.array<double>({10, 64}, grad | dual);
  u.fill(1);
  auto at = array(permutation(64));
  for (int t = 0; t < 3; ++t)
    expectNone(k, u, at, t);
  auto same = array(std::vector<int>(64, 5));
  expectError(ErrorCode::Race, {"element (4, 5) of argument 1"},
              [&] { k(u, same, 1); });
}

TEST_P(Races, EachRangeStartsAnew) {
  Kernel k = kernel(
      "ranges",
      [](At at, X x) {
        FOR (t, 0, 200) {
          parallel(x.size(),
                   [&](Index i) { x(at(i) + t - t) = cast<double>(t); });
          parallel(x.size(), [&](Index i) { x(at(x.size() - 1 - i)) += 1; });
        }
      },
      debug);
  auto x = numbers(40);
  EXPECT_NO_THROW(k(array(permutation(40)), x));
  EXPECT_EQ(x.to_host()[3], 200);
}

TEST_P(Races, AreFoundInDeterministicKernels) {
  Kernel k = kernel("ordered",
                    [](At at, X x, X y, X sum) {
                      parallel(x.size(), [&](Index i) {
                        line = __LINE__ + 1;
                        y(at(i)) = x(i) * x(i);
                        sum(at(i) / 4) += x(i);
                      });
                    },
                    {.debug = true, .deterministic = true});
  const int n = 5000;
  auto x = numbers(n), y = numbers(n), sum = numbers(n);
  std::vector<int> order = permutation(n);
  expectNone(k, array(order), x, y, sum);
  order[3000] = order[0];
  expectRace({here(__FILE__, line), "work item 3000", "work item 0"}, k,
             array(order), x, y, sum);
}

TEST_P(Races, NeedMemoryAndSaySo) {
  Device small = openDevice({.threads = GetParam(), .memory_limit = 4 << 20});
  Kernel k = kernel(
      "scatter",
      [](At at, X x, X y) {
        parallel(at.size(), [&](Index i) { y(at(i)) = x(i); });
      },
      debug);
  const int64_t n = 110000;
  auto x = small.array<double>({n}, grad), y = small.array<double>({n}, grad);
  auto at = small.array<int>({1});
  x.fill(3);
  auto use = [&] { return small.current_bytes(); };
  size_t before = use();
  expectError(ErrorCode::OutOfMemory, {"`scatter`", "argument 3", "races"},
              [&] { k(at, x, y); });
  y.grad().fill(1);
  expectError(ErrorCode::OutOfMemory, {"`scatter`", "argument 3"},
              [&] { k.grad(at, x, y); });
  EXPECT_EQ(y.to_host()[0], 0);
  EXPECT_EQ(y.grad().to_host()[0], 1);
  EXPECT_EQ(use(), before);
}

TEST_P(Races, AreNotLookedForWithoutDebug) {
  Kernel k = kernel("scatter", [](At at, X x, X y) {
    parallel(x.size(), [&](Index i) { y(at(i)) = x(i); });
  });
  auto x = numbers(20), y = numbers(20);
  EXPECT_NO_THROW(k(array(std::vector<int>(20, 0)), x, y));
}

INSTANTIATE_TEST_SUITE_P(Threads, Races, testing::Values(1, 3));
