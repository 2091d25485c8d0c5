/// Random recordings against the same program in which every launch writes to
/// fresh arrays: there, no value is ever overwritten.

#include "Labels.h"
#include "conformance/Errors.h"
#include "conformance/Gradients.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>

COSTATE_LABEL("*", repeats);
COSTATE_LABEL("*.EqualThemForLonger", host);

using namespace costate;
using namespace costate::test;
using detail::ArgumentValue;
using detail::Mode;
using Values = std::vector<double>;

namespace {

constexpr int n = 4, slots = 3;

/// The variables of a program.
enum Name { A, B, C, Slots, Weights, At, Iterations, nameCount };

bool isReal(Name name) { return name <= Slots; }

struct Variables {
  std::map<Name, AnyArray> arrays;

  explicit Variables(const Device &device) {
    for (Name name : {A, B, C})
      arrays[name] = device.array<double>({n}, grad);
    arrays[Slots] = device.array<double>({slots, n}, grad);
    arrays[Weights] = device.array<double>({n});
    arrays[At] = device.array<int>({n});
    arrays[Iterations] = device.array<int>({n});
  }
};

Values contents(const AnyArray &array) {
  if (array.dtype() == DType::F64)
    return Array<double>(array).to_host();
  std::vector<int> integers = Array<int>(array).to_host();
  return Values(integers.begin(), integers.end());
}

/// One thing that a program does.
struct Step {
  const Kernel *kernel = nullptr; ///< null: the host writes
  std::vector<Name> names = {};   ///< arguments, or what the host writes
  std::vector<bool> written = {};
  std::vector<int> scalars = {};
  Values values = {};      ///< of the host
  bool overwrites = false; ///< what its gradient needs
  bool recorded = true;    ///< variables without gradient may change outside
  std::vector<Step> body = {}; ///< of a custom launch
};

void writeByHost(const AnyArray &array, const Values &values) {
  if (array.dtype() == DType::F64)
    return Array<double>(array).from_host(values);
  Array<int>(array).from_host(std::vector<int>(values.begin(), values.end()));
}

std::vector<ArgumentValue> argumentsOf(const Step &step,
                                       const std::vector<AnyArray> &arrays) {
  std::vector<ArgumentValue> arguments(arrays.begin(), arrays.end());
  for (int scalar : step.scalars)
    arguments.emplace_back(scalar);
  return arguments;
}

void launch(Mode mode, const Step &step, const std::vector<AnyArray> &arrays) {
  step.kernel->launch_with(mode, argumentsOf(step, arrays));
}

/// Runs a program as a user would.
class Overwriting {
public:
  explicit Overwriting(const Device &device, TapeOptions options = {})
      : variables(device), tape(options), options(options) {}

  void run(const Step &step) {
    if (!step.body.empty())
      return custom(step);
    if (!step.kernel)
      return writeByHost(variables.arrays[step.names[0]], step.values);
    std::vector<AnyArray> arrays;
    for (Name name : step.names)
      arrays.push_back(variables.arrays[name]);
    launch(Mode::Primal, step, arrays);
  }

  Variables variables;
  Tape tape;

private:
  const TapeOptions options;

  void custom(const Step &step) {
    CustomLaunch launch{.name = "part"};
    for (size_t i = 0; i < step.names.size(); ++i) {
      launch.reads.push_back(variables.arrays[step.names[i]]);
      if (step.written[i])
        launch.writes.push_back(variables.arrays[step.names[i]]);
    }
    launch.primal = [this, step] {
      for (const Step &one : step.body)
        run(one);
    };
    launch.gradient = [this, step] {
      Tape inner(options.snapshot ? options : TapeOptions());
      {
        auto recording = inner.record();
        for (const Step &one : step.body)
          run(one);
      }
      inner.backward();
    };
    launch();
  }
};

/// Runs a program in which every launch writes to fresh arrays, and its
/// gradient by hand.
class Fresh {
public:
  explicit Fresh(const Device &device) : device(device), variables(device) {
    for (auto &[name, array] : variables.arrays)
      first[name] = array;
  }

