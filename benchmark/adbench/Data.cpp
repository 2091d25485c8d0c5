#include "adbench/Data.h"

#include "costate/error.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <random>
#include <sstream>

namespace costate::adbench {

namespace fs = std::filesystem;

namespace {

/// All numbers of a text file, taken one after the other.
class Numbers {
public:
  explicit Numbers(const fs::path &file) : file(file) {
    std::ifstream in(file);
    std::stringstream text;
    text << in.rdbuf();
    if (!in)
      fail("cannot be read");
    parse(text.str());
  }

  size_t count() const { return values.size(); }
  double real() {
    if (next == values.size())
      fail("ends too early");
    return values[next++];
  }
  /// A whole number from `least` to 10^9.
  int64_t whole(int64_t least) {
    double value = real();
    if (!(value >= double(least)) || value > 1e9 || value != std::floor(value))
      fail("has " + std::to_string(value) +
           " where a whole number of at least " + std::to_string(least) +
           " should be");
    return int64_t(value);
  }
  std::vector<double> reals(int64_t count) {
    if (count > int64_t(values.size() - next))
      fail("ends too early");
    auto begin = values.begin() + int64_t(next);
    next += size_t(count);
    return {begin, begin + count};
  }
  void end() {
    if (next != values.size())
      fail("has " + std::to_string(values.size() - next) + " numbers too many");
  }
  [[noreturn]] void fail(const std::string &what) const {
    throw Error(ErrorCode::BadFile, file.string() + " " + what);
  }

private:
  void parse(const std::string &text) {
    const char *at = text.data(), *stop = at + text.size();
    while (true) {
      while (at != stop && std::isspace(static_cast<unsigned char>(*at)))
        ++at;
      if (at == stop)
        return;
      if (*at == '+')
        ++at;
      double value;
      auto result = std::from_chars(at, stop, value);
      if (result.ec != std::errc())
        fail("contains `" + std::string(at, std::min(at + 12, stop)) +
             "`, which is not a number");
      values.push_back(value);
      at = result.ptr;
    }
  }

