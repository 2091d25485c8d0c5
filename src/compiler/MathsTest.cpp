/// One function per operation: scalar code, vectors of every width and, within
/// a few units in the last place, libm agree.

#include "compiler/Compiler.h"
#include "compiler/HostMaths.h"
#include "compiler/MathsReference.h"
#include "compiler/Target.h"
#include "runtime/cpu/CpuDevice.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace costate::compiler {
namespace {

template <class T> class Compiled {
public:
  explicit Compiled(const Function &function) {
    std::string type = sizeof(T) == 8 ? "f64" : "f32";
    auto program =
        Program::parse(kernelText(function, type), "maths.mlir", "", Options());
    EXPECT_TRUE(program) << program.error().text;
    auto compiled = (*program)->compile(Mode::Primal, {});
    EXPECT_TRUE(compiled) << compiled.error().text;
    code = std::move(*compiled);
    device = *runtime::openCpu(1, 0);
  }

  void run(const T *x, const T *y, T *z, uint64_t n) {
    auto slot = [](const T *p) { return reinterpret_cast<uint64_t>(p); };
    uint64_t slots[] = {slot(x), n, slot(y), n, slot(z), n};
    ASSERT_TRUE(device->launch({&code, slots, {}, false}));
    ASSERT_TRUE(device->synchronize());
  }

private:
  runtime::KernelCode code;
  std::shared_ptr<runtime::Device> device;
};

template <class T> void check(const Function &function) {
  std::vector<T> x = samples<T>(1), y = samples<T>(2);
  std::shuffle(y.begin(), y.end(), std::mt19937(3));
  std::vector<T> wide(x.size()), narrow(x.size());
  Compiled<T> compiled(function);
  compiled.run(x.data(), y.data(), wide.data(), x.size());
  for (size_t k = 0; k < x.size(); ++k) // alone: the scalar tail
    compiled.run(&x[k], &y[k], &narrow[k], 1);
  for (size_t k = 0; k < x.size(); ++k) {
    EXPECT_TRUE(sameBits(wide[k], narrow[k]))
        << function.operation << '(' << x[k] << ", " << y[k] << ") is "
        << wide[k] << " in a vector and " << narrow[k] << " alone";
    long double exact = function.reference(x[k], y[k]);
    EXPECT_LE(error(wide[k], exact), 4)
        << function.operation << '(' << x[k] << ", " << y[k] << ") is "
        << wide[k] << ", not " << exact;
  }
}

/// The functions of HostMaths.c: what docs/design/maths.md says of them.
struct Bound {
  const char *operation;
  double ofF32, ofF64 = 0; ///< 0: it has none
};

const Bound bounds[] = {
    {"costate.sin", 0.89, 0.88}, {"costate.cos", 0.89, 0.88},
    {"costate.exp", 0.78, 0.78}, {"costate.exp2", 0.88},
    {"costate.log", 0.93},       {"costate.log10", 0.95},
    {"costate.tan", 0.95},       {"costate.exp10", 0.51},
    {"costate.expm1", 0.51},     {"costate.log2", 0.51},
    {"costate.log1p", 0.51},     {"costate.powf", 0.51},
    {"costate.hypot", 0.51},     {"costate.sinh", 0.51},
    {"costate.cosh", 0.51},      {"costate.tanh", 0.51},
    {"costate.asinh", 0.51},     {"costate.acosh", 0.51},
    {"costate.atanh", 0.51},     {"costate.erf", 0.51},
    {"costate.erfc", 0.51},
};

template <class T>
void expectWithin(const Function &function, double most,
                  const std::vector<T> &x, const std::vector<T> &y) {
  std::vector<T> z(x.size());
  Compiled<T>(function).run(x.data(), y.data(), z.data(), x.size());
  for (size_t k = 0; k < x.size(); ++k) {
    long double exact = function.reference(x[k], y[k]);
    ASSERT_LE(error(z[k], exact), most)
        << std::hexfloat << function.operation << '(' << x[k] << ", " << y[k]
        << ") is " << z[k] << ", not " << exact;
  }
}

template <class T>
void expectWithin(const Function &function, double most, size_t count) {
  std::vector<T> x = samples<T>(7, count), y = samples<T>(8, count);
  x.resize(count);
  y.resize(count);
  std::shuffle(y.begin(), y.end(), std::mt19937(3));
  expectWithin<T>(function, most, x, y);
}

/// All floats have been compared once; here are some of each exponent.
std::vector<float> someFloats() {
  std::vector<float> values;
  for (uint64_t bits = 0; bits < uint64_t(1) << 32; bits += 8009)
    values.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  return values;
}

/// Where reductions lose most.
std::vector<double> nearQuadrants() {
  std::vector<double> values;
  std::mt19937_64 random(5);
  for (int k = 0; k < 100000; ++k) {
    double x = static_cast<double>(random() % 670000) * 0x1.921fb54442d18p+0;
    x *= 1 + (static_cast<double>(random() % 5) - 2) * 0x1p-52;
    values.push_back(random() % 2 ? x : -x);
  }
  return values;
}

class Maths : public testing::TestWithParam<Function> {};

TEST_P(Maths, AgreesWithLibmAndBetweenWidthsInF64) {
  check<double>(GetParam());
}
TEST_P(Maths, AgreesWithLibmAndBetweenWidthsInF32) { check<float>(GetParam()); }

class HostMaths : public testing::TestWithParam<Bound> {
protected:
  void SetUp() override {
    if (hostMathsObjects(host().maths).empty())
      GTEST_SKIP() << "this machine has others";
  }
  static const Function &function() {
    return *std::ranges::find_if(functions, [](const Function &one) {
      return std::string(one.operation) == GetParam().operation;
    });
  }
};

TEST_P(HostMaths, OfF32AreAsExactAsTheySay) {
  if (function().isBinary)
    return expectWithin<float>(function(), GetParam().ofF32, 300000);
  std::vector<float> x = someFloats();
  expectWithin<float>(function(), GetParam().ofF32, x, x);
}

TEST_P(HostMaths, OfF64AreAsExactAsTheySay) {
  if (GetParam().ofF64 == 0)
    return;
  expectWithin<double>(function(), GetParam().ofF64, 300000);
  std::vector<double> x = nearQuadrants();
  expectWithin<double>(function(), GetParam().ofF64, x, x);
}

INSTANTIATE_TEST_SUITE_P(All, HostMaths, testing::ValuesIn(bounds),
                         [](const auto &info) {
                           return std::string(info.param.operation).substr(8);
                         });

INSTANTIATE_TEST_SUITE_P(All, Maths, testing::ValuesIn(functions),
                         [](const auto &info) {
                           std::string name = info.param.operation;
                           return name.substr(name.find('.') + 1);
                         });

} // namespace
} // namespace costate::compiler
