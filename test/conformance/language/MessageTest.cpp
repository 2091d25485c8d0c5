/// Lines that kernels print, and what they assert.

#include "Labels.h"
#include "conformance/Errors.h"
#include "conformance/Gradients.h"

#include <algorithm>
#include <sstream>

COSTATE_LABEL("*", waits);

using namespace costate;
using namespace costate::test;

namespace {

using X = ArrayRef<double, 1>;

/// What `f` prints, line by line, without the folder of this file.
template <class F> std::vector<std::string> linesOf(F &&f) {
  testing::internal::CaptureStdout();
  f();
  std::istringstream text(testing::internal::GetCapturedStdout());
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line); lines.push_back(line))
    if (size_t at = line.find(" at "), end = line.rfind("MessageTest.cpp:");
        end != std::string::npos)
      line.erase(at + 4, end - at - 4);
  std::ranges::sort(lines);
  return lines;
}

std::string at(int line) {
  return " at MessageTest.cpp:" + std::to_string(line);
}

TEST(Messages, NameKernelPlaceAndWorkItem) {
  int line = __LINE__ + 4;
  Kernel k = kernel("chatty", [](ArrayRef<float, 2> x) {
    parallel({x.size(0), x.size(1)}, [&](Index i, Index j) {
      IF (i == j) {
        print("x = {}, {{i}} = {}", x(i, j), i);
      }
    });
    print("done: {} {} {} {}", x(0, 0) > 0, cast<uint64_t>(Index(-1)), 7, 0.1);
    print("{}", cast<int>(x(0, 1)));
  });
  auto x = cpu().array<float>({2, 3});
  x.from_host({0.1f, -3, 2, 3, -2.5f, 5});
  std::string name = "kernel `chatty`";
  EXPECT_EQ(linesOf([&] { k(x); }),
            (std::vector<std::string>{
                name + at(line) + ", work item (0, 0): x = 0.1, {i} = 0",
                name + at(line) + ", work item (1, 1): x = -2.5, {i} = 1",
                name + at(line + 3) + ": done: true 18446744073709551615 7 0.1",
                name + at(line + 4) + ": -3"}));
}

TEST(Messages, HaveTheFormsOfPrintf) {
  Kernel k = kernel("forms", [](ArrayRef<float, 1> x) {
    print("{:.2f}|{:8}|{:-8.3f}|{:e}", x[0], x[0], x[0], x[0]);
    print("{:4d}|{:04}|{:+.1f}|{:x}", 3, 3, 3, uint64_t{255});
  });
  auto x = cpu().array<float>({1});
  x.fill(1.5f);
  std::vector<std::string> lines = linesOf([&] { k(x); });
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_TRUE(lines[0].ends_with(": 1.50|     1.5|1.500   |1.500000e+00"));
  EXPECT_TRUE(lines[1].ends_with(":    3|0003|+3.0|ff"));
}

TEST(Messages, OfVectorsAndMatrices) {
  int line = __LINE__ + 2;
  Kernel k = kernel("vectors", [](ArrayRef<Vec<double, 2>, 1> x) {
    Vec<int, 3> v(1, 2, 3);
    Mat<double, 2, 2> m = outer(x(0), x(1));
    print("{{{}}} is {}, {}", 7, x(1), v[2]);
    print("{:4.1f}: {}", m, v + 1);
  });
  auto x = cpu().array<Vec<double, 2>>({2});
  x.from_host({{1, 2}, {0.5, -3}});
  std::string name = "kernel `vectors`";
  EXPECT_EQ(
      linesOf([&] { k(x); }),
      (std::vector<std::string>{
          name + at(line + 2) + ": {7} is [0.5, -3], 3",
          name + at(line + 3) + ": [[ 0.5, -3.0], [ 1.0, -6.0]]: [2, 3, 4]"}));
  expectError(
      ErrorCode::BadKernel, {"MessageTest.cpp:", "more than 8 values"},
      [] { kernel("long", [](X x) { print("{}", identity<double, 3>()); }); });
}

