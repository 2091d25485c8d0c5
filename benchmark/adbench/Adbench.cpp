/// ADBench: objective and derivative of the GMM, LSTM and BA problems, beside
/// the objective in plain C++. Their ratio is what a derivative costs;
/// hand-written derivatives reach 1.6 to 2.4 (GMM), 7 to 12 (LSTM), 4.7 (BA).

#include "Bench.h"
#include "adbench/Ba.h"
#include "adbench/Gmm.h"
#include "adbench/Lstm.h"
#include "adbench/Plain.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string_view>

namespace costate::adbench {
namespace {

using bench::milliseconds;
using bench::Options;
using bench::processorMilliseconds;
using bench::Results;
using bench::Row;

Options once(Options options) {
  options.smoke = true;
  return options;
}

/// Times of the first launches, with compilation, and of all later ones: of the
/// processor where one thread does all, like what they are compared with.
template <class Primal, class Gradient>
void measure(const Options &options, const Device &device, Row &row,
             Primal &&primal, Gradient &&gradient) {
  double first = milliseconds(once(options), primal);
  device.reset_peak_bytes();
  size_t before = device.current_bytes();
  first += milliseconds(once(options), gradient);
  double saved = double(device.peak_bytes() - before);
  bool isAlone = options.isHost() && row.threads == 1;
  auto timeOf = [&](auto &&run) {
    return isAlone ? processorMilliseconds(options, run)
                   : milliseconds(options, run);
  };
  double primalMs = timeOf(primal), gradientMs = timeOf(gradient);
  row.set("primal_ms", primalMs);
  row.set("gradient_ms", gradientMs);
  row.set("compile_ms", first - primalMs - gradientMs);
  row.set("saved_bytes", saved);
  row.set("peak_bytes", double(device.peak_bytes()));
}

void setBaseline(Row &row, double baselineMs) {
  double gradientMs = 0;
  for (auto &[name, value] : row.metrics)
    if (name == "gradient_ms")
      gradientMs = value;
  row.set("baseline_ms", baselineMs);
  if (row.threads == 1)
    row.set("ratio", gradientMs / baselineMs);
}

/// The same on all cores of the host, where the device is a GPU.
template <class Problem, class Input>
void addCpu(const Options &options, Row &row, const Input &input,
            void (Problem::*primal)(), void (Problem::*gradient)()) {
  if (options.isHost())
    return;
  Problem onCpu(Device::open("cpu"), input);
  for (auto [metric, run] :
       {std::pair("cpu_primal_ms", primal), {"cpu_gradient_ms", gradient}}) {
    (onCpu.*run)(); // compiles
    row.set(metric, milliseconds(options, [&] { (onCpu.*run)(); }));
  }
}

double directional(const GmmInput &input,
                   const std::vector<double> &direction) {
  return gmmDirectional(input, direction);
}
double directional(const LstmInput &input,
                   const std::vector<double> &direction) {
  return lstmDirectional(input, direction);
}

/// The error of a gradient along one direction, where no reference is known.
template <class Input>
double directionalError(const Input &input,
                        const std::vector<double> &gradient) {
  std::vector<double> direction(gradient.size());
  double product = 0;
  for (size_t i = 0; i < direction.size(); ++i) {
    direction[i] = std::sin(double(i + 1));
    product += direction[i] * gradient[i];
  }
  return relativeError({product}, {directional(input, direction)});
}

/// A problem with one objective, which `plain` computes as well.
template <class Problem, class Input>
std::vector<Row *>
runGradient(const Options &options, Results &results, const Input &input,
            double (*plain)(const Input &),
            const std::optional<GradientReference> &reference) {
  double objective = 0;
  double baseline =
      processorMilliseconds(options, [&] { objective = plain(input); });
  std::vector<Row *> rows;
  for (int threads : options.threads) {
    Device device = Device::open(options.device, {.threads = threads});
    Problem problem(device, input);
    Row &row = results.add(input.name, threads);
    measure(
        options, device, row, [&] { problem.runObjective(); },
        [&] { problem.runGradient(); });
    setBaseline(row, baseline);
    double expected = reference ? reference->objective : objective;
    addCpu(options, row, input, &Problem::runObjective, &Problem::runGradient);
    row.set("objective_err", relativeError({problem.objective()}, {expected}));
    row.set("rel_err",
            reference ? relativeError(problem.gradient(), reference->gradient)
                      : directionalError(input, problem.gradient()));
    rows.push_back(&row);
  }
  return rows;
}

/// With vectors as wide as those of kernels.
auto *gradientByHand() {
  const char *vectors = std::getenv("COSTATE_VECTORS");
  return vectors && std::string_view(vectors) == "avx2" ? avx2::gmmGradient
                                                        : gmmGradient;
}

void runGmm(const Options &options, Results &results, const GmmInput &input,
            const std::optional<GradientReference> &reference = {}) {
  auto *gradient = gradientByHand();
  double byHand = processorMilliseconds(options, [&] { gradient(input); });
  for (Row *row :
       runGradient<Gmm>(options, results, input, gmmObjective, reference))
    row->set("by_hand_ms", byHand);
}

void runLstm(const Options &options, Results &results, const LstmInput &input,
             const std::optional<GradientReference> &reference = {}) {
  runGradient<Lstm>(options, results, input, lstmObjective, reference);
}

/// Completes a reference that covers the first observations only.
BaReference completed(const BaInput &input,
                      const std::optional<BaReference> &known) {
  BaReference all;
  baResiduals(input, all.residuals);
  all.jacobians = baJacobians(input);
  if (!known)
    return all;
  size_t residuals = known->secondResidualKnown ? known->residuals.size() : 1;
  std::copy_n(known->residuals.begin(), residuals, all.residuals.begin());
  std::copy(known->jacobians.begin(), known->jacobians.end(),
            all.jacobians.begin());
  return all;
}

void runBa(const Options &options, Results &results, const BaInput &input,
           const std::optional<BaReference> &known) {
  std::vector<double> residuals;
  double baseline =
      processorMilliseconds(options, [&] { baResiduals(input, residuals); });
  BaReference reference = completed(input, known);
  for (int threads : options.threads) {
    Device device = Device::open(options.device, {.threads = threads});
    Ba ba(device, input);
    Row &row = results.add(input.name, threads);
    measure(
        options, device, row, [&] { ba.runResiduals(); },
        [&] { ba.runJacobians(); });
    setBaseline(row, baseline);
    addCpu(options, row, input, &Ba::runResiduals, &Ba::runJacobians);
    row.set("objective_err",
            relativeError(ba.residuals(), reference.residuals));
    row.set("rel_err", relativeError(ba.jacobians(), reference.jacobians));
  }
}

/// Of 1,000 points, and the largest one, of 10,000.
void runLargeGmm(const Options &options, Results &results) {
  for (int64_t d : {64, 128})
    runGmm(options, results, randomGmm(d, 50, 1000));
  runGmm(options, results, randomGmm(64, 25, 10'000));
}

void runRandom(const Options &options, Results &results) {
  const int64_t shapes[][2] = {{2, 5}, {10, 25}, {20, 50}, {32, 25}};
  const int64_t sizes[][3] = {{49, 7776, 31843}, {257, 65132, 225911}};
  if (options.smoke) {
    runGmm(options, results, randomGmm(3, 4, 20));
    runLstm(options, results, randomLstm(2, 5, 3));
    runBa(options, results, randomBa(3, 7, 50), std::nullopt);
    return;
  }
  for (auto [d, k] : shapes)
    runGmm(options, results, randomGmm(d, k, 1000));
  runLargeGmm(options, results);
  for (int64_t layers : {2, 4})
    runLstm(options, results, randomLstm(layers, 1024, 14));
  for (auto [n, m, p] : sizes)
    runBa(options, results, randomBa(n, m, p), std::nullopt);
}

void adbench(const Options &options, Results &results) {
  auto gmms = inputs(options.data, "gmm_"),
       lstms = inputs(options.data, "lstm_"), bas = inputs(options.data, "ba");
  if (gmms.empty() && lstms.empty() && bas.empty())
    return runRandom(options, results);
  for (auto &file : gmms)
    runGmm(options, results, readGmm(file), readGradient(file));
  if (!options.smoke)
    runLargeGmm(options, results);
  for (auto &file : lstms)
    runLstm(options, results, readLstm(file), readGradient(file));
  for (auto &file : bas)
    runBa(options, results, readBa(file), readBaReference(file));
}

bench::Registration
    registration("adbench", "GMM, LSTM and BA of ADBench against plain C++",
                 adbench);

} // namespace
} // namespace costate::adbench
