/// One function per operation: scalar code, vectors of every width and, within
/// a few units in the last place, libm agree.

#include "compiler/Compiler.h"
#include "compiler/MathsReference.h"
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

class Maths : public testing::TestWithParam<Function> {};

TEST_P(Maths, AgreesWithLibmAndBetweenWidthsInF64) {
  check<double>(GetParam());
}
TEST_P(Maths, AgreesWithLibmAndBetweenWidthsInF32) { check<float>(GetParam()); }

INSTANTIATE_TEST_SUITE_P(All, Maths, testing::ValuesIn(functions),
                         [](const auto &info) {
                           std::string name = info.param.operation;
                           return name.substr(name.find('.') + 1);
                         });

} // namespace
} // namespace costate::compiler