  fs::path file;
  std::vector<double> values;
  size_t next = 0;
};

fs::path beside(fs::path input, const char *extension) {
  return input.replace_extension(extension);
}

void readReplicated(Numbers &numbers, BaInput &ba) {
  std::vector<double> camera = numbers.reals(11), point = numbers.reals(3);
  double weight = numbers.real();
  std::vector<double> feature = numbers.reals(2);
  for (int64_t i = 0; i < ba.n; ++i)
    ba.cameras.insert(ba.cameras.end(), camera.begin(), camera.end());
  for (int64_t i = 0; i < ba.m; ++i)
    ba.points.insert(ba.points.end(), point.begin(), point.end());
  for (int64_t i = 0; i < ba.p; ++i) {
    ba.cameraOf.push_back(int32_t(i % ba.n));
    ba.pointOf.push_back(int32_t(i % ba.m));
    ba.weights.push_back(weight);
    ba.features.insert(ba.features.end(), feature.begin(), feature.end());
  }
}

void readVaried(Numbers &numbers, BaInput &ba) {
  ba.cameras = numbers.reals(11 * ba.n);
  ba.points = numbers.reals(3 * ba.m);
  for (int64_t i = 0; i < ba.p; ++i) {
    int64_t camera = numbers.whole(0), point = numbers.whole(0);
    if (camera >= ba.n || point >= ba.m)
      numbers.fail(
          "has an observation of a camera or point that it does not have");
    ba.cameraOf.push_back(int32_t(camera));
    ba.pointOf.push_back(int32_t(point));
    ba.weights.push_back(numbers.real());
    ba.features.push_back(numbers.real());
    ba.features.push_back(numbers.real());
  }
}

} // namespace

GmmInput readGmm(const fs::path &file) {
  Numbers numbers(file);
  GmmInput gmm;
  gmm.name = file.stem().string();
  gmm.d = numbers.whole(1);
  gmm.k = numbers.whole(1);
  gmm.n = numbers.whole(1);
  gmm.alpha = numbers.reals(gmm.k);
  gmm.mu = numbers.reals(gmm.k * gmm.d);
  gmm.icf = numbers.reals(gmm.k * gmm.icfSize());
  gmm.x = numbers.reals(gmm.n * gmm.d);
  gmm.gamma = numbers.real();
  gmm.m = numbers.whole(0);
  numbers.end();
  return gmm;
}

LstmInput readLstm(const fs::path &file) {
  Numbers numbers(file);
  LstmInput lstm;
  lstm.name = file.stem().string();
  lstm.l = numbers.whole(1);
  lstm.c = numbers.whole(2);
  lstm.b = numbers.whole(1);
  lstm.main = numbers.reals(lstm.l * 8 * lstm.b);
  lstm.extra = numbers.reals(3 * lstm.b);
  lstm.state = numbers.reals(lstm.l * 2 * lstm.b);
  lstm.sequence = numbers.reals(lstm.c * lstm.b);
  numbers.end();
  return lstm;
}

BaInput readBa(const fs::path &file) {
  Numbers numbers(file);
  BaInput ba;
  ba.name = file.stem().string();
  ba.n = numbers.whole(1);
  ba.m = numbers.whole(1);
  ba.p = numbers.whole(1);
  numbers.count() == 3 + 17 ? readReplicated(numbers, ba)
                            : readVaried(numbers, ba);
  numbers.end();
  return ba;
}

std::optional<GradientReference> readGradient(const fs::path &input) {
  fs::path file = beside(input, ".grad.txt");
  if (!fs::exists(file))
    return std::nullopt;
  Numbers numbers(file);
  double objective = numbers.real();
  int64_t count = numbers.whole(1);
  return GradientReference{objective, numbers.reals(count)};
}

static BaReference readFirstObservation(Numbers &numbers) {
  double residual = numbers.real();
  if (numbers.whole(1) != 30)
    numbers.fail("does not hold 30 entries of a Jacobian");
  return {{residual, 0}, numbers.reals(30), false};
}

static BaReference readObservations(Numbers &numbers) {
  BaReference reference{{}, {}, true};
  for (size_t i = 0; i < numbers.count() / 32; ++i) {
    for (double value : numbers.reals(2))
      reference.residuals.push_back(value);
    for (double value : numbers.reals(30))
      reference.jacobians.push_back(value);
  }
  numbers.end();
  return reference;
}

std::optional<BaReference> readBaReference(const fs::path &input) {
  if (fs::path all = beside(input, ".jac.txt"); fs::exists(all)) {
    Numbers numbers(all);
    return readObservations(numbers);
  }
  if (fs::path first = beside(input, ".grad.txt"); fs::exists(first)) {
    Numbers numbers(first);
    return readFirstObservation(numbers);
  }
  return std::nullopt;
}

static std::vector<double> normals(std::mt19937_64 &random, int64_t count,
                                   double scale) {
  std::normal_distribution<double> normal(0, scale);
  std::vector<double> values(static_cast<size_t>(count));
  for (double &value : values)
    value = normal(random);
  return values;
}

GmmInput randomGmm(int64_t d, int64_t k, int64_t n, uint64_t seed) {
  std::mt19937_64 random(seed);
  GmmInput gmm;
  gmm.name = "random_gmm_d" + std::to_string(d) + "_K" + std::to_string(k);
  gmm.d = d;
  gmm.k = k;
  gmm.n = n;
  gmm.alpha = normals(random, k, 1);
  gmm.mu = normals(random, k * d, 1);
  gmm.icf = normals(random, k * gmm.icfSize(), 0.5);
  gmm.x = normals(random, n * d, 1);
  gmm.gamma = 1;
  gmm.m = 0;
  return gmm;
}

LstmInput randomLstm(int64_t l, int64_t c, int64_t b, uint64_t seed) {
  std::mt19937_64 random(seed);
  LstmInput lstm;
  lstm.name = "random_lstm_l" + std::to_string(l) + "_c" + std::to_string(c);
  lstm.l = l;
  lstm.c = c;
  lstm.b = b;
  lstm.main = normals(random, l * 8 * b, 1);
  lstm.extra = normals(random, 3 * b, 1);
  lstm.state = normals(random, l * 2 * b, 1);
  lstm.sequence = normals(random, c * b, 1);
  return lstm;
}

static std::vector<double> randomCamera(std::mt19937_64 &random) {
  std::vector<double> camera = normals(random, 11, 1);
  const double centre[] = {0, 0, 0, 0, 0, -20, 500, 320, 240, 0, 0};
  const double scale[] = {0.3, 0.3, 0.3, 1, 1, 1, 20, 5, 5, 0.05, 0.01};
  for (int i = 0; i < 11; ++i)
    camera[i] = centre[i] + scale[i] * camera[i];
  return camera;
}

BaInput randomBa(int64_t n, int64_t m, int64_t p, uint64_t seed) {
  std::mt19937_64 random(seed);
  BaInput ba;
  ba.name = "random_ba_n" + std::to_string(n) + "_m" + std::to_string(m) +
            "_p" + std::to_string(p);
  ba.n = n;
  ba.m = m;
  ba.p = p;
  for (int64_t i = 0; i < n; ++i)
    for (double value : randomCamera(random))
      ba.cameras.push_back(value);
  std::fill_n(ba.cameras.begin(), 3, 0.0); // one camera without rotation
  ba.points = normals(random, m * 3, 2);
  for (int64_t i = 0; i < p; ++i) {
    ba.cameraOf.push_back(int32_t(i % n));
    ba.pointOf.push_back(int32_t(i % m));
  }
  ba.weights = normals(random, p, 1);
  ba.features = normals(random, p * 2, 100);
  return ba;
}

static void perturb(std::vector<double> &values, double scale) {
  for (size_t i = 0; i < values.size(); ++i)
    values[i] +=
        scale * std::sin(double(i + 1)) * std::max(1.0, std::abs(values[i]));
}

BaInput perturbed(BaInput input) {
  input.name += "_perturbed";
  perturb(input.cameras, 1e-2);
  perturb(input.points, 1e-2);
  perturb(input.weights, 1e-1);
  perturb(input.features, 1e-1);
  return input;
}

static bool isInput(const fs::path &file, const std::string &prefix) {
  std::string name = file.filename().string();
  return name.starts_with(prefix) && name.ends_with(".txt") &&
         !name.ends_with(".grad.txt") && !name.ends_with(".jac.txt");
}

std::vector<fs::path> inputs(const fs::path &folder,
                             const std::string &prefix) {
  std::vector<fs::path> found;
  if (!fs::is_directory(folder))
    return found;
  for (auto &entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file() && isInput(entry.path(), prefix))
      found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

double relativeError(const std::vector<double> &a,
                     const std::vector<double> &b) {
  if (a.size() != b.size())
    return INFINITY;
  double error = 0, scale = 1;
  for (size_t i = 0; i < a.size(); ++i) {
    double difference = std::abs(a[i] - b[i]);
    if (!(difference <= error))
      error = difference;
    scale = std::max(scale, std::abs(b[i]));
  }
  return error / scale;
}

} // namespace costate::adbench
