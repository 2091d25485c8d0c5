/// Where is a planet? Kepler's equation E - e sin E = M gives its eccentric
/// anomaly E from the time (mean anomaly M) and the eccentricity e of its
/// orbit. Newton's method takes more iterations for some orbits than for
/// others; reverse mode goes back through as many as each of them took. The
/// derivatives of the root are known in closed form, from differentiating the
/// equation:
///
///     dE/dM = 1 / (1 - e cos E)        dE/de = sin E / (1 - e cos E)

#include <costate/costate.h>
#include <costate/syntax.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

using namespace costate;

Kernel kepler =
    kernel("kepler", [](ArrayRef<double, 1> M, ArrayRef<double, 1> e,
                        ArrayRef<double, 1> E, ArrayRef<int, 1> iterations) {
      parallel(M.size(), [&](Index i) {
        Var<double> x = M(i), step = 1.0;
        Var<int> n = 0;
        WHILE (abs(step) > 1e-12) {
          step = (x - e(i) * sin(x) - M(i)) / (1.0 - e(i) * cos(x));
          x -= step;
          n += 1;
        }
        E(i) = x;
        iterations(i) = n;
      });
    });

int main() {
  constexpr int orbits = 8;
  Device device = Device::best();
  Array<double> M = device.array<double>({orbits}, grad);
  Array<double> e = device.array<double>({orbits}, grad);
  Array<double> E = device.array<double>({orbits}, grad);
  Array<int> iterations = device.array<int>({orbits});
  M.from_host({0.1, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.1});
  e.from_host({0.0, 0.2, 0.8, 0.5, 0.9, 0.1, 0.7, 0.3});

  kepler(M, e, E, iterations);
  E.grad().fill(1); // each root depends on its own orbit only
  kepler.grad(M, e, E, iterations);

  std::vector<double> root = E.to_host(), eccentricity = e.to_host();
  std::vector<double> dM = M.grad().to_host(), de = e.grad().to_host();
  std::vector<int> count = iterations.to_host();
  double error = 0;
  std::printf("iterations   E            dE/dM        dE/de\n");
  for (int i = 0; i < orbits; ++i) {
    double slope = 1 / (1 - eccentricity[i] * std::cos(root[i]));
    error = std::max({error, std::abs(dM[i] - slope),
                      std::abs(de[i] - slope * std::sin(root[i]))});
    std::printf("%3d   %12.9f %12.9f %12.9f\n", count[i], root[i], dM[i],
                de[i]);
  }
  std::printf("largest difference from the closed form: %.1e\n", error);
  return error < 1e-10 ? 0 : 1;
}
