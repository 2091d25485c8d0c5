#include "adbench/Plain.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>

namespace costate::adbench::COSTATE_PLAIN {

using Complex = std::complex<double>;

static double realPart(double value) { return value; }
static double realPart(const Complex &value) { return value.real(); }

static double logGammaDistribution(double a, int64_t d) {
  double sum = double(d * (d - 1)) / 4 * std::log(std::numbers::pi);
  for (int64_t j = 1; j <= d; ++j)
    sum += std::lgamma(a + (1 - double(j)) / 2);
  return sum;
}

double gmmConstant(const GmmInput &gmm) {
  double d = double(gmm.d), size = d + double(gmm.m) + 1;
  double c = size * d * (std::log(gmm.gamma) - 0.5 * std::log(2.0)) -
             logGammaDistribution(size / 2, gmm.d);
  return -double(gmm.n) * d / 2 * std::log(2 * std::numbers::pi) -
         double(gmm.k) * c;
}

template <class T> static T logSumExp(const T *values, int64_t count) {
  T most = values[0];
  for (int64_t i = 1; i < count; ++i)
    if (realPart(values[i]) > realPart(most))
      most = values[i];
  T sum = 0;
  for (int64_t i = 0; i < count; ++i)
    sum += std::exp(values[i] - most);
  return most + std::log(sum);
}

namespace {

/// The objective for parameters of type T.
template <class T> class Gmm {
public:
  Gmm(const GmmInput &in, const T *alpha, const T *mu, const T *icf)
      : in(in), alpha(alpha), mu(mu), icf(icf), diagonal(in.k * in.d),
        sums(in.k), centred(in.d), product(in.d), terms(in.k) {}

  T objective() {
    prepare();
    T total = gmmConstant(in) - double(in.n) * logSumExp(alpha, in.k) + prior();
    for (int64_t i = 0; i < in.n; ++i) {
      for (int64_t k = 0; k < in.k; ++k)
        terms[k] = alpha[k] + sums[k] - 0.5 * squaredNorm(i, k);
      total += logSumExp(terms.data(), in.k);
    }
    return total;
  }

private:
  void prepare() {
    for (int64_t k = 0; k < in.k; ++k)
      for (int64_t j = 0; j < in.d; ++j) {
        T q = icf[k * in.icfSize() + j];
        diagonal[k * in.d + j] = std::exp(q);
        sums[k] += q;
      }
  }

  T prior() const {
    T squares = 0, logarithms = 0;
    for (T value : diagonal)
      squares += value * value;
    for (int64_t k = 0; k < in.k; ++k) {
      logarithms += sums[k];
      for (int64_t j = in.d; j < in.icfSize(); ++j)
        squares += icf[k * in.icfSize() + j] * icf[k * in.icfSize() + j];
    }
    return 0.5 * in.gamma * in.gamma * squares - double(in.m) * logarithms;
  }

  T squaredNorm(int64_t i, int64_t k) {
    const T *lower = icf + k * in.icfSize() + in.d;
    for (int64_t j = 0; j < in.d; ++j) {
      centred[j] = in.x[i * in.d + j] - mu[k * in.d + j];
      product[j] = diagonal[k * in.d + j] * centred[j];
    }
    for (int64_t column = 0; column < in.d; ++column)
      for (int64_t row = column + 1; row < in.d; ++row)
        product[row] += *lower++ * centred[column];
    T sum = 0;
    for (int64_t j = 0; j < in.d; ++j)
      sum += product[j] * product[j];
    return sum;
  }

  const GmmInput &in;
  const T *alpha, *mu, *icf;
  std::vector<T> diagonal, sums, centred, product, terms;
};

/// The gradient of the objective for one point after the other: what the
/// products of all components are is kept until their weights are known.
class GmmGradient {
public:
  explicit GmmGradient(const GmmInput &in)
      : in(in), diagonal(in.k * in.d), sums(in.k), centred(in.k * in.d),
        product(in.k * in.d), weights(in.k), ofDiagonal(in.k * in.d),
        result(in.k + in.k * in.d + in.k * in.icfSize()),
        ofMu(result.data() + in.k), ofIcf(ofMu + in.k * in.d) {}

  std::vector<double> run() {
    prepare();
    for (int64_t i = 0; i < in.n; ++i) {
      for (int64_t k = 0; k < in.k; ++k)
        weights[k] = in.alpha[k] + sums[k] - 0.5 * squaredNorm(i, k);
      softmax(weights.data());
      for (int64_t k = 0; k < in.k; ++k)
        addPoint(k);
    }
    for (int64_t k = 0; k < in.k; ++k)
      addOthers(k);
    addWeights();
    return result;
  }

private:
  void prepare() {
    for (int64_t k = 0; k < in.k; ++k)
      for (int64_t j = 0; j < in.d; ++j) {
        double q = in.icf[k * in.icfSize() + j];
        diagonal[k * in.d + j] = std::exp(q);
        sums[k] += q;
      }
  }