  void run(const Step &step) {
    if (!step.body.empty()) {
      for (const Step &one : step.body)
        run(one);
      return;
    }
    if (!step.kernel) {
      Name name = step.names[0];
      variables.arrays[name] = like(variables.arrays[name]);
      writeByHost(variables.arrays[name], step.values);
      return;
    }
    Done done{&step, {}, {}};
    for (size_t i = 0; i < step.names.size(); ++i) {
      AnyArray &array = variables.arrays[step.names[i]];
      if (step.written[i]) {
        AnyArray copy = like(array);
        writeByHost(copy, contents(array));
        done.copies.push_back({array, copy});
        array = copy;
      }
      done.arrays.push_back(array);
    }
    launch(Mode::Primal, step, done.arrays);
    log.push_back(std::move(done));
  }

  void reverse() {
    for (size_t i = log.size(); i-- > 0;) {
      reverse(log[i]);
      for (auto &[from, to] : log[i].copies) {
        if (!from.has_grad())
          continue;
        Values sum = contents(from.grad()), more = contents(to.grad());
        for (size_t k = 0; k < sum.size(); ++k)
          sum[k] += more[k];
        writeByHost(from.grad(), sum);
      }
    }
  }

  const Device device;
  Variables variables; ///< the newest
  std::map<Name, AnyArray> first;

private:
  struct Done {
    const Step *step;
    std::vector<AnyArray> arrays;
    std::vector<std::pair<AnyArray, AnyArray>> copies; ///< from, to
  };
  /// Nobody looks at what a launch has written once it is reversed.
  static void reverse(const Done &done) {
    if (!done.step->overwrites)
      return launch(Mode::Gradient, *done.step, done.arrays);
    for (auto &[from, to] : done.copies)
      writeByHost(to, contents(from));
    done.step->kernel->launch_with(initial_state, Mode::Gradient,
                                   argumentsOf(*done.step, done.arrays));
  }

  AnyArray like(const AnyArray &array) const {
    return device.array(array.dtype(), array.shape(),
                        array.has_grad() ? grad : none);
  }
  std::vector<Done> log;
};

/// Kernels whose gradients need what they read, what they wrote, neither, or
/// bounds and indices.
class Pool {
public:
  Step randomStep(std::mt19937 &random) const {
    switch (random() % 14) {
    case 0:
    case 1: {
      Step step = randomHostWrite(random);
      step.recorded = isReal(step.names[0]) || random() % 2;
      return step;
    }
    case 2:
      return randomCustom(random);
    default:
      return randomLaunch(random);
    }
  }

  Step randomLaunch(std::mt19937 &random) const {
    auto [x, y, z] = distinct(random);
    auto time = [&](int count) { return static_cast<int>(random() % count); };
    switch (random() % 19) {
    case 0:
      return step(wavy, {x, y}, {false, true});
    case 1:
      return step(squares, {x, y}, {false, true});
    case 2:
      return step(scale, {x}, {true});
    case 3:
      return step(product, {x, y, z}, {false, false, true});
    case 4:
      return step(gather, {At, x, y}, {false, false, true});
    case 5:
      return step(power, {Iterations, x, y}, {false, false, true});
    case 6:
      return step(weigh, {Weights, x, y}, {false, false, true});
    case 7:
      return step(exponential, {x, y, z}, {false, true, true});
    case 8:
      return step(advance, {Slots}, {true}, {time(slots - 1)});
    case 9:
      return step(put, {x, Slots}, {false, true}, {time(slots)});
    case 10:
      return step(get, {Slots, x}, {false, true}, {time(slots)});
    case 11:
      return overwriting(step(inPlace, {x}, {true}));
    case 12:
      return overwriting(step(chain, {x, y}, {true, true}));
    case 13:
      return overwriting(
          step(twice, {Slots, x}, {true, false}, {time(slots), time(slots)}));
    case 14:
      return overwriting(step(halve, {x, y}, {true, true}));
    case 15:
    case 16:
      return step(patch, {x, Slots}, {false, true}, {time(slots), time(n)});
    default:
      return overwriting(step(count, {Iterations, x}, {true, true}));
    }
  }

  Step randomHostWrite(std::mt19937 &random) const {
    Name name = static_cast<Name>(random() % nameCount);
    Step step{nullptr, {name}, {true}};
    for (int k = 0; k < (name == Slots ? slots * n : n); ++k)
      step.values.push_back(name == At || name == Iterations
                                ? double(random() % n)
                                : double(random() % 1000) / 1000);
    return step;
  }

private:
  static Step step(const Kernel &kernel, std::vector<Name> names,
                   std::vector<bool> written, std::vector<int> scalars = {}) {
    return {&kernel, std::move(names), std::move(written), std::move(scalars)};
  }
  static Step overwriting(Step step) {
    step.overwrites = true;
    return step;
  }

