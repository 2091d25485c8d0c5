/// Runs on the host what devices get for their quotients and roots, with
/// operations that are wrong by a few units in the last place, as Vulkan
/// allows.

#include "base/VulkanChip.h"
#include "conversion/LLVMToSPIRV/Prepare.h"

#include "llvm/AsmParser/Parser.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/TargetSelect.h"

#include <bit>
#include <cmath>
#include <gtest/gtest.h>
#include <random>
#ifdef __SSE__
#include <xmmintrin.h>
#endif

namespace costate::conversion {
namespace {

/// By which a device is wrong, in units in the last place.
struct Errors {
  int quotient = 0, root = 0;
};
constexpr int mostOfQuotient = 3, mostOfRoot = 6;

using Operation = float (*)(float x, float y, int ofQuotient, int ofRoot);

/// `@near`: a number `error` units above one, unless that is 0 or not finite.
constexpr const char *code = R"(
define float @quotient(float %x, float %y, i32 %ofQuotient, i32 %ofRoot) {
  %q = fdiv float %x, %y
  ret float %q
}
define float @root(float %x, float %y, i32 %ofQuotient, i32 %ofRoot) {
  %r = call float @llvm.sqrt.f32(float %x)
  ret float %r
}
define float @near(float %exact, i32 %error) {
  %bits = bitcast float %exact to i32
  %size = and i32 %bits, 2147483647
  %more = sub i32 %size, 16777216
  %usual = icmp ult i32 %more, 2113929216
  %other = add i32 %bits, %error
  %wrong = bitcast i32 %other to float
  %near = select i1 %usual, float %wrong, float %exact
  ret float %near
}
declare float @llvm.sqrt.f32(float)
)";

/// The operation of the host in the place of one of the device.
void standIn(llvm::IntrinsicInst &call) {
  llvm::IRBuilder<> b(&call);
  bool isRoot = call.getIntrinsicID() == llvm::Intrinsic::nvvm_sqrt_rn_f;
  llvm::Value *exact =
      isRoot ? b.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, call.getOperand(0))
             : b.CreateFDiv(call.getOperand(0), call.getOperand(1));
  llvm::Function *near = call.getModule()->getFunction("near");
  llvm::Value *error = call.getFunction()->getArg(isRoot ? 3 : 2);
  call.replaceAllUsesWith(b.CreateCall(near, {exact, error}));
  call.eraseFromParent();
}

/// While it lives the host takes denormals for 0, if it can.
class Flushing {
public:
#ifdef __SSE__
  explicit Flushing(bool flushes) : before(_mm_getcsr()) {
    constexpr unsigned inputsAndResults = 0x8040;
    if (flushes)
      _mm_setcsr(before | inputsAndResults);
  }
  ~Flushing() { _mm_setcsr(before); }

private:
  unsigned before;
#elif defined(__aarch64__)
  explicit Flushing(bool flushes) : before(__builtin_arm_rsr64("fpcr")) {
    constexpr uint64_t inputsAndResults = 1 << 24;
    if (flushes)
      __builtin_arm_wsr64("fpcr", before | inputsAndResults);
  }
  ~Flushing() { __builtin_arm_wsr64("fpcr", before); }

private:
  uint64_t before;
#else
  explicit Flushing(bool) {}
#endif
};

bool areSame(float a, float b) {
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}

/// With a device that keeps denormals, or one that takes them for 0.
class RoundFloats : public testing::TestWithParam<bool> {
protected:
  void SetUp() override {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    auto context = std::make_unique<llvm::LLVMContext>();
    llvm::SMDiagnostic problem;
    auto module = llvm::parseAssemblyString(code, problem, *context);
    ASSERT_TRUE(module) << problem.getMessage().str();
    for (const char *name : {"quotient", "root"})
      round(*module->getFunction(name));
    jit = llvm::cantFail(llvm::orc::LLJITBuilder().create());
    llvm::cantFail(jit->addIRModule({std::move(module), std::move(context)}));
    quotient = find("quotient");
    root = find("root");
  }

  void expectQuotient(float x, float y, Errors errors) {
    float got = run(quotient, x, y, errors), exact = x / y;
    if (isLost(x) || isLost(y))
      return;
    bool isRight = areSame(got, exact);
    if (isLost(exact)) // 0, or the least that is not lost
      isRight = areSame(got, std::copysign(0.0f, exact)) ||
                areSame(got, std::copysign(0x1p-126f, exact));
    EXPECT_TRUE(isRight) << std::hexfloat << x << " / " << y << " is " << exact
                         << ", not " << got;
  }