  double squaredNorm(int64_t i, int64_t k) {
    const double *__restrict lower = in.icf.data() + k * in.icfSize() + in.d;
    double *__restrict c = centred.data() + k * in.d;
    double *__restrict p = product.data() + k * in.d;
    for (int64_t j = 0; j < in.d; ++j) {
      c[j] = in.x[i * in.d + j] - in.mu[k * in.d + j];
      p[j] = diagonal[k * in.d + j] * c[j];
    }
    for (int64_t column = 0; column < in.d; ++column)
      for (int64_t row = column + 1; row < in.d; ++row)
        p[row] += *lower++ * c[column];
    double sum = 0;
    for (int64_t j = 0; j < in.d; ++j)
      sum += p[j] * p[j];
    return sum;
  }

  /// Without subnormal weights, as in the kernel.
  void softmax(double *values) const {
    double most = *std::max_element(values, values + in.k), sum = 0;
    for (int64_t k = 0; k < in.k; ++k) {
      double difference = values[k] - most;
      sum += values[k] = difference > -100 ? std::exp(difference) : 0;
    }
    for (int64_t k = 0; k < in.k; ++k)
      values[k] /= sum;
  }

  void addPoint(int64_t k) {
    const double *__restrict c = centred.data() + k * in.d;
    double *__restrict p = product.data() + k * in.d;
    result[k] += weights[k];
    for (int64_t j = 0; j < in.d; ++j) {
      p[j] *= -weights[k];
      ofDiagonal[k * in.d + j] += p[j] * c[j];
    }
    const double *lower = in.icf.data() + k * in.icfSize() + in.d;
    double *ofLower = ofIcf + k * in.icfSize() + in.d;
    for (int64_t column = 0; column < in.d; ++column) {
      int64_t rows = in.d - column - 1;
      double below = addColumn(rows, lower, ofLower, p + column + 1, c[column]);
      ofMu[k * in.d + column] -=
          diagonal[k * in.d + column] * p[column] + below;
      lower += rows;
      ofLower += rows;
    }
  }

  static double addColumn(int64_t rows, const double *__restrict lower,
                          double *__restrict ofLower,
                          const double *__restrict product, double centred) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t row = 0; row < rows; ++row) {
      ofLower[row] += product[row] * centred;
      sum += lower[row] * product[row];
    }
    return sum;
  }

  /// What does not depend on points.
  void addOthers(int64_t k) {
    double scale = in.gamma * in.gamma;
    double *entries = ofIcf + k * in.icfSize();
    for (int64_t j = 0; j < in.d; ++j) {
      double e = diagonal[k * in.d + j];
      entries[j] =
          result[k] + (ofDiagonal[k * in.d + j] + scale * e) * e - double(in.m);
    }
    for (int64_t j = in.d; j < in.icfSize(); ++j)
      entries[j] += scale * in.icf[k * in.icfSize() + j];
  }

  void addWeights() {
    std::copy(in.alpha.begin(), in.alpha.end(), weights.begin());
    softmax(weights.data());
    for (int64_t k = 0; k < in.k; ++k)
      result[k] -= double(in.n) * weights[k];
  }

  const GmmInput &in;
  std::vector<double> diagonal, sums, centred, product, weights, ofDiagonal,
      result;
  double *ofMu, *ofIcf;
};

template <class T> struct Projection {
  T u, v;
};

template <class T> void rotate(const T *r, const T *x, T *result) {
  T squared = r[0] * r[0] + r[1] * r[1] + r[2] * r[2];
  T cross[] = {r[1] * x[2] - r[2] * x[1], r[2] * x[0] - r[0] * x[2],
               r[0] * x[1] - r[1] * x[0]};
  if (realPart(squared) == 0) {
    for (int i = 0; i < 3; ++i)
      result[i] = x[i] + cross[i];
    return;
  }
  T angle = std::sqrt(squared), cosine = std::cos(angle),
    sine = std::sin(angle);
  T along =
      (r[0] * x[0] + r[1] * x[1] + r[2] * x[2]) / squared * (1.0 - cosine);
  for (int i = 0; i < 3; ++i)
    result[i] = x[i] * cosine + cross[i] * (sine / angle) + r[i] * along;
}

template <class T> Projection<T> project(const T *camera, const T *point) {
  T centred[3], seen[3];
  for (int i = 0; i < 3; ++i)
    centred[i] = point[i] - camera[3 + i];
  rotate(camera, centred, seen);
  T u = seen[0] / seen[2], v = seen[1] / seen[2];
  T squared = u * u + v * v;
  T scale =
      (1.0 + camera[9] * squared + camera[10] * squared * squared) * camera[6];
  return {u * scale + camera[7], v * scale + camera[8]};
}

} // namespace

