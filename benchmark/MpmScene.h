#pragma once
/// The grid operation of a material point method: cells with mass collide with
/// bodies whose distance is a table. Most cells are empty; those that are not
/// loop over the bodies and look up distances seven times for each.

#include "costate/costate.h"

#include <array>
#include <vector>

namespace costate::bench {

struct MpmOptions {
  std::array<int64_t, 4> cells = {65, 129, 36, 2}; ///< along x, y, z; scenes
  int colliders = 1;
  double active = 1;   ///< the share of cells with mass, one block of them
  bool moving = false; ///< velocities of colliders have gradients
};

/// T: float or double.
template <class T> class MpmScene {
public:
  MpmScene(const Device &device, const MpmOptions &options);

  void primal() const { launch(detail::Mode::Primal); }
  /// Adds to the gradients of momentum and mass; consumes the seed.
  void gradient() const { launch(detail::Mode::Gradient); }
  void seed();
  void clear();

  size_t activeCells() const { return active.size(); }
  /// What the gradient saves for a cell with mass; once it has been launched.
  double recordBytes() const;

  /// Gradients by momentum against central differences, in all cells with mass
  /// at once, since each sees its own momentum only. Where two step sizes
  /// disagree there is a kink.
  struct Differences {
    double relative;
    size_t judged, kinks;
  };
  Differences differences(double step);

private:
  void launch(detail::Mode mode) const;
  std::vector<double> slopes(const std::vector<T> &momenta, int axis,
                             double step);

  MpmOptions options;
  Kernel kernel;
  Array<T> mass, momentum, table, center, motion, velocity;
  std::vector<size_t> active; ///< cells
  std::vector<T> weights;     ///< of the velocities
};

extern template class MpmScene<float>;
extern template class MpmScene<double>;

} // namespace costate::bench
