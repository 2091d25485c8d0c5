#include "property/Check.h"

#include "property/Emit.h"
#include "property/Workbench.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <sstream>

namespace costate::property {
namespace {

using detail::Mode;

struct Mismatch : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Values that are not finite or too large to compare.
struct TooLarge {};

bool usesSingle(const Node &node) {
  if (!node.isList)
    return node.text == "f32" || node.text == "a" || node.text == "b";
  return std::ranges::any_of(node.children, usesSingle);
}

double largest(const Values &values) {
  double most = 0;
  for (const std::vector<double> &array : values)
    for (double value : array) {
      if (!std::isfinite(value))
        throw TooLarge();
      most = std::max(most, std::abs(value));
    }
  return most;
}

double dot(const Values &a, const Values &b) {
  double sum = 0;
  for (size_t array = 0; array < a.size(); ++array)
    for (size_t i = 0; i < a[array].size(); ++i)
      sum += a[array][i] * b[array][i];
  return sum;
}

Values zerosLike(Values values) {
  for (std::vector<double> &array : values)
    std::ranges::fill(array, 0.0);
  return values;
}

void compare(const char *what, const Values &actual, const Values &expected,
             double tolerance) {
  for (size_t array = 0; array < actual.size(); ++array)
    for (size_t i = 0; i < actual[array].size(); ++i) {
      double a = actual[array][i], b = expected[array][i];
      if (std::abs(a - b) <= tolerance)
        continue;
      std::ostringstream text;
      text.precision(17);
      text << what << ": ";
      if (actual.size() > 1)
        text << Workbench::name(array) << "[" << i << "] ";
      text << "is " << a << ", not " << b;
      throw Mismatch(text.str());
    }
}

Device device(int threads) {
  static Device one = Device::open("cpu", {.threads = 1});
  static Device four = Device::open("cpu", {.threads = 4});
  return threads == 1 ? one : four;
}

class Checker {
public:
  Checker(const Node &program, unsigned seed)
      : program(program), kernel(emit(program)), seed(seed), engine(seed),
        bench(device(1), widthOf(program), seed), single(usesSingle(program)) {}

  void run() {
    primal();
    reverse();
    again();
    forward();
    onFourThreads();
    withDebug();
    if (seed % 4 == 0)
      deterministic();
    if (!single)
      differences();
  }

  int judged = 0;

private:
  /// Adjoints of the inputs, for weights as adjoints of the outputs.
  Values gradient(Workbench &on, const Kernel &of) {
    on.reset();
    on.launch(of, Mode::Primal);
    on.putAdjoints(on.weights);
    on.launch(of, Mode::Gradient);
    return on.adjoints();
  }

  void primal() {
    bench.reset();
    bench.launch(kernel, Mode::Primal);
    results = bench.get();
    if (largest(results) > 1e6)
      throw TooLarge();
    bench.reset();
    bench.launch(kernel, Mode::Primal);
    compare("a second run", bench.get(), results, 0);
  }

  void reverse() {
    Values adjoints = gradient(bench, kernel);
    compare("memory behind the gradient", bench.get(), results, 0);
    expected = adjoints;
    scale = std::max(1.0, largest(adjoints));
    if (scale > 1e6)
      throw TooLarge();
  }

  double tolerance() const { return (single ? 1e-3 : 1e-10) * scale; }

  /// Once more: adjoints of inputs add up.
  void again() {
    Values sums = expected, twice = expected;
    for (size_t array = 0; array < bench.count(); ++array) {
      if (!Workbench::isConstant(array)) {
        sums[array] = bench.weights[array];
        continue;
      }
      for (size_t i = 0; i < sums[array].size(); ++i)
        twice[array][i] += expected[array][i] - bench.weights[array][i];
    }
    bench.putAdjoints(sums);
    bench.launch(kernel, Mode::Gradient);
    compare("a second gradient", bench.adjoints(), twice, tolerance());
  }

  /// Where derivatives are compared: everywhere, or at random.
  std::vector<std::pair<size_t, size_t>> entries() {
    std::vector<std::pair<size_t, size_t>> all;
    for (size_t array = 0; array < bench.count(); ++array)
      for (size_t i = 0; i < expected[array].size(); ++i)
        all.emplace_back(array, i);
    if (all.size() > 100) {
      std::ranges::shuffle(all, engine);
      all.resize(all.size() > 100000 ? 6 : 30);
    }
    return all;
  }

