/// The largest error of each function, in units of the last place, beside long
/// double.

#include "Bench.h"

#include "compiler/MathsReference.h"
#include "costate/costate.h"

#include <algorithm>

namespace costate::bench {
namespace {

using compiler::Function;

struct Worst {
  double error = 0, x = 0, y = 0;
  double ofNormal = 0; ///< error where no number is denormal
};

template <class T> bool isDenormal(long double x) {
  return x != 0 && std::fabs(x) < std::numeric_limits<T>::min();
}

template <class T> class Arguments {
public:
  Arguments(const Device &device, size_t count)
      : x(compiler::samples<T>(1, count)), y(compiler::samples<T>(2, count)),
        to(device.array<T>({count})) {
    x.resize(count);
    y.resize(count);
    std::shuffle(y.begin(), y.end(), std::mt19937(3));
    first = device.array<T>({count});
    second = device.array<T>({count});
    first.from_host(x);
    second.from_host(y);
  }

  Worst worstOf(const Function &function) {
    std::string type = sizeof(T) == 8 ? "f64" : "f32";
    Kernel kernel = Kernel::from_ir(compiler::kernelText(function, type));
    kernel(first, second, to);
    std::vector<T> z = to.to_host();
    Worst worst;
    for (size_t k = 0; k < z.size(); ++k) {
      long double exact = function.reference(x[k], y[k]);
      double error = compiler::error(z[k], exact);
      if (error > worst.error)
        worst = {error, x[k], y[k], worst.ofNormal};
      bool isSmall = isDenormal<T>(x[k]) || isDenormal<T>(exact) ||
                     (function.isBinary && isDenormal<T>(y[k]));
      if (!isSmall)
        worst.ofNormal = std::max(worst.ofNormal, error);
    }
    return worst;
  }

private:
  std::vector<T> x, y;
  Array<T> first, second, to;
};

void set(Row &row, const std::string &type, const Function &function,
         const Worst &worst) {
  row.set(type, worst.error);
  row.set(type + "_normal", worst.ofNormal);
  row.set(type + "_x", worst.x);
  if (function.isBinary)
    row.set(type + "_y", worst.y);
}

void accuracy(const Options &options, Results &results) {
  size_t count = options.items ? options.items : options.smoke ? 2000 : 400000;
  Device device =
      Device::open(options.device, {.threads = options.threads.front()});
  Arguments<float> floats(device, count);
  Arguments<double> doubles(device, count);
  for (const Function &function : compiler::functions) {
    std::string name = function.operation;
    Row &row = results.add(name.substr(name.find('.') + 1), device.threads());
    set(row, "f32", function, floats.worstOf(function));
    set(row, "f64", function, doubles.worstOf(function));
  }
}

Registration registration("accuracy", "largest errors of functions, in ulp",
                          accuracy);

} // namespace
} // namespace costate::bench