double gmmObjective(const GmmInput &gmm) {
  return Gmm<double>(gmm, gmm.alpha.data(), gmm.mu.data(), gmm.icf.data())
      .objective();
}

std::vector<double> gmmGradient(const GmmInput &gmm) {
  return GmmGradient(gmm).run();
}

double gmmDirectional(const GmmInput &gmm,
                      const std::vector<double> &direction) {
  const double step = 1e-100;
  std::vector<Complex> parameters;
  for (auto *part : {&gmm.alpha, &gmm.mu, &gmm.icf})
    for (double value : *part)
      parameters.emplace_back(value, step * direction[parameters.size()]);
  const Complex *alpha = parameters.data(), *mu = alpha + gmm.k,
                *icf = mu + gmm.k * gmm.d;
  return Gmm<Complex>(gmm, alpha, mu, icf).objective().imag() / step;
}

template <class T>
static T lstmObjective(const LstmInput &in, const T *main, const T *extra) {
  auto sigmoid = [](T x) { return 1.0 / (1.0 + std::exp(-x)); };
  std::vector<T> state(in.state.begin(), in.state.end()), output(in.b);
  T total = 0;
  for (int64_t t = 0; t + 1 < in.c; ++t) {
    T sum = 2;
    for (int64_t i = 0; i < in.b; ++i) {
      T u = in.sequence[t * in.b + i] * extra[i];
      for (int64_t l = 0; l < in.l; ++l) {
        auto gate = [&](int64_t number, T x) {
          const T *weight = main + (8 * l + number) * in.b + i;
          return x * weight[0] + weight[4 * in.b];
        };
        T &hidden = state[2 * l * in.b + i],
          &cell = state[(2 * l + 1) * in.b + i];
        T change = std::tanh(gate(3, hidden));
        cell = cell * sigmoid(gate(0, u)) + sigmoid(gate(1, hidden)) * change;
        u = hidden = sigmoid(gate(2, u)) * std::tanh(cell);
      }
      output[i] = u * extra[in.b + i] + extra[2 * in.b + i];
      sum += std::exp(output[i]);
    }
    T logarithm = std::log(sum);
    for (int64_t i = 0; i < in.b; ++i)
      total += in.sequence[(t + 1) * in.b + i] * (output[i] - logarithm);
  }
  return -total / double(in.b * (in.c - 1));
}

double lstmObjective(const LstmInput &in) {
  return lstmObjective(in, in.main.data(), in.extra.data());
}

double lstmDirectional(const LstmInput &in,
                       const std::vector<double> &direction) {
  const double step = 1e-100;
  std::vector<Complex> parameters;
  for (auto *part : {&in.main, &in.extra})
    for (double value : *part)
      parameters.emplace_back(value, step * direction[parameters.size()]);
  return lstmObjective(in, parameters.data(),
                       parameters.data() + in.main.size())
             .imag() /
         step;
}

void baResiduals(const BaInput &ba, std::vector<double> &residuals) {
  residuals.resize(size_t(2 * ba.p));
  for (int64_t i = 0; i < ba.p; ++i) {
    auto seen = project(&ba.cameras[11 * ba.cameraOf[i]],
                        &ba.points[3 * ba.pointOf[i]]);
    residuals[2 * i] = ba.weights[i] * (seen.u - ba.features[2 * i]);
    residuals[2 * i + 1] = ba.weights[i] * (seen.v - ba.features[2 * i + 1]);
  }
}

std::vector<double> baJacobians(const BaInput &ba) {
  const double step = 1e-100;
  std::vector<double> jacobians;
  jacobians.reserve(size_t(30 * ba.p));
  for (int64_t i = 0; i < ba.p; ++i) {
    Complex in[14];
    std::copy_n(&ba.cameras[11 * ba.cameraOf[i]], 11, in);
    std::copy_n(&ba.points[3 * ba.pointOf[i]], 3, in + 11);
    for (Complex &parameter : in) {
      parameter.imag(step);
      auto seen = project(in, in + 11);
      parameter.imag(0);
      jacobians.push_back(ba.weights[i] * (seen.u.imag() / step));
      jacobians.push_back(ba.weights[i] * (seen.v.imag() / step));
    }
    auto seen = project(in, in + 11);
    jacobians.push_back(seen.u.real() - ba.features[2 * i]);
    jacobians.push_back(seen.v.real() - ba.features[2 * i + 1]);
  }
  return jacobians;
}

} // namespace costate::adbench::COSTATE_PLAIN
