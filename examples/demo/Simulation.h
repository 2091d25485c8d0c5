#pragma once
/// The pony and its world, as a function from muscle weights to a loss.

#include <costate/costate.h>

#include <cstdint>
#include <vector>

namespace pony {

using Numbers = std::vector<double>;

struct Point {
  double x, y;
};

/// A body at rest, particle by particle.
struct Body {
  std::vector<Point> position, fibre; ///< fibre: direction of the muscle
  std::vector<int> muscle;            ///< that the particle belongs to
  int muscles = 0;

  /// Fills a rectangle with one muscle.
  void add(Point corner, double width, double height, Point fibre);
};

/// Four legs of two muscles each, a back of eight, a head and a tail.
Body makePony();

/// What the kernels work on.
struct Fields {
  costate::Array<double> weights, activation, fibre;
  costate::Array<int> muscle;
  costate::Array<double> x, v, C, F;               ///< of particles, by step
  costate::Array<double> mass, momentum, velocity; ///< of nodes, by step
  costate::Array<double> mean, miss;
};

class Simulation : private Fields {
public:
  Simulation(costate::Device device, const Body &body, Point target);

  int64_t parameters() const { return weights.size(); }
  /// Runs all steps: the squared distance to the target at the end, in m².
  double loss(const Numbers &values);
  /// The same, and its derivatives with respect to the weights.
  double gradient(const Numbers &values, Numbers &slope);

  /// Where the particles are in a step of the last run, and their centre.
  std::vector<Point> particles(int64_t step) const;
  Point centre(int64_t step) const;
  /// What the muscles do in a step, -1 (push) to 1 (pull).
  Numbers activations(int64_t step) const;

  const Fields &fields() const { return *this; }

private:
  void reset(const Numbers &values);
  void run();

  Point target;
};

} // namespace pony
