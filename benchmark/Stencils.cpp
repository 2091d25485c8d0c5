/// Explicit steps of a heat equation, and their gradients by the field and by
/// the conductivity.

#include "Bench.h"

#include "costate/costate.h"
#include "costate/syntax.h"

namespace costate::bench {
namespace {

enum class Border { Inside, Condition, Clamped, Periodic };

struct Case {
  int dims;
  bool isCubic;
  Border border;

  std::string name(const char *type) const {
    constexpr const char *borders[] = {"inside", "condition", "clamped",
                                       "periodic"};
    return std::to_string(dims) + "d-" + type + (isCubic ? "-cubic-" : "-") +
           borders[int(border)];
  }
};

/// w = u + k / 5 (the sum of the neighbours - as many times u), or of cubes.
template <class T, unsigned N> class Step {
public:
  using Field = ArrayRef<T, N>;
  using Cell = std::array<Index, N>;

  explicit Step(Case kind) : kind(kind) {}

  Kernel make() const {
    return kernel("heat", [this](Field u, Field k, Field w) {
      if constexpr (N == 2)
        parallel({extent(u, 0), extent(u, 1)},
                 [&](Index i, Index j) { update(u, k, w, {i, j}); });
      else
        parallel(
            {extent(u, 0), extent(u, 1), extent(u, 2)},
            [&](Index i, Index j, Index l) { update(u, k, w, {i, j, l}); });
    });
  }

private:
  Index extent(const Field &u, int dim) const {
    return kind.border == Border::Inside ? u.size(dim) - 2 : u.size(dim);
  }

  static auto at(const Field &array, const Cell &cell) {
    return std::apply([&](auto... index) { return array(index...); }, cell);
  }

  Expr<T> term(const Field &u, const Cell &cell) const {
    Expr<T> value = at(u, cell);
    return kind.isCubic ? Expr<T>(value * value * value) : value;
  }

  Index beside(Index i, int step, Index n) const {
    if (kind.border == Border::Periodic)
      return (i + (n + step)) % n;
    if (kind.border == Border::Clamped)
      return step < 0 ? max(i - 1, 0) : min(i + 1, n - 1);
    return i + step;
  }

  void update(const Field &u, const Field &k, const Field &w, Cell cell) const {
    if (kind.border == Border::Inside)
      for (Index &index : cell)
        index = index + 1;
    Var<T> sum = T(-2 * int(N)) * term(u, cell);
    for (unsigned dim = 0; dim < N; ++dim)
      for (int step : {1, -1}) {
        Index n = u.size(dim);
        auto add = [&] {
          Cell other = cell;
          other[dim] = beside(cell[dim], step, n);
          sum += term(u, other);
        };
        if (kind.border == Border::Condition) {
          IF (step < 0 ? cell[dim] > 0 : cell[dim] < n - 1) {
            add();
          }
        } else {
          add();
        }
      }
    at(w, cell) = at(u, cell) + T(0.2) * at(k, cell) * sum;
  }

  Case kind;
};

template <class T, unsigned N>
void measure(const Options &options, const Device &device, Case kind,
             Row &row) {
  int64_t side = options.smoke      ? 16
                 : options.isHost() ? (N == 2 ? 1024 : 128)
                 : N == 2           ? 4096
                                    : 256;
  std::vector<int64_t> shape(N, side);
  Array<T> u = device.array<T>(shape, grad), k = device.array<T>(shape, grad),
           w = device.array<T>(shape, grad);
  u.fill(1);
  k.fill(1);
  w.grad().fill(1);
  Kernel step = Step<T, N>(kind).make();
  double primal = steadyMilliseconds(options, device, [&] { step(u, k, w); });
  double gradient =
      steadyMilliseconds(options, device, [&] { step.grad(u, k, w); });
  row.set("primal_ms", primal);
  row.set("gradient_ms", gradient);
  row.set("ratio", gradient / primal);
}

void stencils(const Options &options, Results &results) {
  for (int threads : options.threads) {
    Device device = Device::open(options.device, {.threads = threads});
    for (int dims : {2, 3})
      for (bool isCubic : {false, true})
        for (Border border : {Border::Inside, Border::Condition,
                              Border::Clamped, Border::Periodic}) {
          Case kind{dims, isCubic, border};
          Row &f32 = results.add(kind.name("f32"), threads);
          dims == 2 ? measure<float, 2>(options, device, kind, f32)
                    : measure<float, 3>(options, device, kind, f32);
          Row &f64 = results.add(kind.name("f64"), threads);
          dims == 2 ? measure<double, 2>(options, device, kind, f64)
                    : measure<double, 3>(options, device, kind, f64);
        }
  }
}

Registration
    registration("stencil",
                 "a heat equation in 2 and 3 dimensions, and its gradient",
                 stencils);

} // namespace
} // namespace costate::bench
