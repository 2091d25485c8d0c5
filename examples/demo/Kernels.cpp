#include "Kernels.h"
#include <costate/syntax.h>

using namespace costate;

namespace pony {
namespace {

/// The 3 x 3 nodes around a point, with quadratic B-splines as weights.
struct Stencil {
  Index column, row; ///< of the node at the lower left
  Vec2 offset;       ///< from that node to the point, in cells: 0.5 to 1.5
  Real weightX[3], weightY[3];

  Real weight(int a, int b) const { return weightX[a] * weightY[b]; }
  Vec2 arm(int a, int b) const { ///< from the point to node (a, b), in metres
    return {spacing * (a - offset.x), spacing * (b - offset.y)};
  }
};

Stencil stencilAt(Vec2 point) {
  Real x = point.x / spacing, y = point.y / spacing;
  // Clamped, so that a body that flies apart does not write outside the grid.
  Index column = clamp(cast<int64_t>(x - 0.5), 0, columns - 3);
  Index row = clamp(cast<int64_t>(y - 0.5), 0, rows - 3);
  x = x - cast<double>(column);
  y = y - cast<double>(row);
  auto square = [](Real a) { return a * a; };
  return {column,
          row,
          {x, y},
          {0.5 * square(1.5 - x), 0.75 - square(x - 1), 0.5 * square(x - 0.5)},
          {0.5 * square(1.5 - y), 0.75 - square(y - 1), 0.5 * square(y - 0.5)}};
}

/// Kirchhoff stress of flesh that is deformed by F, in a flow with gradient C:
/// neo-Hookean rubber, mu (F Fᵀ - 1) + lambda log(det F) 1; viscosity; and a
/// muscle, which pulls along its fibre.
Mat2 stressOf(Mat2 F, Mat2 C, Vec2 fibre, Real activation) {
  Mat2 rubber =
      mu * (F * transpose(F)) + diagonal(lambda * log(determinant(F)) - mu);
  Mat2 flow = viscosity * (C + transpose(C));
  Vec2 pull = F * fibre; // the fibre moves with the flesh
  return rubber + flow + strength * activation * outer(pull, pull);
}

} // namespace

Kernel activate = kernel("activate", [](ArrayRef<double, 2> weights,
                                        ArrayRef<double, 2> activation) {
  parallel({activation.size(0), activation.size(1)}, [&](Index t, Index m) {
    Real phase = slowest * timeStep * cast<double>(t);
    Var<double> sum = 0.0;
    FOR (k, 0, waves) {
      Real angle = cast<double>(k + 1) * phase;
      sum += weights(m, 2 * k) * sin(angle);
      sum += weights(m, 2 * k + 1) * cos(angle);
    }
    activation(t, m) = tanh(sum);
  });
});

Kernel scatter =
    kernel("scatter", [](Series x, Series v, Series C, Series F,
                         ArrayRef<int, 1> muscle, ArrayRef<double, 2> fibre,
                         ArrayRef<double, 2> activation, Series mass,
                         ArrayRef<double, 4> momentum, Scalar<int64_t> t) {
      parallel(x.size(1), [&](Index p) {
        Mat2 flow = loadMat(C, t, p);
        Mat2 shape = (diagonal(1.0) + timeStep * flow) * loadMat(F, t, p);
        store(F, t + 1, p, shape);

        // A node receives momentum, and the impulse of the stress by its arm.
        Mat2 stress = stressOf(shape, flow, {fibre(p, 0), fibre(p, 1)},
                               activation(t, muscle(p)));
        constexpr double perArm =
            -timeStep * particleVolume * 4 / (spacing * spacing);
        Mat2 impulse = perArm * stress + particleMass * flow;
        Vec2 mean = particleMass * loadVec(v, t, p);

        Stencil nodes = stencilAt(loadVec(x, t, p));
        for (int a = 0; a < 3; ++a) // plain C++ loops: unrolled
          for (int b = 0; b < 3; ++b) {
            Index i = nodes.column + a, j = nodes.row + b;
            Real weight = nodes.weight(a, b);
            Vec2 share = weight * (mean + impulse * nodes.arm(a, b));
            mass(t, i, j) += weight * particleMass; // += is atomic
            momentum(t, i, j, 0) += share.x;
            momentum(t, i, j, 1) += share.y;
          }
      });
    });

Kernel collide =
    kernel("collide", [](Series mass, ArrayRef<double, 4> momentum,
                         ArrayRef<double, 4> velocity, Scalar<int64_t> t) {
      parallel({mass.size(1), mass.size(2)}, [&](Index i, Index j) {
        Real m = mass(t, i, j);
        Var<double> x = 0.0, y = 0.0;
        IF (m > 0) {
          x = momentum(t, i, j, 0) / m;
          y = momentum(t, i, j, 1) / m - gravity * timeStep;
          IF (((i < margin) & (x < 0)) | ((i >= columns - margin) & (x > 0))) {
            x = 0.0; // a wall
          }
          IF ((j >= rows - margin) & (y > 0)) {
            y = 0.0; // the ceiling
          }
          IF ((j < margin) & (y < 0)) { // the floor stops y, and brakes x
            x -= clamp(x, friction * y, -friction * y);
            y = 0.0;
          }
        }
        velocity(t, i, j, 0) = x;
        velocity(t, i, j, 1) = y;
      });
    });

Kernel gather =
    kernel("gather", [](Series x, Series v, Series C,
                        ArrayRef<double, 4> velocity, Scalar<int64_t> t) {
      parallel(x.size(1), [&](Index p) {
        Vec2 point = loadVec(x, t, p);
        Stencil nodes = stencilAt(point);
        Vec2 mean = {0.0, 0.0};
        Mat2 moment = diagonal(0.0);
        for (int a = 0; a < 3; ++a)
          for (int b = 0; b < 3; ++b) {
            Index i = nodes.column + a, j = nodes.row + b;
            Vec2 node = {velocity(t, i, j, 0), velocity(t, i, j, 1)};
            Vec2 share = nodes.weight(a, b) * node;
            mean = mean + share;
            moment = moment + outer(share, nodes.arm(a, b));
          }
        store(v, t + 1, p, mean);
        store(C, t + 1, p, 4 / (spacing * spacing) * moment);
        store(x, t + 1, p, point + timeStep * mean);
      });
    });

Kernel measure =
    kernel("measure",
           [](Series x, ArrayRef<double, 1> centre, ArrayRef<double, 0> loss,
              Scalar<double> targetX, Scalar<double> targetY) {
             Index particles = x.size(1);
             parallel(particles, [&](Index p) {
               centre(0) += x(steps, p, 0) / cast<double>(particles);
               centre(1) += x(steps, p, 1) / cast<double>(particles);
             });
             Real dx = centre(0) - targetX, dy = centre(1) - targetY;
             loss() = dx * dx + dy * dy;
           });

} // namespace pony
