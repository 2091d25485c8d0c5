/// Compiled code that one process leaves to the next.

#include "TemporaryFolder.h"
#include "conformance/Errors.h"
#include "conformance/TestDevice.h"

#include "Labels.h"
#include "costate/cache.h"
#include "costate/costate.h"
#include "costate/syntax.h"

#include <cmath>
#include <cstdio>
#include <fstream>
#include <functional>
#include <regex>
#include <sys/wait.h>
#include <unistd.h>

COSTATE_LABEL("Cache.TheSecondProcessCompilesNothing", slow);
COSTATE_LABEL("Cache.ProcessesAtTheSameTimeGetInNobodysWay", slow);
COSTATE_LABEL("Cache.TheSecondProcessCompilesNothing", starts);
COSTATE_LABEL("Cache.ProcessesAtTheSameTimeGetInNobodysWay", starts);

using namespace costate;
using namespace costate::test;

namespace {

/// All other tests see what this build compiles; who sets the variable knows
/// better.
[[maybe_unused]] const int off = setenv("COSTATE_CACHE", "0", 0);

/// What the program of the tests below gives, bit by bit.
class Transcript {
public:
  void add(const std::string &name, const Array<double> &array) {
    text += name + ":";
    for (double number : array.to_host()) {
      char bits[40];
      std::snprintf(bits, sizeof bits, " %a", number);
      text += bits;
    }
    text += "\n";
  }
  void add(const std::string &name, const std::function<void()> &failing) {
    try {
      failing();
      text += name + ": no error\n";
    } catch (const Error &error) {
      text += name + ": " + error.what() + "\n";
    }
  }
  /// Without what every process does in its own time.
  void addReport(const Kernel &k) {
    text += std::regex_replace(
        k.report(), std::regex("(compiled|from the cache) in [0-9.]+ ms"),
        "is there");
  }
  std::string text;
};

Kernel makeRelax(KernelOptions options = {}) {
  return kernel(
      "relax",
      [](ArrayRef<double, 2> u, ArrayRef<double, 2> f, ArrayRef<int, 1> sweeps,
         ArrayRef<double, 2> y, Scalar<double> h) {
        Expr<double> scale = h * 2.0;
        parallel({u.size(0), u.size(1)}, [&](Index i, Index j) {
          Var<double> v = u(i, j);
          Var<int> iterations = 0;
          WHILE (iterations < sweeps[i]) {
            v = 0.5 * (v + scale * f(i, j) / v);
            iterations += 1;
            IF (abs(v * v - scale * f(i, j)) < 1e-12) {
              BREAK;
            }
          }
          FOR (k, 0, iterations) {
            v = v * sin(v) + 0.25;
          }
          y(i, j) = v;
        });
      },
      options);
}

void runModes(Transcript &transcript, const Device &device,
              KernelOptions options) {
  Kernel relax = makeRelax(options);
  auto u = device.array<double>({6, 5}, grad | dual),
       f = device.array<double>({6, 5}, grad | dual),
       y = device.array<double>({6, 5}, grad | dual);
  auto sweeps = device.array<int>({6});
  u.fill(1.5);
  f.fill(2.0);
  sweeps.from_host({0, 1, 2, 3, 5, 40});
  relax(u, f, sweeps, y, 0.3);
  transcript.add("primal", y);
  y.grad().fill(1);
  relax.grad(u, f, sweeps, y, 0.3);
  transcript.add("gradient of u", u.grad());
  transcript.add("gradient of f", f.grad());
  u.dual().fill(0.5);
  relax.jvp(u, f, sweeps, y, 0.3);
  transcript.add("tangent", y.dual());
  y.grad().fill(1);
  u.grad().fill(0);
  relax.gradient().jvp(u, f, sweeps, y, 0.3);
  transcript.add("Hessian", u.grad().dual());
  transcript.addReport(relax);
}

/// Overwrites what its gradient needs.
void runInPlace(Transcript &transcript, const Device &device) {
  Kernel step = kernel("step", [](ArrayRef<double, 1> x) {
    parallel(x.size(), [&](Index i) { x(i) = sin(x(i)) * x(i); });
    parallel(x.size(), [&](Index i) { x(i) = exp(x(i)); });
  });
  auto x = device.array<double>({4}, grad);
  x.from_host({0.1, 0.2, 0.3, 0.4});
  Tape tape;
  {
    auto recording = tape.record();
    step(x);
    step(x);
  }
  x.grad().fill(1);
  tape.backward();
  transcript.add("in place", x.grad());
  transcript.add("refused", [&] { step.grad(x); });
  transcript.addReport(step);
}

void runFailures(Transcript &transcript, const Device &device) {
  Kernel gather = kernel(
      "gather",
      [](ArrayRef<int, 1> at, ArrayRef<double, 1> x, ArrayRef<double, 1> y) {
        parallel(at.size(), [&](Index i) {
          ASSERT(at(i) != 7, "number {} of {}", i, at(i));
          y(i) = sqrt(x(at(i)));
        });
      },
      {.debug = true, .find_nan = true});
  auto at = device.array<int>({3});
  auto x = device.array<double>({2}, grad), y = device.array<double>({3}, grad);
  auto launched = [&] {
    gather(at, x, y);
    device.synchronize();
  };
  at.from_host({0, 0, 5});
  transcript.add("index", launched);
  at.from_host({0, 7, 0});
  transcript.add("assert", launched);
  at.from_host({0, 1, 0});
  x.from_host({1, -4});
  transcript.add("NaN", launched);
  transcript.add("gradient", [&] {
    gather.grad(at, x, y);
    device.synchronize();
  });
}

void runText(Transcript &transcript, const Device &device) {
  Kernel k = Kernel::from_ir(R"(
costate.kernel @cube(%x: !costate.array<f64, 0>) {
  %v = costate.load %x[] : !costate.array<f64, 0>
  %s = arith.mulf %v, %v : f64
  %w = arith.mulf %s, %v : f64
  costate.store %w, %x[] : !costate.array<f64, 0>
}
)");
  auto x = device.array<double>({});
  x.fill(1.1);
  k(x);
  transcript.add("text", x);
}

std::string readAll(const std::filesystem::path &path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Result {
  int status;
  std::string transcript;
  uint64_t compiled, loaded;
};

/// A process of its own that runs the program with a cache in `folder`.
Result runProcess(const std::filesystem::path &folder) {
  pid_t child = fork();
  if (child == 0) {
    setenv("COSTATE_CACHE", "1", 1);
    setenv("COSTATE_CACHE_DIR", (folder / "cache").c_str(), 1);
    setenv("COSTATE_TEST_FOLDER", folder.c_str(), 1);
    unsetenv("GTEST_OUTPUT");
    unsetenv("GTEST_TOTAL_SHARDS");
    unsetenv("GTEST_SHARD_INDEX");
    execl("/proc/self/exe", "costate-test", "--gtest_also_run_disabled_tests",
          "--gtest_filter=CacheProcess.DISABLED_Runs", "--gtest_brief=1",
          nullptr);
    _exit(127);
  }
  Result result{};
  waitpid(child, &result.status, 0);
  result.transcript = readAll(folder / "transcript");
  std::ifstream(folder / "counts") >> result.compiled >> result.loaded;
  std::filesystem::remove(folder / "transcript");
  std::filesystem::remove(folder / "counts");
  return result;
}

/// A cache for the kernels of one test of this process.
class UsesCache : public testing::Test {
protected:
  UsesCache() {
    setenv("COSTATE_CACHE", "1", 1);
    unsetenv("COSTATE_CACHE_DIR");
    use_cache({.folder = (folder.path / "cache").string()});
  }
  ~UsesCache() override {
    use_cache({});
    setenv("COSTATE_CACHE", "0", 1);
  }
  TemporaryFolder folder;
  Device device = openDevice();
};

} // namespace

TEST(CacheProcess, DISABLED_Runs) {
  const char *folder = std::getenv("COSTATE_TEST_FOLDER");
  if (!folder)
    GTEST_SKIP() << "this is a part of Cache.TheSecondProcessCompilesNothing";
  Transcript transcript;
  Device device = openDevice();
  runModes(transcript, device, {});
  runModes(transcript, device, {.debug = true});
  runModes(transcript, device, {.deterministic = true});
  runInPlace(transcript, device);
  runFailures(transcript, device);
  runText(transcript, device);
  std::ofstream(std::string(folder) + "/transcript") << transcript.text;
  CacheStatistics seen = cache_statistics();
  EXPECT_EQ(seen.problem, "");
  std::ofstream(std::string(folder) + "/counts")
      << seen.compiled << " " << seen.loaded;
}

TEST(Cache, TheSecondProcessCompilesNothing) {
  TemporaryFolder folder;
  Result first = runProcess(folder.path), second = runProcess(folder.path);
  ASSERT_EQ(first.status, 0);
  ASSERT_EQ(second.status, 0);
  EXPECT_GT(first.compiled, 10u);
  EXPECT_EQ(first.loaded, 0u);
  EXPECT_EQ(second.compiled, 0u);
  EXPECT_EQ(second.loaded, first.compiled);
  EXPECT_EQ(second.transcript, first.transcript);
  for (const char *part :
       {"CacheTest.cpp:", "Hessian: 0x", "number 1 of 7", "relax"})
    EXPECT_NE(first.transcript.find(part), std::string::npos)
        << first.transcript;
}

TEST(Cache, ProcessesAtTheSameTimeGetInNobodysWay) {
  TemporaryFolder folder;
  std::vector<std::filesystem::path> own;
  std::vector<pid_t> children;
  for (int k = 0; k < 3; ++k) {
    own.push_back(folder.path / std::to_string(k));
    std::filesystem::create_directory(own.back());
    std::filesystem::create_directory_symlink(folder.path,
                                              own.back() / "cache");
    pid_t child = fork();
    if (child == 0) {
      Result result = runProcess(own.back());
      std::ofstream(own.back() / "result") << result.transcript;
      _exit(result.status != 0);
    }
    children.push_back(child);
  }
  for (pid_t child : children) {
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  for (const std::filesystem::path &path : own)
    EXPECT_EQ(readAll(path / "result"), readAll(own[0] / "result"));
  EXPECT_NE(readAll(own[0] / "result"), "");
}

TEST_F(UsesCache, AKernelThatIsMadeAgainIsLoaded) {
  auto launch = [&](double factor) {
    Kernel k = kernel("scaled", [&](ArrayRef<double, 1> x) {
      parallel(x.size(), [&](Index i) { x(i) = factor * x(i); });
    });
    auto x = device.array<double>({1});
    x.fill(1);
    k(x);
    EXPECT_EQ(x.to_host()[0], factor);
    return k.report();
  };
  EXPECT_NE(launch(3).find("  primal: compiled in "), std::string::npos);
  EXPECT_NE(launch(3).find("  primal: from the cache in "), std::string::npos);
  EXPECT_NE(launch(std::nextafter(3.0, 4.0)).find("compiled in"),
            std::string::npos);
  CacheStatistics seen = cache_statistics();
  EXPECT_EQ(seen.compiled, 2u);
  EXPECT_EQ(seen.loaded, 1u);
  EXPECT_EQ(seen.folder, (folder.path / "cache").string());
  clear_cache();
  EXPECT_NE(launch(3).find("  primal: compiled in "), std::string::npos);
}

TEST_F(UsesCache, AMistakeIsNamedEachTime) {
  for (int k = 0; k < 2; ++k)
    expectError(
        ErrorCode::CannotReplay,
        {here(__FILE__, __LINE__ + 4), "this read may or may not"}, [&] {
          Kernel mixed =
              kernel("mixed", [](ArrayRef<double, 1> x, ArrayRef<double, 1> y) {
                parallel(x.size(), [&](Index i) {
                  y(0) += x(i);
                  x(i) = y(0) * x(i);
                });
              });
          auto x = device.array<double>({1}, grad),
               y = device.array<double>({1}, grad);
          mixed.grad(x, y);
        });
}

TEST_F(UsesCache, WithoutAFolderEverythingWorksAndTheReportSaysSo) {
  use_cache({.folder = "/dev/null/folder"});
  Kernel k = kernel("one", [](ArrayRef<double, 0> x) { x() = 1.0; });
  auto x = device.array<double>({});
  k(x);
  EXPECT_EQ(x.to_host()[0], 1);
  EXPECT_NE(k.report().find(
                "not all is kept for other processes: /dev/null/folder: "),
            std::string::npos)
      << k.report();
  EXPECT_NE(cache_statistics().problem, "");
}

TEST_F(UsesCache, ItCanBeSwitchedOff) {
  use_cache({.enabled = false});
  EXPECT_EQ(cache_statistics().folder, "");
  Kernel k = kernel("one", [](ArrayRef<double, 0> x) { x() = 1.0; });
  auto x = device.array<double>({});
  k(x);
  EXPECT_EQ(cache_statistics().compiled, 0u);
  EXPECT_FALSE(std::filesystem::exists(folder.path / "cache"));
}

// From here on lines are those of another file.
namespace {
#line 10 "moved.cpp"
Kernel walkAt10() {
  return kernel("walk",
                [](ArrayRef<int, 1> iterations, ArrayRef<double, 1> x) {
                  parallel(iterations.size(), [&](Index i) {
                    Var<double> v = x(iterations(i));
                    FOR (k, 0, iterations(i)) {
                      v = v * sin(v);
                    }
                    x(iterations(i)) = v;
                  });
                },
                {.debug = true});
}
#line 910 "moved.cpp"
Kernel walkAt910() {
  return kernel("walk",
                [](ArrayRef<int, 1> iterations, ArrayRef<double, 1> x) {
                  parallel(iterations.size(), [&](Index i) {
                    Var<double> v = x(iterations(i));
                    FOR (k, 0, iterations(i)) {
                      v = v * sin(v);
                    }
                    x(iterations(i)) = v;
                  });
                },
                {.debug = true});
}
#line 10 "moved.cpp"
Kernel walkWithALineMore() {
  return kernel("walk",
                [](ArrayRef<int, 1> iterations, ArrayRef<double, 1> x) {
                  parallel(iterations.size(), [&](Index i) {
                    Var<double> v = x(iterations(i));
                    FOR (k, 0, iterations(i)) {
                      v = v * sin(v);
                    }

                    x(iterations(i)) = v;
                  });
                },
                {.debug = true});
}
#line 10 "other.cpp"
Kernel walkElsewhere() {
  return kernel("walk",
                [](ArrayRef<int, 1> iterations, ArrayRef<double, 1> x) {
                  parallel(iterations.size(), [&](Index i) {
                    Var<double> v = x(iterations(i));
                    FOR (k, 0, iterations(i)) {
                      v = v * sin(v);
                    }
                    x(iterations(i)) = v;
                  });
                },
                {.debug = true});
}

std::string errorOf(const std::function<void()> &failing) {
  try {
    failing();
  } catch (const Error &error) {
    return error.what();
  }
  return "";
}

} // namespace

TEST_F(UsesCache, AKernelThatMovesInItsFileTakesItsLinesAlong) {
  auto iterations = device.array<int>({1});
  auto x = device.array<double>({3}, grad);
  iterations.fill(3);
  auto errorAt = [&](const Kernel &walk) {
    return errorOf([&] {
      walk(iterations, x);
      device.synchronize();
    });
  };
  for (Kernel (*make)() :
       {walkAt10, walkAt910, walkWithALineMore, walkElsewhere}) {
    uint64_t compiled = cache_statistics().compiled;
    std::string error = errorAt(make());
    EXPECT_NE(error.find(make == walkElsewhere ? "other.cpp:14"
                         : make == walkAt910   ? "moved.cpp:914"
                                               : "moved.cpp:14"),
              std::string::npos)
        << error;
    EXPECT_EQ(cache_statistics().compiled - compiled,
              make == walkAt910 ? 0u : 1u);
  }
}

TEST_F(UsesCache, ReportsAndTextsNameTheLinesOfToday) {
  auto iterations = device.array<int>({1});
  auto x = device.array<double>({3}, grad);
  iterations.fill(2);
  for (Kernel (*make)() : {walkAt10, walkAt910, walkAt910}) {
    Kernel walk = make();
    std::string line = make == walkAt910 ? "moved.cpp:91" : "moved.cpp:1";
    walk.grad(initial_state, iterations, x);
    EXPECT_NE(walk.report().find(line + "6 "), std::string::npos)
        << walk.report();
    std::string error = errorOf([&] { walk.grad(iterations, x); });
    EXPECT_NE(error.find(line + "8"), std::string::npos) << error;
  }
}