  static std::array<Name, 3> distinct(std::mt19937 &random) {
    std::array<Name, 3> names = {A, B, C};
    std::shuffle(names.begin(), names.end(), random);
    return names;
  }

  /// Some launches as one, which names all that they touch.
  Step randomCustom(std::mt19937 &random) const {
    Step step;
    for (size_t count = 1 + random() % 3; count-- > 0;)
      step.body.push_back(randomLaunch(random));
    std::map<Name, bool> touched;
    for (const Step &one : step.body)
      for (size_t i = 0; i < one.names.size(); ++i)
        touched[one.names[i]] = touched[one.names[i]] || one.written[i];
    for (auto [name, written] : touched) {
      step.names.push_back(name);
      step.written.push_back(written);
    }
    return step;
  }

  using Vector = ArrayRef<double, 1>;
  using Table = ArrayRef<double, 2>;
  using Integers = ArrayRef<int, 1>;

  Kernel wavy = kernel("wavy", [](Vector x, Vector y) {
    parallel(n, [&](Index i) { y(i) = sin(x(i)) + x(i) * x((i + 1) % n); });
  });
  Kernel squares = kernel("squares", [](Vector x, Vector y) {
    parallel(n, [&](Index i) { y(i) += 0.5 * x(i) * x(i); });
  });
  Kernel scale = kernel("scale", [](Vector x) {
    parallel(n, [&](Index i) { x(i) = 0.5 * x(i) + 0.25; });
  });
  Kernel product = kernel("product", [](Vector x, Vector y, Vector z) {
    parallel(n, [&](Index i) { z(i) = x(i) * y(i); });
  });
  Kernel gather = kernel("gather", [](Integers at, Vector x, Vector y) {
    parallel(n, [&](Index i) { y(i) = x(at(i)) * x(i); });
  });
  Kernel power = kernel("power", [](Integers iterations, Vector x, Vector y) {
    parallel(n, [&](Index i) {
      Var<double> v = 1;
      FOR (k, 0, iterations(i)) {
        v = v * cos(x(i));
      }
      y(i) = v;
    });
  });
  Kernel weigh = kernel("weigh", [](Vector w, Vector x, Vector y) {
    parallel(n, [&](Index i) { y(i) = w(i) * sin(x(i)); });
  });
  /// Its gradient reads back what it stored in y.
  Kernel exponential = kernel("exponential", [](Vector x, Vector y, Vector z) {
    parallel(n, [&](Index i) { y(i) = sin(x(i)); });
    parallel(n, [&](Index i) { z(i) = y(i) * y(n - 1 - i); });
  });
  Kernel advance = kernel("advance", [](Table s, Scalar<int> t) {
    parallel(n, [&](Index i) { s(t + 1, i) = sin(s(t, i)) + s(t, 0); });
  });
  Kernel put = kernel("put", [](Vector x, Table s, Scalar<int> t) {
    parallel(n, [&](Index i) { s(t, i) = x(i) * x(i); });
  });
  Kernel get = kernel("get", [](Table s, Vector x, Scalar<int> t) {
    parallel(n, [&](Index i) { x(i) += s(t, i) * s(t, n - 1 - i); });
  });
  Kernel patch =
      kernel("patch", [](Vector x, Table s, Scalar<int> t, Scalar<int> column) {
        s(t, column) = x(column) * x(0);
      });
  // These overwrite what their gradients need.
  Kernel inPlace = kernel("inPlace", [](Vector x) {
    parallel(n, [&](Index i) { x(i) = x(i) * sin(x(i)); });
  });
  Kernel chain = kernel("chain", [](Vector x, Vector y) {
    parallel(n, [&](Index i) { x(i) = cos(x(i)) * y(i); });
    Var<double> s = 0.25 * x(0) + y(n - 1);
    parallel(n, [&](Index i) { y(i) = s * sin(y(i)); });
    parallel(n, [&](Index i) { x(i) = x(i) * y(n - 1 - i); });
  });
  /// Slots that only the launch knows, perhaps the same.
  Kernel twice =
      kernel("twice", [](Table s, Vector x, Scalar<int> from, Scalar<int> to) {
        parallel(n, [&](Index i) { s(to, i) = sin(s(from, i)) * x(i); });
      });
  Kernel halve = kernel("halve", [](Vector x, Vector y) {
    parallel(n, [&](Index i) {
      Var<double> p = 1.0;
      WHILE (abs(x(i)) > 0.2) {
        p = p * cos(x(i));
        x(i) = 0.5 * sin(x(i));
      }
      y(i) += p;
    });
  });
  Kernel count = kernel("count", [](Integers iterations, Vector x) {
    parallel(n, [&](Index i) {
      FOR (k, 0, iterations(i)) {
        x(i) = sin(x(i)) + 0.5;
      }
      iterations(i) = (iterations(i) + 1) % 4;
    });
  });
};

struct RandomProgram {
  std::vector<Step> before, recorded, after;
};

RandomProgram randomProgram(const Pool &pool, std::mt19937 &random) {
  RandomProgram program;
  for (Name name : {A, B, C, Slots, Weights, At, Iterations}) {
    Step step;
    do
      step = pool.randomHostWrite(random);
    while (step.names[0] != name);
    program.before.push_back(step);
  }
  for (size_t count = 2 + random() % 7; count-- > 0;)
    program.recorded.push_back(pool.randomStep(random));
  for (size_t count = random() % 4; count-- > 0;)
    program.after.push_back(random() % 2 ? pool.randomLaunch(random)
                                         : pool.randomHostWrite(random));
  return program;
}

/// Runs all of `program`; only what is to be recorded is.
void record(Overwriting &world, const RandomProgram &program) {
  for (const Step &step : program.before)
    world.run(step);
  {
    // What is not recorded happens between two recordings.
    auto recording = std::make_optional(world.tape.record());
    for (const Step &step : program.recorded) {
      if (!step.recorded)
        recording.reset();
      world.run(step);
      if (!step.recorded)
        recording.emplace(world.tape.record());
    }
  }
}

class RandomRecordings : public testing::Test {
protected:
  /// Clears all gradients but the seeds.
  void seed(std::map<Name, AnyArray> &arrays) {
    for (Name name : {A, B, C, Slots})
      writeByHost(arrays[name].grad(),
                  randomValues(static_cast<size_t>(arrays[name].size()), -1, 1,
                               static_cast<unsigned>(name)));
  }

