#pragma once
/// What the examples have in common: a loss that falls.

#include <array>
#include <cstddef>
#include <vector>

namespace example {

using Numbers = std::vector<double>;
template <size_t N> using Points = std::vector<std::array<double, N>>;

template <size_t N> Numbers flat(const Points<N> &points) {
  Numbers numbers;
  for (const auto &point : points)
    numbers.insert(numbers.end(), point.begin(), point.end());
  return numbers;
}
template <size_t N> Points<N> pointsOf(const Numbers &numbers) {
  Points<N> points(numbers.size() / N);
  for (size_t k = 0; k < numbers.size(); ++k)
    points[k / N][k % N] = numbers[k];
  return points;
}

/// A loss that depends on parameters.
class Problem {
public:
  virtual ~Problem() = default;
  virtual double loss(const Numbers &parameters) = 0;
  /// The same; `slope` becomes its derivatives.
  virtual double gradient(const Numbers &parameters, Numbers &slope) = 0;
};

/// d loss / d parameter k by central differences, extrapolated over two steps.
double difference(Problem &problem, const Numbers &parameters, size_t k,
                  double step = 1e-4);

/// Prints some entries of the gradient beside differences.
void printSlopes(Problem &problem, const Numbers &parameters);

/// Follows the gradient with Adam (Kingma and Ba, 2015) and prints progress.
/// Returns the loss before each iteration, and the last one.
Numbers descend(Problem &problem, Numbers &parameters, int iterations,
                double rate);

} // namespace example