  void expectRoot(float x, Errors errors) {
    float got = run(root, x, 1, errors), exact = std::sqrt(x);
    EXPECT_TRUE(isLost(x) || areSame(got, exact))
        << std::hexfloat << "the root of " << x << " is " << exact << ", not "
        << got;
  }

private:
  float run(Operation operation, float x, float y, Errors errors) {
    Flushing flushing(!GetParam());
    return operation(x, y, errors.quotient, errors.root);
  }
  bool isLost(float x) {
    return !GetParam() && std::fpclassify(x) == FP_SUBNORMAL;
  }

  /// For a device whose quotients and roots are not exact.
  void round(llvm::Function &function) {
    VulkanFeatures features;
    features.f64 = features.fma32 = true;
    features.denorm32 = GetParam();
    roundFloats(function, features);
    llvm::SmallVector<llvm::IntrinsicInst *> calls;
    for (llvm::Instruction &one : llvm::instructions(function))
      if (auto *call = llvm::dyn_cast<llvm::IntrinsicInst>(&one);
          call && call->getCalledFunction()->getName().contains("nvvm"))
        calls.push_back(call);
    EXPECT_FALSE(calls.empty());
    for (llvm::IntrinsicInst *call : calls)
      standIn(*call);
  }
  Operation find(const char *name) {
    return llvm::cantFail(jit->lookup(name)).toPtr<Operation>();
  }

  std::unique_ptr<llvm::orc::LLJIT> jit;
  Operation quotient = nullptr, root = nullptr;
};

std::vector<Errors> someErrors() {
  std::vector<Errors> all;
  for (int q = -mostOfQuotient; q <= mostOfQuotient; ++q)
    for (int r : {-mostOfRoot, -1, 0, mostOfRoot})
      all.push_back({q, r});
  return all;
}

std::vector<float> special() {
  std::vector<float> all;
  for (float x : {0.0f, 1.0f, 1.5f, 0x1p-126f, 0x1.7ffffep-126f, 0x1.8p-126f,
                  0x1.fffffep-1f, 0x1.fffffep127f, 0x1p127f, 0x1.fffffcp-63f,
                  0x1p-149f, 0x1.fffffcp-127f, INFINITY, NAN})
    all.insert(all.end(), {x, -x});
  return all;
}

TEST_P(RoundFloats, OfZerosAndInfinitiesIsThatOfTheHost) {
  for (Errors errors : someErrors())
    for (float x : special()) {
      expectRoot(x, errors);
      for (float y : special())
        expectQuotient(x, y, errors);
    }
}

TEST_P(RoundFloats, OfAnyBitsIsThatOfTheHost) {
  std::mt19937 random(1);
  auto any = [&] { return std::bit_cast<float>(uint32_t(random())); };
  auto anyError = [&](int most) {
    return int(random() % (2 * most + 1)) - most;
  };
  for (int k = 0; k < 1000000 && !HasFailure(); ++k) {
    float x = any(), y = any();
    Errors errors{anyError(mostOfQuotient), anyError(mostOfRoot)};
    expectRoot(x, errors);
    expectQuotient(x, y, errors);
  }
}

/// By numbers below a power of 2, whose reciprocals are next to halves of
/// units: dividends whose quotients are so too. And next to the least that is
/// no denormal, where a quotient may not be rounded twice.
TEST_P(RoundFloats, OfTheHardestQuotientsIsThatOfTheHost) {
  for (auto [x, y] : {std::pair(0x1.0p0f, 0x1.fffffep0f),
                      {0x1.aaaaa6p0f, 0x1.fffffap0f},
                      {0x1.ccccc4p0f, 0x1.fffff6p0f},
                      {0x1.db6daap0f, 0x1.fffff2p0f},
                      {0x1.7ffffep-126f, 1.5f},
                      {0x1.7ffffep-120f, 0x1.8p+6f}})
    for (Errors errors : someErrors())
      for (int k = -4; k <= 4; ++k)
        for (float divisor : {std::ldexp(y, k), -std::ldexp(y, k)})
          expectQuotient(x, divisor, errors);
}

INSTANTIATE_TEST_SUITE_P(Devices, RoundFloats, testing::Bool(),
                         [](const auto &info) {
                           return info.param ? "ThatKeepDenormals"
                                             : "ThatLoseDenormals";
                         });

} // namespace
} // namespace costate::conversion
