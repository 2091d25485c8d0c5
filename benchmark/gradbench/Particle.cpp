#include "gradbench/Particle.h"

#include "costate/syntax.h"

#include <cmath>

namespace costate::gradbench {

using Real = Expr<double>;

/// Explicit Euler steps of 0.1 while it is above the ground, then straight on.
static Kernel makeFall() {
  return kernel("fall", [](ArrayRef<double, 0> control,
                           ArrayRef<double, 0> square, ArrayRef<int, 0> steps) {
    const double dt = 0.1;
    Var<double> x = 0.0, y = 8.0, vx = 0.75, vy = 0.0;
    Var<int> count = 0;
    WHILE (y + dt * vy > 0) {
      Var<double> ax = 0.0, ay = 0.0;
      auto repel = [&](Real chargeY) {
        Real dx = x - 10.0, dy = y - chargeY, r2 = dx * dx + dy * dy;
        Real strength = 1.0 / (r2 * sqrt(r2));
        ax += dx * strength;
        ay += dy * strength;
      };
      repel(10.0 - control());
      repel(Real(0.0));
      x += dt * vx;
      y += dt * vy;
      vx += dt * ax;
      vy += dt * ay;
      count += 1;
    }
    Real landing = x - y / vy * vx;
    square() = landing * landing;
    steps() = count;
  });
}

Particle::Particle(const Device &device)
    : fall(makeFall()), control(device.array<double>({}, grad)),
      square(device.array<double>({}, grad)), steps(device.array<int>({})) {}

Particle::Landing Particle::land(double at) {
  ++count;
  control.fill(at);
  control.grad().fill(0);
  fall(control, square, steps);
  square.grad().fill(1);
  fall.grad(control, square, steps);
  return {square.to_host()[0], control.grad().to_host()[0], steps.to_host()[0]};
}

double Particle::bestControl() {
  double at = 0, size = 1e-5;
  Landing here = land(at);
  for (int better = 0; std::abs(here.derivative) > 1e-5;) {
    if (better == 10) {
      size *= 2;
      better = 0;
    }
    double next = at - size * here.derivative;
    if (std::abs(next - at) <= 1e-5)
      break;
    Landing there = land(next);
    if (there.square < here.square) {
      at = next;
      here = there;
      ++better;
    } else {
      size /= 2;
      better = 0;
    }
  }
  return at;
}

} // namespace costate::gradbench
