#include "conformance/Errors.h"
#include "costate/costate.h"
#include "costate/syntax.h"

using namespace costate;

namespace {

/// What stands after the line of `text` that contains `part`.
std::string textAfter(const std::string &text, const std::string &part) {
  return text.substr(text.find('\n', text.find(part)) + 1);
}

} // namespace

TEST(Report, SaysThatStraightCodeSavesNothing) {
  Kernel k = kernel("square", [](ArrayRef<double, 1> x, ArrayRef<double, 1> y) {
    parallel(x.size(), [&](Index i) { y(i) = x(i) * x(i); });
  });
  Device device = Device::open("cpu");
  auto x = device.array<double>({3}, grad), y = device.array<double>({3}, grad);
  k(x, y);
  EXPECT_EQ(k.report().find("saved"), std::string::npos);
  k.grad(x, y);
  EXPECT_EQ(textAfter(k.report(), "gradient with respect to"),
            "    ReportTest.cpp:18: no lanes: straight code, left to the loop "
            "vectoriser\n"
            "    nothing is saved or computed again\n"
            "    largest tape of the last launch: 0 bytes\n");
}

TEST(Report, SaysHowAdditionsAreMade) {
  using X = ArrayRef<double, 1>;
  Kernel k = kernel("adds", [](ArrayRef<double, 2> x, X rows, X few, X read) {
    parallel({x.size(0), x.size(1)}, [&](Index i, Index j) {
      atomic_add(rows(i), x(i, j));
      atomic_add(few(j), x(i, j));
      atomic_add(read(j), x(i, j) + read(i));
    });
  });
  Device device = Device::open("cpu");
  auto x = device.array<double>({20, 30}), rows = device.array<double>({20}),
       few = device.array<double>({30}), read = device.array<double>({30});
  k(x, rows, few, read);
  auto line = [](const char *how, int number) {
    return how + std::string(" (line ") + std::to_string(number) + ")";
  };
  int first = __LINE__ - 12;
  EXPECT_NE(k.report().find("; additions: " + line("by slabs", first) + ", " +
                            line("to copies if the array is small", first + 1) +
                            ", " + line("atomic", first + 2) + "\n"),
            std::string::npos)
      << k.report();
}

TEST(Report, SaysWhichLinesAreGathered) {
  Kernel k = kernel("step", [](ArrayRef<double, 1> u, ArrayRef<double, 1> w) {
    parallel(u.size() - 2, [&](Index i) {
      Expr<double> before = u(i) * u(i);
      Expr<double> after = u(i + 2) * u(i + 1);
      w(i) = before + after;
    });
  });
  int first = __LINE__ - 5;
  Device device = Device::open("cpu");
  auto u = device.array<double>({30}, grad),
       w = device.array<double>({30}, grad);
  k.grad(u, w);
  std::string lines =
      std::to_string(first) + ", " + std::to_string(first + 1) + ")\n";
  EXPECT_NE(k.report().find("; additions: gathered (lines " + lines),
            std::string::npos)
      << k.report();
}

TEST(Report, SaysWhichArgumentsAreCopied) {
  Kernel k = kernel("squares", [](ArrayRef<double, 1> x) {
    parallel(x.size(), [&](Index i) { x(i) = x(i) * x(i); });
  });
  auto x = Device::best().array<double>({300}, grad);
  k.grad(initial_state, x);
  std::string report = k.report();
  EXPECT_NE(report.find("copies of arguments, from before they are "
                        "overwritten: 1; 2.344 KiB in the last launch"),
            std::string::npos)
      << report;
  EXPECT_NE(report.find("  recording primal with respect to arguments 1:"),
            std::string::npos)
      << report;
}

/// On a GPU, where they run: a step may be 0, and a loop comes back to them.
TEST(Report, SaysHowLargeTapesInLoopsWere) {
  Kernel k = kernel("again", [](ArrayRef<double, 1> x, ArrayRef<int, 1> steps,
                                ArrayRef<double, 1> y) {
    FOR (t, 0, steps.size()) {
      parallel(x.size(), [&](Index i) {
        Var<double> v = x(i);
        FOR (j, 0, 8, steps(i)) {
          v = sin(v);
        }
        y(i) += v;
      });
    }
  });
  Device device = Device::open("simt");
  auto x = device.array<double>({3}, grad), y = device.array<double>({3}, grad);
  auto steps = device.array<int>({3});
  steps.fill(1);
  k.grad(x, steps, y);
  EXPECT_NE(k.report().find("largest tape of the last launch: 64 bytes\n"),
            std::string::npos)
      << k.report();
}

// The lines from here on are those of another file.
TEST(Report, SaysWhatAGradientSavesAndComputesAgainByLines) {
  auto walk = [](ArrayRef<double, 1> x, ArrayRef<int, 1> trips,
                 ArrayRef<double, 1> y) {
#line 12 "walk.cpp"
    parallel(x.size(), [&](Index i) {
      Var<double> v = x(i);
      FOR (k, 0, trips(i)) {
        Var<int> n = 0;
        WHILE (v > 2.0) {
          v = v / 2.0;
          n += 1;
        }
        IF (v > 0.5) {
          v = v * sin(v);
        }
        v += cast<double>(n) * v;
      }
      y(i) = v;
    });
  };
  Kernel k = kernel("walk", walk, KernelOptions{.lanes = 4});
  Device device = Device::open("cpu", {.threads = 1});
  auto x = device.array<double>({3}, grad), y = device.array<double>({3}, grad);
  auto trips = device.array<int>({3});
  x.fill(9);
  trips.fill(4);
  k.grad(x, trips, y);
  EXPECT_EQ(
      textAfter(k.report(), "gradient with respect to"),
      R"(    walk.cpp:12: 4 work items at a time, as lanes in the order of their lengths, if these differ
    line         saves each time                                   computes again  loads again
    walk.cpp:16  16 bytes (trip count), each iteration of line 14               1            -
    walk.cpp:20  1 bit (condition), each iteration of line 14                   -            -
    walk.cpp:21  8 bytes, each iteration of line 14                             -            -
    walk.cpp:23  -                                                              1            -
    all          25 bytes                                                       2            -
    walk.cpp:14: keeps all iterations, of 25 bytes each
    largest tape of the last launch: 4 KiB
)");
}