  void expectGradients(Overwriting &world, Fresh &reference) {
    for (Name name : {A, B, C, Slots}) {
      Values values = contents(world.variables.arrays[name].grad());
      Values expected = contents(reference.first[name].grad());
      for (size_t k = 0; k < values.size(); ++k)
        EXPECT_NEAR(values[k], expected[k],
                    1e-13 * std::max(1.0, std::abs(expected[k])))
            << "variable " << name << ", element " << k;
    }
  }

  void expectContents(Overwriting &world,
                      const std::map<Name, Values> &values) {
    for (auto &[name, expected] : values)
      EXPECT_EQ(contents(world.variables.arrays[name]), expected) << name;
  }

  void check(const RandomProgram &program) {
    Overwriting world(device);
    record(world, program);
    Fresh reference(device);
    for (const Step &step : program.before)
      reference.run(step);
    for (auto &[name, array] : reference.variables.arrays)
      reference.first[name] = array;
    for (const Step &step : program.recorded)
      reference.run(step);
    std::map<Name, Values> newest;
    for (Name name : {A, B, C, Slots})
      newest[name] = contents(reference.variables.arrays[name]);
    expectContents(world, newest);
    for (const Step &step : program.after)
      world.run(step);
    for (Name name : {A, B, C, Slots})
      newest[name] = contents(world.variables.arrays[name]);

    seed(reference.variables.arrays);
    reference.reverse();
    copies += world.tape.report().copies.size();
    for (int times = 0; times < 2; ++times) {
      seed(world.variables.arrays);
      world.tape.backward();
      expectGradients(world, reference);
      expectContents(world, newest);
    }
    checkWithoutCopies(program, reference);
  }

  /// Without copies: the same, or an error.
  void checkWithoutCopies(const RandomProgram &program, Fresh &reference) {
    Overwriting world(device, {.snapshot = false});
    record(world, program);
    for (const Step &step : program.after)
      world.run(step);
    seed(world.variables.arrays);
    try {
      world.tape.backward();
    } catch (const Error &error) {
      EXPECT_EQ(error.code(), ErrorCode::CannotReplay) << error.what();
      ++refusals;
      return;
    }
    expectGradients(world, reference);
  }

