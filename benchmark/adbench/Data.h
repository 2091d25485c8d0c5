#pragma once
/// Inputs and reference results of ADBench: files, or random ones of the same
/// kind.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace costate::adbench {

/// A Gaussian mixture model and points. `icf` holds, for each component, `d`
/// logarithms of the diagonal and the strict lower triangle column by column.
struct GmmInput {
  std::string name;
  int64_t d, k, n;
  std::vector<double> alpha; ///< k
  std::vector<double> mu;    ///< k x d
  std::vector<double> icf;   ///< k x icfSize()
  std::vector<double> x;     ///< n x d
  double gamma;
  int64_t m;
  int64_t icfSize() const { return d * (d + 1) / 2; }
};

/// Bundle adjustment: observation i sees point `pointOf[i]` with camera
/// `cameraOf[i]`.
struct BaInput {
  std::string name;
  int64_t n, m, p;
  std::vector<double>
      cameras; ///< n x 11: rotation 3, centre 3, f, u0, v0, k1, k2
  std::vector<double> points;             ///< m x 3
  std::vector<int32_t> cameraOf, pointOf; ///< p
  std::vector<double> weights;            ///< p
  std::vector<double> features;           ///< p x 2
};

/// A diagonal LSTM of `l` layers, and a sequence of `c` vectors of `b` numbers.
struct LstmInput {
  std::string name;
  int64_t l, c, b;
  std::vector<double> main;  ///< l x 2 x 4 x b: weights, then biases; each of
                             ///< forget, in, out, change
  std::vector<double> extra; ///< 3 x b: in weight, out weight, out bias
  std::vector<double> state; ///< l x 2 x b: hidden, cell
  std::vector<double> sequence; ///< c x b
};

/// Objective, and gradient in the order alpha, mu, icf or main, extra.
struct GradientReference {
  double objective;
  std::vector<double> gradient;
};

/// Of the first observations: residuals (2 each) and Jacobians (30 each, column
/// by column).
struct BaReference {
  std::vector<double> residuals, jacobians;
  bool secondResidualKnown; ///< the public files hold only the first
};

/// Readers throw Error(BadFile) that names the file and what is wrong with it.
GmmInput readGmm(const std::filesystem::path &file);
LstmInput readLstm(const std::filesystem::path &file);
BaInput readBa(const std::filesystem::path &file);
/// What stands beside an input (`NAME.grad.txt`, `NAME.jac.txt`), if anything.
std::optional<GradientReference>
readGradient(const std::filesystem::path &input);
std::optional<BaReference> readBaReference(const std::filesystem::path &input);

GmmInput randomGmm(int64_t d, int64_t k, int64_t n, uint64_t seed = 1);
LstmInput randomLstm(int64_t l, int64_t c, int64_t b, uint64_t seed = 1);
BaInput randomBa(int64_t n, int64_t m, int64_t p, uint64_t seed = 1);
/// Every camera, point, weight and feature moved a little, each differently.
BaInput perturbed(BaInput input);

/// Input files below `folder` whose name begins with `prefix`, by name.
std::vector<std::filesystem::path> inputs(const std::filesystem::path &folder,
                                          const std::string &prefix);

/// max |a - b| / max(1, max |b|)
double relativeError(const std::vector<double> &a,
                     const std::vector<double> &b);

} // namespace costate::adbench