  /// The derivative of the weighted results along `direction`.
  double along(const Values &direction) {
    bench.reset();
    bench.putTangents(direction);
    bench.launch(kernel, Mode::Tangent);
    Values tangents = bench.tangents();
    scale = std::max(scale, largest(tangents));
    if (scale > 1e6)
      throw TooLarge();
    return dot(bench.weights, tangents);
  }

  void forward() {
    Values derivatives = expected;
    for (auto [array, i] : entries()) {
      Values direction = zerosLike(bench.weights);
      direction[array][i] = 1;
      derivatives[array][i] = along(direction);
    }
    compare("results of forward mode", bench.get(), results, tolerance());
    compare("reverse against forward", expected, derivatives, tolerance());
    for (int round = 0; round < 2; ++round) {
      Values direction = randomDirection();
      double length = std::sqrt(dot(direction, direction));
      compare("reverse against forward along a direction",
              {{dot(expected, direction)}}, {{along(direction)}},
              tolerance() * length);
    }
  }

  Values randomDirection() {
    std::uniform_real_distribution<double> real(-1, 1);
    Values direction = zerosLike(bench.weights);
    for (size_t array = 0; array < direction.size(); ++array)
      for (double &value : direction[array])
        value = Workbench::isSingle(array) ? float(real(engine)) : real(engine);
    return direction;
  }

  void onFourThreads() {
    Workbench other(device(4), widthOf(program), seed);
    compare("four threads", gradient(other, kernel), expected, tolerance());
    compare("results on four threads", other.get(), results, tolerance());
  }

  void withDebug() {
    Kernel checked = emit(program, {.debug = true});
    compare("debug", gradient(bench, checked), expected, tolerance());
    compare("results with debug", bench.get(), results, tolerance());
  }

  /// The same bits for any number of threads.
  void deterministic() {
    Kernel same = emit(program, {.deterministic = true});
    Workbench other(device(4), widthOf(program), seed);
    Values alone = gradient(bench, same);
    compare("deterministic results against plain ones", bench.get(), results,
            tolerance());
    compare("deterministic", alone, expected, tolerance());
    compare("deterministic on four threads", gradient(other, same), alone, 0);
    compare("deterministic results", other.get(), bench.get(), 0);
  }

  double lossAt(size_t array, size_t i, double shift) {
    Values values = bench.start;
    values[array][i] += shift;
    bench.put(values);
    bench.launch(kernel, Mode::Primal);
    return dot(bench.weights, bench.get());
  }

  double slope(size_t array, size_t i, double h) {
    return (lossAt(array, i, h) - lossAt(array, i, -h)) / (2 * h);
  }

  /// Entries where the extrapolations of two pairs of steps disagree stand at a
  /// kink or a jump.
  void differences() {
    Values slopes = expected;
    for (auto [array, i] : entries()) {
      if (Workbench::isSingle(array))
        continue;
      double h = 1e-4, d1 = slope(array, i, h), d2 = slope(array, i, h / 2),
             d3 = slope(array, i, h / 4);
      double first = (4 * d2 - d1) / 3, second = (4 * d3 - d2) / 3;
      if (!(std::abs(first - second) < 1e-7 * scale))
        continue;
      ++judged;
      slopes[array][i] = second;
    }
    compare("reverse against differences", expected, slopes, 1e-6 * scale);
  }

  const Node &program;
  Kernel kernel;
  unsigned seed;
  std::mt19937 engine;
  Workbench bench;
  bool single;
  Values results, expected;
  double scale = 1;
};

} // namespace

Verdict check(const Node &program, unsigned seed) {
  try {
    Checker checker(program, seed);
    checker.run();
    return {Verdict::Right, "", checker.judged};
  } catch (const TooLarge &) {
    return {Verdict::Wild, ""};
  } catch (const InvalidProgram &error) {
    return {Verdict::Invalid, error.what()};
  } catch (const Mismatch &error) {
    return {Verdict::Wrong, error.what()};
  } catch (const Error &error) {
    bool refused = error.code() == ErrorCode::CannotReplay;
    return {refused ? Verdict::Refused : Verdict::Wrong, error.what()};
  }
}

} // namespace costate::property
