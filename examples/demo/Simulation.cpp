#include "Simulation.h"
#include "Kernels.h"

#include <cmath>

using namespace costate;

namespace pony {

void Body::add(Point corner, double width, double height, Point direction) {
  int across = std::lround(width / particleSize);
  int up = std::lround(height / particleSize);
  for (int i = 0; i < across; ++i)
    for (int j = 0; j < up; ++j) {
      position.push_back({corner.x + (i + 0.5) * width / across,
                          corner.y + (j + 0.5) * height / up});
      fibre.push_back(direction);
      muscle.push_back(muscles);
    }
  ++muscles;
}

Body makePony() {
  constexpr double left = 0.2, ground = margin * spacing;
  constexpr double leg = 0.035, hip = ground + 0.12, back = 0.38, rib = 0.07;
  constexpr Point level = {1, 0}, upright = {0, 1};
  Body body;
  for (int i = 0; i < 4; ++i)
    for (int side = 0; side < 2; ++side)
      body.add({left + i * (back - 2 * leg) / 3 + side * leg, ground}, leg,
               hip - ground, upright);
  for (int i = 0; i < 4; ++i)
    for (int row = 0; row < 2; ++row)
      body.add({left + i * back / 4, hip + row * rib}, back / 4, rib, level);
  body.add({left + back, hip + 0.05}, 0.08, 0.1, upright); // head
  body.add({left - 0.08, hip + 0.11}, 0.08, 0.03, level);  // tail
  return body;
}

static Numbers flatten(const std::vector<Point> &points) {
  Numbers numbers;
  for (Point p : points)
    numbers.insert(numbers.end(), {p.x, p.y});
  return numbers;
}

Simulation::Simulation(Device device, const Body &body, Point target)
    : target(target) {
  auto n = static_cast<int64_t>(body.muscle.size());
  weights = device.array<double>({body.muscles, 2 * waves}, grad);
  activation = device.array<double>({steps, body.muscles}, grad);
  x = device.array<double>({steps + 1, n, 2}, grad);
  v = device.array<double>({steps + 1, n, 2}, grad);
  C = device.array<double>({steps + 1, n, 4}, grad);
  F = device.array<double>({steps + 1, n, 4}, grad);
  mass = device.array<double>({steps, columns, rows}, grad);
  momentum = device.array<double>({steps, columns, rows, 2}, grad);
  velocity = device.array<double>({steps, columns, rows, 2}, grad);
  mean = device.array<double>({2}, grad);
  miss = device.array<double>({}, grad);
  fibre = device.array<double>({n, 2});
  muscle = device.array<int>({n});

  // Step 0: the body in its place, at rest (v = 0, C = 0) and undeformed (F =
  // 1).
  Numbers place = flatten(body.position), shape(F.size());
  place.resize(x.size());
  for (int64_t p = 0; p < n; ++p)
    shape[4 * p] = shape[4 * p + 3] = 1;
  x.from_host(place);
  F.from_host(shape);
  fibre.from_host(flatten(body.fibre));
  muscle.from_host(body.muscle);
}

/// Empties what the kernels add to.
void Simulation::reset(const Numbers &values) {
  weights.from_host(values);
  mass.fill(0);
  momentum.fill(0);
  mean.fill(0);
}

void Simulation::run() {
  activate(weights, activation);
  for (int64_t t = 0; t < steps; ++t) {
    scatter(x, v, C, F, muscle, fibre, activation, mass, momentum, t);
    collide(mass, momentum, velocity, t);
    gather(x, v, C, velocity, t);
  }
  measure(x, mean, miss, target.x, target.y);
}

double Simulation::loss(const Numbers &values) {
  reset(values);
  run();
  return miss.to_host()[0];
}

double Simulation::gradient(const Numbers &values, Numbers &slope) {
  reset(values);
  Tape tape;
  {
    auto recording = tape.record();
    run();
  }
  weights.grad().fill(0);
  tape.backward(miss); // through 1500 launches, back to the weights
  slope = weights.grad().to_host();
  return miss.to_host()[0];
}

std::vector<Point> Simulation::particles(int64_t step) const {
  const double *at = x.data() + step * x.size(1) * 2;
  std::vector<Point> points;
  for (int64_t p = 0; p < x.size(1); ++p)
    points.push_back({at[2 * p], at[2 * p + 1]});
  return points;
}

Point Simulation::centre(int64_t step) const {
  Point sum = {0, 0};
  std::vector<Point> all = particles(step);
  for (Point p : all)
    sum = {sum.x + p.x / all.size(), sum.y + p.y / all.size()};
  return sum;
}

Numbers Simulation::activations(int64_t step) const {
  const double *at = activation.data() + step * activation.size(1);
  return Numbers(at, at + activation.size(1));
}

} // namespace pony