  /// Gradients bit for bit.
  std::vector<Values> reversed(Overwriting &world) {
    seed(world.variables.arrays);
    world.tape.backward();
    std::vector<Values> all;
    for (Name name : {A, B, C, Slots})
      all.push_back(contents(world.variables.arrays[name].grad()));
    for (Name name : {A, B, C, Slots, Weights, At, Iterations})
      all.push_back(contents(world.variables.arrays[name]));
    return all;
  }

  static bool sameBits(const std::vector<Values> &one,
                       const std::vector<Values> &other) {
    return std::ranges::equal(one, other, [](const Values &a, const Values &b) {
      return std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
    });
  }

  /// A longer program, with steps of random lengths that may be told.
  void runInSteps(Overwriting &world, const RandomProgram &program,
                  unsigned seed) {
    std::mt19937 random(seed);
    for (const Step &step : program.before)
      world.run(step);
    auto recording = std::make_optional(world.tape.record());
    if (random() % 2)
      (void)world.tape.steps(1 + random() % (2 * program.recorded.size()));
    const unsigned rarity = random() % 4;
    for (const Step &step : program.recorded) {
      if (rarity && random() % rarity == 0)
        world.tape.step();
      if (!step.recorded)
        recording.reset();
      world.run(step);
      if (!step.recorded)
        recording.emplace(world.tape.record());
    }
  }

  /// With snapshots: the same bits, as often as one reverses.
  void checkWithSnapshots(unsigned seed) {
    SCOPED_TRACE("recording with snapshots of seed " + std::to_string(seed));
    std::mt19937 random(seed);
    RandomProgram program = randomProgram(pool, random);
    for (size_t count = random() % 40; count-- > 0;)
      program.recorded.push_back(pool.randomStep(random));
    Overwriting all(device);
    TapeOptions options{.snapshots = 1 + random() % 8};
    if (random() % 4 == 0)
      options = {.budget = 3000 + random() % 5000};
    options.on_host = random() % 2;
    if (random() % 4 == 0)
      options.folder = testing::TempDir();
    Overwriting some(device, options);
    for (Overwriting *world : {&all, &some})
      runInSteps(*world, program, seed);
    EXPECT_TRUE(sameBits(reversed(some), reversed(all)));
    for (const Step &step : program.after)
      all.run(step), some.run(step);
    EXPECT_TRUE(sameBits(reversed(some), reversed(all))) << "after";
    copies += some.tape.report().peak_bytes > 0;
  }

  void checkSeed(unsigned seed) {
    SCOPED_TRACE("recording of seed " + std::to_string(seed));
    std::mt19937 random(seed);
    check(randomProgram(pool, random));
  }

  Device device = openDevice({.threads = 1});
  Pool pool;
  size_t copies = 0, refusals = 0;
};

// RULE: recordings
TEST_F(RandomRecordings, EqualProgramsThatOverwriteNothing) {
  constexpr unsigned rounds = 300;
  for (unsigned seed = 0; seed < rounds && !HasFailure(); ++seed)
    checkSeed(seed);
  // The programs are worth it: many copies, and both ends without them.
  EXPECT_GT(copies, size_t(rounds));
  EXPECT_GT(refusals, size_t(rounds) / 4);
  EXPECT_LT(refusals, size_t(rounds));
}

TEST_F(RandomRecordings, AreTheSameWithSnapshots) {
  constexpr unsigned rounds = 300;
  for (unsigned seed = 0; seed < rounds && !HasFailure(); ++seed)
    checkWithSnapshots(seed);
  EXPECT_GT(copies, size_t(rounds) * 9 / 10);
}

TEST_F(RandomRecordings, EqualThemForLonger) {
  using Clock = std::chrono::steady_clock;
  auto fromEnvironment = [](const char *name) {
    const char *text = std::getenv(name);
    return text ? static_cast<unsigned>(std::atoi(text)) : 0;
  };
  unsigned seconds = fromEnvironment("COSTATE_FUZZ_SECONDS");
  if (seconds == 0)
    GTEST_SKIP() << "COSTATE_FUZZ_SECONDS is not set";
  unsigned first = std::max(fromEnvironment("COSTATE_FUZZ_SEED"), 1000u);
  Clock::time_point end = Clock::now() + std::chrono::seconds(seconds);
  unsigned seed = first;
  for (; Clock::now() < end && !HasFailure(); ++seed) {
    checkSeed(seed);
    checkWithSnapshots(seed);
  }
  std::cout << seed - first << " recordings from seed " << first << " on, "
            << copies << " copies\n";
}

} // namespace
