/// How must a cloth be thrown, so that it comes down in a given shape? A square
/// cloth of masses and springs lies flat in the air. Gradient descent through
/// its whole flight finds a velocity for each of its points, so that half a
/// second later the cloth is an arch.

#include "common/Picture.h"
#include "common/Problem.h"

#include <costate/costate.h>
#include <costate/syntax.h>

#include <cmath>
#include <cstdio>
#include <numbers>

using namespace costate;
using namespace example;

namespace {

constexpr double duration = 0.5, gravity = 9.8;   ///< s, m / s^2
constexpr double stiffness = 120, friction = 1.2; ///< per mass: m / s^2, 1 / s

struct Node {
  Vec<double, 3> position, velocity;
};
COSTATE_STRUCT(Node, position, velocity)

using Flight = ArrayRef<Node, 3>; ///< of steps, rows and columns
using Grid = ArrayRef<Vec<double, 3>, 2>;

/// The acceleration of `a` by a spring to `b`, which brakes what stretches it.
VecExpr<double, 3> pull(const Node &a, const Node &b, Expr<double> length) {
  VecExpr<double, 3> way = b.position - a.position;
  VecExpr<double, 3> direction = normalized(way);
  Expr<double> stretch = norm(way) / length - 1.0;
  Expr<double> speed = dot(b.velocity - a.velocity, direction);
  return (stiffness * stretch + friction * speed) * direction;
}

Kernel release = kernel("release", [](Grid thrown, Flight flight) {
  parallel({thrown.size(0), thrown.size(1)}, [&](Index i, Index j) {
    Expr<double> side = cast<double>(thrown.size(0) - 1);
    flight(0, i, j).position =
        vec(cast<double>(i) / side, cast<double>(j) / side, 1.5);
    flight(0, i, j).velocity = thrown(i, j);
  });
});

/// Springs go to the neighbours in a row, column or diagonal, and to the next
/// but one in a row or column, which resist bending.
bool isSpring(int a, int b) {
  return (a == 0) != (b == 0) || (std::abs(a) == 1 && std::abs(b) == 1);
}

Kernel step =
    kernel("step", [](Flight flight, Scalar<int> t, Scalar<double> h) {
      Index rows = flight.size(1), columns = flight.size(2);
      parallel({rows, columns}, [&](Index i, Index j) {
        Node node = flight(t, i, j);
        Vec<double, 3> force(0.0, 0.0, -gravity);
        for (int a = -2; a <= 2; ++a) // plain C++ loops: unrolled
          for (int b = -2; b <= 2; ++b) {
            if (!isSpring(a, b))
              continue;
            Index k = i + a, l = j + b;
            IF ((k >= 0) & (k < rows) & (l >= 0) & (l < columns)) {
              Expr<double> length = std::hypot(a, b) / cast<double>(rows - 1);
              force += pull(node, flight(t, k, l), length);
            }
          }
        node.velocity += h * force;
        node.position += h * node.velocity;
        flight(t + 1, i, j) = node;
      });
    });

/// The mean squared distance to the wanted shape after the last step.
Kernel compare =
    kernel("compare", [](Flight flight, Grid wanted, ArrayRef<double, 0> loss) {
      Index last = flight.size(0) - 1, rows = wanted.size(0);
      parallel({rows, wanted.size(1)}, [&](Index i, Index j) {
        VecExpr<double, 3> miss = flight(last, i, j).position - wanted(i, j);
        loss() += norm_sqr(miss) / cast<double>(rows * wanted.size(1));
      });
    });

/// Half a cylinder, as long and as wide as the cloth.
Points<3> arch(int side) {
  Points<3> points;
  for (int i = 0; i < side; ++i)
    for (int j = 0; j < side; ++j) {
      double angle = std::numbers::pi * i / (side - 1);
      points.push_back({0.5 - std::cos(angle) / std::numbers::pi,
                        double(j) / (side - 1),
                        std::sin(angle) / std::numbers::pi});
    }
  return points;
}

class Cloth : public Problem {
public:
  Cloth(Device device, int side, int steps) : side(side), steps(steps) {
    thrown = device.array<Vec<double, 3>>({side, side}, grad);
    wanted = device.array<Vec<double, 3>>({side, side});
    flight = device.array<Node>({steps + 1, side, side}, grad);
    miss = device.array<double>({}, grad);
    wanted.from_host(arch(side));
  }

  double loss(const Numbers &velocities) override {
    set(velocities);
    fly();
    return miss.to_host()[0];
  }

  double gradient(const Numbers &velocities, Numbers &slope) override {
    set(velocities);
    Tape tape;
    {
      auto recording = tape.record();
      fly();
    }
    thrown.grad().fill({0, 0, 0});
    tape.backward(miss); // through all steps, back to the throw
    slope = flat(thrown.grad().to_host());
    return miss.to_host()[0];
  }

  /// The points in a step of the last flight, in rows for gnuplot.
  void write(std::ostream &out, int step) const {
    std::vector<Host<Node>> nodes = flight.to_host();
    for (int k = 0; k < side * side; ++k) {
      const auto &[x, y, z] = nodes[size_t(step * side * side + k)].position;
      out << x << " " << y << " " << z << ((k + 1) % side ? "\n" : "\n\n");
    }
  }

  const int side, steps;

private:
  void set(const Numbers &velocities) {
    thrown.from_host(pointsOf<3>(velocities));
    miss.fill(0);
  }

  void fly() {
    release(thrown, flight);
    for (int t = 0; t < steps; ++t)
      step(flight, t, duration / steps);
    compare(flight, wanted, miss);
  }

  Array<Vec<double, 3>> thrown, wanted;
  Array<Node> flight;
  Array<double> miss;
};

bool draw(Cloth &cloth, const Numbers &learnt, const std::string &file) {
  Picture picture(file, 800, 310);
  cloth.loss(Numbers(learnt.size()));
  picture.data("dropped", [&](auto &out) { cloth.write(out, cloth.steps); });
  cloth.loss(learnt);
  picture.data("moments", [&](auto &out) {
    for (int k = 0; k <= 4; ++k, out << "\n")
      cloth.write(out, k * cloth.steps / 4);
  });
  return picture.draw(R"(
set multiplot layout 1,3
set view 70,28,1.1; set xyplane at 0
set xrange [-0.2:1.2]; set yrange [-0.2:1.2]; set zrange [0:1.7]; set cbrange [0:1.7]
set palette defined (0 '#2166ac', 0.4 '#67a9cf', 0.8 '#e3ddd0', 1.2 '#ef8a62', 1.7 '#b2182b')
set pm3d depthorder; unset colorbox
set xtics 1; set ytics 1; set ztics 0.5
set title 'only dropped' font ',13'
splot $dropped with pm3d
set title 'thrown: five moments' font ',13'
splot for [k=0:4] $moments index k with pm3d
set title 'at the end: the arch' font ',13'
set zrange [0:1]; set xrange [0:1]; set yrange [0:1]; set cbrange [-0.1:0.6]
set pm3d border lc rgb '#55333333' lw 0.3
splot $moments index 4 with pm3d
)");
}

} // namespace

int main(int argc, char **argv) {
  Cloth cloth(Device::best(), 16, 120);
  Numbers velocities(3 * 16 * 16); // at first it is only let go
  printSlopes(cloth, velocities);
  Numbers losses = descend(cloth, velocities, 100, 0.15);
  bool isDrawn = draw(cloth, velocities, argc > 1 ? argv[1] : "cloth.png");
  return isDrawn && losses.back() < 5e-3 * losses.front() ? 0 : 1;
}
