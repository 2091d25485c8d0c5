#pragma once
/// Trees of links with revolute joints, as robots are: forward kinematics, mass
/// matrix of composite bodies, Cholesky factor, solve, integration, in loops
/// whose bounds and parents are read from memory. Velocities do not enter the
/// forces, but for a damping.

#include "costate/costate.h"

namespace costate::rigid {

/// `scenes` copies of a tree, of which scene e has the first links[e] links.
struct ChainInput {
  int64_t scenes, most; ///< links of the largest
  int steps;
  std::vector<int32_t> links;  ///< scenes
  std::vector<int32_t> parent; ///< most: a link before it, or -1
  std::vector<double>
      axes; ///< most x 3, of length 1, in the frame of the parent
  std::vector<double> lengths, masses; ///< most
  std::vector<double> angles;          ///< most x scenes: at the start
};

/// With a branch after every third link, or a plain chain.
ChainInput randomChain(int64_t scenes, int64_t most, int steps, bool branches,
                       uint64_t seed = 1);

class Chain {
public:
  Chain(const Device &device, const ChainInput &input);

  /// All steps, and then the sum over the scenes of the squared height of the
  /// tips and of the speeds.
  double run();
  /// The same recorded, and back.
  double runGradient();

  /// In the order lengths, masses, angles.
  std::vector<double> gradient() const;
  /// Adds `by` to an input, in the order of the gradient.
  void move(size_t number, double by);

private:
  void start();
  void launch();

  const ChainInput input;
  std::vector<double> lengths, masses, angles;
  Kernel step, measure;
  Array<int32_t> links, parent;
  Array<double> axes, length, mass, angle, speed;
  Array<double> frame, origin, axis, tip; ///< of each link, in space
  Array<double> moment, inertia;          ///< of each link with all behind it
  Array<double> matrix, lower, force, loss;
};

} // namespace costate::rigid
