/// Kernels with `IF`, `WHILE` and `BREAK`, and with some components of vectors,
/// in lanes and as without.

#include "Bench.h"
#include "Volume.h"

#include "costate/costate.h"
#include "costate/syntax.h"

namespace costate::bench {
namespace {

/// How long a launch of what `make(lanes)` returns takes.
template <class Make, class... Args>
void measure(const Options &options, Results &results, const Device &device,
             const std::string &name, int threads, Make make, Args &...args) {
  auto ms = [&](int lanes) {
    Kernel k = make(lanes);
    return processorMilliseconds(options, [&] {
      k(args...);
      device.synchronize();
    });
  };
  double one = ms(1), all = ms(0);
  Row &row = results.add(name, threads);
  row.set("one_lane_ms", one);
  row.set("lanes_ms", all);
  row.set("times_faster", one / all);
}

template <class T>
void measureVolume(const Options &options, Results &results,
                   const Device &device, int threads, const char *type) {
  const int64_t n = options.smoke ? 8 : 64, pixels = options.smoke ? 8 : 256;
  std::vector<T> values(size_t(n * n * n));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = T(i * 7919 % 1009) / 1009;
  Array<T> density = device.array<T>({n, n, n}), sigma = device.array<T>({}),
           image = device.array<T>({pixels, pixels});
  density.from_host(values);
  sigma.fill(T(0.3));
  measure(options, results, device, std::string("volume-") + type, threads,
          volumeRenderer<T>, density, sigma, image);
}

/// Iterations of z * z + c until |z| > 2, `most` at most.
template <class T> Kernel mandelbrot(int most, int lanes) {
  auto body = [most](ArrayRef<int32_t, 2> image) {
    parallel({image.size(0), image.size(1)}, [&](Index i, Index j) {
      Expr<T> a = T(3) * cast<T>(j) / cast<T>(image.size(1)) - T(2.25);
      Expr<T> b = T(3) * cast<T>(i) / cast<T>(image.size(0)) - T(1.5);
      Var<T> x = T(0), y = T(0);
      Var<int32_t> count = 0;
      WHILE (count < most) {
        Expr<T> x2 = x * x, y2 = y * y;
        IF (x2 + y2 > T(4)) {
          BREAK;
        }
        y = T(2) * x * y + b;
        x = x2 - y2 + a;
        count += 1;
      }
      image(i, j) = count;
    });
  };
  return kernel("mandelbrot", body, {.lanes = lanes});
}

template <class T>
void measureMandelbrot(const Options &options, Results &results,
                       const Device &device, int threads, const char *type) {
  const int64_t pixels = options.smoke ? 8 : 256;
  Array<int32_t> image = device.array<int32_t>({pixels, pixels});
  for (int most : {100, 1000})
    measure(
        options, results, device,
        "mandelbrot-" + std::to_string(most) + "-" + type, threads,
        [most](int lanes) { return mandelbrot<T>(most, lanes); }, image);
}

/// Particles that fall past a charge, each with another one, until they reach
/// the ground: as in GradBench.
template <class T> Kernel particles(int lanes) {
  auto body = [](ArrayRef<T, 1> controls, ArrayRef<T, 1> landings) {
    parallel(controls.size(), [&](Index i) {
      const T dt = T(0.1);
      Expr<T> control = controls(i);
      Var<T> x = T(0), y = T(8), vx = T(0.75), vy = T(0);
      Var<int32_t> steps = 0;
      WHILE ((y + dt * vy > T(0)) & (steps < 1000)) {
        steps += 1;
        Var<T> ax = T(0), ay = T(0);
        auto repel = [&](Expr<T> chargeY) {
          Expr<T> dx = x - T(10), dy = y - chargeY, r2 = dx * dx + dy * dy;
          Expr<T> strength = T(1) / (r2 * sqrt(r2));
          ax += dx * strength;
          ay += dy * strength;
        };
        repel(T(10) - control);
        repel(Expr<T>(T(0)));
        x += dt * vx;
        y += dt * vy;
        vx += dt * ax;
        vy += dt * ay;
      }
      landings(i) = x - y / vy * vx;
    });
  };
  return kernel("particles", body, {.lanes = lanes});
}

template <class T>
void measureParticles(const Options &options, Results &results,
                      const Device &device, int threads, const char *type) {
  std::vector<T> values(options.smoke ? 100 : 10'000);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = T(i) / T(values.size());
  Array<T> controls = device.array<T>({int64_t(values.size())}),
           landings = device.array<T>({int64_t(values.size())});
  controls.from_host(values);
  measure(options, results, device, std::string("particles-") + type, threads,
          particles<T>, controls, landings);
}

/// Two components of three.
template <class T> Kernel products(int lanes) {
  auto body = [](ArrayRef<Vec<T, 3>, 1> points, ArrayRef<T, 1> areas) {
    parallel(areas.size(), [&](Index i) {
      VecExpr<T, 3> p = points(i);
      areas(i) = p[0] * p[1];
    });
  };
  return kernel("products", body, {.lanes = lanes});
}

template <class T>
void measureProducts(const Options &options, Results &results,
                     const Device &device, int threads, const char *type) {
  const int64_t n = options.smoke ? 100 : 16'384; // as caches hold
  Array<Vec<T, 3>> points = device.array<Vec<T, 3>>({n});
  Array<T> areas = device.array<T>({n});
  measure(options, results, device, std::string("components-") + type, threads,
          products<T>, points, areas);
}

void lanes(const Options &options, Results &results) {
  for (int threads : options.threads) {
    Device device = Device::open(options.device, {.threads = threads});
    auto all = [&]<class T>(T, const char *type) {
      measureVolume<T>(options, results, device, threads, type);
      measureMandelbrot<T>(options, results, device, threads, type);
      measureParticles<T>(options, results, device, threads, type);
      measureProducts<T>(options, results, device, threads, type);
    };
    all(float(), "f32");
    all(double(), "f64");
  }
}

Registration registration("lanes",
                          "branches, loops that are left and components, in "
                          "lanes or one work item after the other",
                          lanes);

} // namespace
} // namespace costate::bench