/// Loops whose gradient has a tape, and forward mode.
TEST(Messages, AreNotPrintedByGradients) {
  Kernel k = kernel("loop", [](X x, X y) {
    parallel(x.size(), [&](Index i) {
      Var<double> v = x[i];
      FOR (t, 0, 2) {
        print("{}", t);
        v = v * v;
      }
      y[i] = v;
    });
  });
  auto x = active<double>({3}), y = active<double>({0});
  EXPECT_EQ(linesOf([&] { k(x, y); }).size(), 2u);
  y.grad().fill(1);
  EXPECT_EQ(linesOf([&] { k.grad(x, y); }).size(), 0u);
  EXPECT_DOUBLE_EQ(x.grad().to_host()[0], 4 * 27);
  x.dual().fill(1);
  EXPECT_EQ(linesOf([&] { k.jvp(x, y); }).size(), 2u);
  EXPECT_DOUBLE_EQ(y.dual().to_host()[0], 4 * 27);
}

TEST(Messages, OfManyWorkItems) {
  Kernel k = kernel("many", [](X x) {
    parallel(x.size(), [&](Index i) {
      print("{}", x[i]);
      x[i] = 1;
    });
  });
  auto x = active<double>(std::vector<double>(20000));
  std::vector<std::string> lines = linesOf([&] { k(x); });
  if (isOnCpu()) {
    EXPECT_EQ(lines.size(), 20000u);
    return;
  }
  ASSERT_EQ(lines.size(), 16385u);
  EXPECT_TRUE(std::ranges::any_of(lines, [](const std::string &line) {
    return line.find("3616 more lines") != std::string::npos;
  }));
  EXPECT_EQ(linesOf([&] { k(constant<double>({2})); }).size(), 1u);
}

Kernel asserting(KernelOptions options) {
  return kernel(
      "asserting",
      [](X x, X y) {
        parallel(x.size(), [&](Index i) {
          ASSERT(x[i] > 0, "x[{}] = {} is not positive", i, x[i]);
          y[i] = sqrt(x[i]);
        });
        ASSERT(y[0] < 10);
      },
      options);
}

TEST(Asserts, EndTheLaunchOfDebugKernels) {
  Kernel k = asserting({.debug = true});
  auto x = active<double>({4, 9}), y = active<double>({0, 0});
  k(x, y);
  y.grad().fill(1);
  k.grad(x, y);
  EXPECT_EQ(x.grad().to_host(), (std::vector<double>{0.25, 1 / 6.0}));
  x.from_host({1, -2});
  expectError(ErrorCode::AssertionFailed,
              {"kernel `asserting` at ", "MessageTest.cpp",
               "x[1] = -2 is not positive, in work item 1"},
              [&] { k(x, y); });
  x.from_host({400, 1});
  expectError(ErrorCode::AssertionFailed,
              {"what the kernel asserts does not hold"}, [&] { k(x, y); });
  x.from_host({16, 1});
  k(x, y);
  EXPECT_EQ(y.to_host(), (std::vector<double>{4, 1}));
}

TEST(Asserts, AreNotInOtherKernels) {
  Kernel k = asserting({});
  auto x = active<double>({-4, 9}), y = active<double>({0, 0});
  k(x, y);
  EXPECT_EQ(y.to_host()[1], 3);
}

TEST(Messages, ThatDoNotFitAreErrors) {
  auto refused = [](auto body, const std::string &text) {
    expectError(ErrorCode::BadKernel, {"MessageTest.cpp", text},
                [&] { kernel("bad", body); });
  };
  refused([](X x) { print("{} {}", x[0]); }, "does not fit to 1 value");
  refused([](X x) { print("{", x[0]); }, "write `{{` and `}}` for braces");
  refused([](X x) { print("", x[0]); }, "one `{}` for each value");
  refused([](X x) { print("{:s}", x[0]); }, "a form such as `{:8.3f}`");
  refused([](X x) { ASSERT(x[0] > 0, "{} {} {} {} {}", 1, 2, 3, 4, 5); },
          "a message of more than 4 values");
  refused(
      [](X x) {
        while_(
            [&] {
              print("a");
              return x[0] > 0;
            },
            [&] { x[0] = 0; });
      },
      "the condition of a `WHILE` prints");
}

} // namespace
