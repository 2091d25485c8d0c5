/// Functions that are called: the same bits as functions that are made part of
/// the kernel, in less code.

#include "Labels.h"
#include "conformance/Errors.h"
#include "conformance/Gradients.h"

#include "api/KernelImpl.h"
#include "code/DeviceCode.h"
#include "compiler/Compiler.h"
#include "syntax/Trace.h"

using namespace costate;
using namespace costate::test;

COSTATE_LABEL("CalledFunction.HasPrivateArrays", sample);

namespace {

using X = ArrayRef<double, 1>;
using Real = Expr<double>;
using Values = std::vector<double>;

/// The primal of `body` in kernel IR.
template <class F> std::string textOf(F body, Calls calls = Calls::All) {
  auto traced = detail::trace("k", body, Loc::current());
  EXPECT_FALSE(traced->failure);
  auto program =
      compiler::Program::lower(traced->outlined(calls), {.calls = calls});
  EXPECT_TRUE(program) << program.error().text;
  auto text = (*program)->print(compiler::Mode::Primal, {}, /*llvm=*/false);
  EXPECT_TRUE(text) << text.error().text;
  return *text;
}

int count(const std::string &text, const std::string &word) {
  int found = 0;
  for (size_t at = 0; (at = text.find(word, at)) != std::string::npos; ++at)
    ++found;
  return found;
}

template <class F>
Kernel kernelWith(Calls calls, const char *name, F body,
                  KernelOptions options = {}) {
  return detail::make_kernel(*detail::trace(name, body, Loc::current()),
                             options, calls);
}

/// Calls whatever can be called.
class CalledFunction : public testing::Test {
protected:
  template <class F>
  static Kernel calling(const char *name, F body, KernelOptions options = {}) {
    return kernelWith(Calls::All, name, body, options);
  }

  /// Expects so many calls and functions; then the bits of a kernel without
  /// calls, and derivatives. The last array is the output.
  template <class F, class... A>
  void expectCalls(int calls, int functions, F body, A... arrays) {
    std::string text = textOf(body);
    EXPECT_EQ(count(text, "call @"), calls) << text;
    EXPECT_EQ(count(text, "func.func"), functions) << text;
    Kernel called = calling("called", body);
    std::vector<Array<double>> inputs{arrays...};
    Array<double> output = inputs.back();
    Values start = output.to_host();
    called(arrays...);
    Values values = output.to_host();
    output.from_host(start);
    calling("inlined", body, {.debug = true})(arrays...);
    EXPECT_EQ(values, output.to_host());
    output.from_host(start);
    kernelWith(Calls::None, "plain", body)(arrays...);
    Values plain = output.to_host();
    for (size_t i = 0; i < plain.size(); ++i)
      EXPECT_NEAR(values[i], plain[i],
                  1e-13 * std::max(1.0, std::abs(plain[i])));
    output.from_host(start);
    inputs.pop_back();
    expectGradients(inputs, {output}, called, arrays...);
  }
};

Values spread(int n) { return randomValues(n, 0.5, 1.5); }

TEST_F(CalledFunction, ComputesWithItsArguments) {
  auto f = function("f", [](Real x, Real y) { return sin(x) * y + x * x; });
  auto body = [&](X x, X y) {
    parallel(x, [&](Index i) {
      Var<double> v = x(i);
      y(i) = f(v, 0.5) * f(x(i) + 1.0, v) + f(2.0, x(i));
    });
  };
  expectCalls(3, 1, body, active(spread(5)), active(Values(5)));
}

TEST_F(CalledFunction, LoopsAndBranches) {
  auto f = function("f", [](Real x, Index n) {
    Var<double> v = x;
    Var<int> iterations = 0;
    FOR (k, 0, n) {
      v = v * sin(v) + 0.3;
      IF (v > 1.5) {
        BREAK;
      }
      iterations += 1;
    }
    WHILE (v > 0.2) {
      v *= 0.6;
    }
    IF (iterations > 2) {
      v = v * x;
    }
    ELSE { v = v + x * x; }
    return v;
  });
  auto body = [&](X x, X y) {
    parallel(x, [&](Index i) {
      Var<double> sum = 0;
      FOR (k, 0, i + 1) {
        sum += f(x(i), k) * f(x(i) * 0.9, i);
      }
      y(i) = sum;
    });
  };
  expectCalls(2, 1, body, active(spread(6)), active(Values(6)));
}

TEST_F(CalledFunction, AssignsVariablesOfItsCaller) {
  auto step = function("step", [](Var<double> &v, Var<int> &count, Real x) {
    v = v * x + 0.25;
    count += 1;
  });
  auto body = [&](X x, X y) {
    parallel(x, [&](Index i) {
      Var<double> v = x(i);
      Var<int> count = 0;
      FOR (k, 0, 3) {
        step(v, count, x(0));
      }
      step(v, count, x(1));
      y(i) = v * cast<double>(count);
    });
  };
  expectCalls(2, 1, body, active(spread(4)), active(Values(4)));
}

TEST_F(CalledFunction, ReadsArrays) {
  auto body = [](X x, X z, X y) {
    auto at = function("at", [&](X a, Index i) {
      Index n = a.size(0);
      return a((i + 1) % n) * x((i + 2) % x.size(0)) + cast<double>(n);
    });
    parallel(x, [&](Index i) { y(i) = at(x, i) * at(z, i) + at(z, 0); });
  };
  expectCalls(3, 2, body, active(spread(4)), active(spread(6)),
              active(Values(4)));
}

TEST_F(CalledFunction, HasPrivateArrays) {
  auto median = function("median", [](Real a, Real b, Real c) {
    Local<double, 3> sorted;
    sorted[0] = a;
    sorted[1] = b;
    sorted[2] = c;
    FOR (k, 0, 3) {
      Index j = k % 2;
      Real low = min(sorted[j], sorted[j + 1]),
           high = max(sorted[j], sorted[j + 1]);
      sorted[j] = low;
      sorted[j + 1] = high;
    }
    return Real(sorted[1]);
  });
  auto body = [&](X x, X y) {
    parallel(x.size(0) - 2, [&](Index i) {
      y(i) = median(x(i), x(i + 1), x(i + 2)) + median(x(i + 2), x(0), 0.7);
    });
  };
  expectCalls(2, 1, body, active({1.3, 0.4, 0.9, 0.1, 1.1, 0.5}),
              active(Values(4)));
}

TEST_F(CalledFunction, ReturnsSeveralValues) {
  auto rotate = function("rotate", [](Vec<double, 2> v, Real angle) {
    Real c = cos(angle), s = sin(angle);
    return Vec<double, 2>(c * v[0] - s * v[1], s * v[0] + c * v[1]);
  });
  auto body = [&](X x, X y) {
    parallel(x, [&](Index i) {
      Vec<double, 2> v = rotate(Vec<double, 2>(x(i), 1.0), x(0));
      v = rotate(v, v[0]);
      y(i) = v[0] * v[1];
    });
  };
  expectCalls(2, 1, body, active(spread(4)), active(Values(4)));
}

TEST_F(CalledFunction, CallsAnother) {
  auto f = function("f", [](Real x) { return x * sin(x); });
  auto g = function("g", [&](Real x) { return f(x) + f(x * 0.5) * x; });
  auto body = [&](X x, X y) {
    parallel(x, [&](Index i) { y(i) = g(x(i)) * f(x(i)) + g(0.3); });
  };
  expectCalls(5, 2, body, active(spread(4)), active(Values(4)));
}

TEST_F(CalledFunction, IsCalledBySerialCode) {
  auto f = function("f", [](Real x, Real y) { return exp(-x) * y; });
  auto body = [&](X x, X y) {
    Var<double> scale = f(x(0), x(1));
    IF (scale > 100.0) {
      RETURN;
    }
    parallel(x, [&](Index i) { y(i) = f(x(i), scale); });
    y(0) = f(y(1), 2.0);
  };
  auto bits = [&](X x, X y) {
    Var<double> scale = f(x(0), x(1));
    parallel(x, [&](Index i) { y(i) = f(x(i), scale); });
  };
  expectCalls(2, 1, bits, active(spread(4)), active(Values(4)));
  // What it would read is written: nothing but values are passed here.
  EXPECT_EQ(count(textOf(body), "call @"), 3);
}

/// Specialised by numbers of the host, one function becomes several.
TEST_F(CalledFunction, IsCalledInRangesOfSerialLoops) {
  auto f = function("f", [](Real x, Real y) { return sin(x) * y + x * x; });
  auto body = [&](X x, X y) {
    FOR (t, 0, 3) {
      parallel(x, [&](Index i) { y(i) += f(x(i), cast<double>(t) + 0.5); });
    }
    IF (x(0) > -1.0) {
      parallel(x, [&](Index i) { y(0) += f(x(i), x(0)); });
    }
  };
  expectCalls(2, 1, body, active(spread(5)), active(Values(5)));
}

TEST_F(CalledFunction, DiffersByHostNumbers) {
  int degree = 1;
  auto power = function("power", [&](Real x) {
    Real y = x;
    for (int k = 1; k < degree; ++k)
      y = y * x;
    return y + sin(x);
  });
  auto body = [&](X x, X y) {
    parallel(x, [&](Index i) {
      Var<double> sum = 0;
      for (degree = 2; degree < 5; ++degree)
        sum += power(x(i)) + power(x(i) + 1.0);
      y(i) = sum;
    });
  };
  expectCalls(6, 3, body, active(spread(4)), active(Values(4)));
}

/// A condition guards what a function reads.
TEST_F(CalledFunction, IsGuardedLikeALoad) {
  auto at = function("at", [](X x, Index i) { return x(i + 3) * 2.0; });
  Kernel k = kernel(
      "guarded",
      [&](X x, X y) {
        parallel(x, [&](Index i) {
          IF ((i + 3 < x.size(0)) & (at(x, i) > 1.0)) {
            y(i) = at(x, i);
          }
        });
      },
      KernelOptions{.debug = true});
  auto x = constant<double>({1, 2, 3, 4, 5}), y = constant(Values(5));
  k(x, y);
  EXPECT_EQ(y.to_host(), (Values{8, 10, 0, 0, 0}));
}

//===-- What stays part of the kernel -------------------------------------===//

TEST_F(CalledFunction, HasNoEffects) {
  auto store = function("store", [](X y, Index i, Real v) { y(i) = v * v; });
  auto add = function("add", [](X y, Real v) { y(0) += v * v; });
  auto leave = function("leave", [](Real v) {
    IF (v > 100.0) {
      RETURN;
    }
  });
  auto body = [&](X x, X y) {
    parallel(x, [&](Index i) {
      leave(x(i));
      store(y, i + 1, x(i));
      add(y, x(i));
    });
  };
  // Sums in any order are the same.
  expectCalls(0, 0, body, active(Values{0.5, -1.25, 2, 3}), active(Values(5)));
}

TEST_F(CalledFunction, ReadsNothingThatIsWritten) {
  auto term = [](X a, Index i) {
    Index j = i * 1;
    return a(j) * a(0) + 1.0;
  };
  auto sum = function("sum", term), late = function("late", term);
  auto body = [&](X x, X y) {
    parallel(x, [&](Index i) { y(i + 1) = sum(x, i) + y(i + 1) * x(i); });
    parallel(1, [&](Index) { y(0) = late(y, 2) + sum(x, 1); });
  };
  EXPECT_EQ(count(textOf(body), "call @sum"), 2) << textOf(body);
  EXPECT_EQ(count(textOf(body), "call @"), 2);
  Kernel k = calling("k", body);
  auto x = constant<double>({1, 2, 3}), y = constant(Values(4));
  k(x, y);
  EXPECT_EQ(y.to_host(), (Values{4, 2, 3, 4}));
}

TEST_F(CalledFunction, ReportsErrorsWithTheirPlace) {
  auto stepped = function("stepped", [](Real x, Index step) {
    Var<double> v = x;
    FOR (k, 0, 4, step) {
      v += x;
    }
    return v;
  });
  Kernel steps = calling("steps", [&](X x, ArrayRef<int64_t, 1> by) {
    parallel(x, [&](Index i) { x(i) = stepped(x(i), by(i)); });
  });
  auto x = constant<double>({1, 2});
  auto by = constant<int64_t>({2, 0});
  expectError(ErrorCode::KernelFailed, {"CalledFunctionTest.cpp:"}, [&] {
    steps(x, by);
    x.to_host();
  });
  int line = __LINE__ + 2;
  auto root = function("root", [](Real x) {
    Real y = log(x);
    return sqrt(y);
  });
  Kernel roots = calling(
      "roots", [&](X x) { parallel(x, [&](Index i) { x(i) = root(x(i)); }); },
      KernelOptions{.find_nan = true});
  auto z = constant<double>({-1});
  expectError(ErrorCode::NotFinite, {here(__FILE__, line), "log"}, [&] {
    roots(z);
    z.to_host();
  });
}

//===-- Second derivatives ------------------------------------------------===//

TEST_F(CalledFunction, HasSecondDerivatives) {
  auto f = function("f", [](Real x, Real y) {
    Var<double> v = x;
    FOR (k, 0, 3) {
      v = sin(v) * y + x;
    }
    return v;
  });
  Kernel k = calling("second", [&](X x, X y) {
    parallel(x, [&](Index i) { y(i) = f(x(i), 0.5) * f(x(i), x(0)); });
  });
  auto x = active(spread(3)), y = active(Values(3));
  Values start = x.to_host(), direction = {0.3, -0.7, 1.1};
  auto gradientAt = [&](double shift) {
    Values moved = start;
    for (size_t i = 0; i < moved.size(); ++i)
      moved[i] += shift * direction[i];
    x.from_host(moved);
    k(x, y);
    x.grad().fill(0);
    y.grad().fill(1);
    k.grad(x, y);
    return x.grad().to_host();
  };
  const double h = 1e-4;
  Values above = gradientAt(h), below = gradientAt(-h);
  x.from_host(start);
  x.dual().from_host(direction);
  k.jvp(x, y);
  x.grad().fill(0);
  x.grad().dual().fill(0);
  y.grad().fill(1);
  y.grad().dual().fill(0);
  k.gradient().jvp(x, y);
  Values second = x.grad().dual().to_host();
  for (size_t i = 0; i < start.size(); ++i)
    EXPECT_NEAR(second[i], (above[i] - below[i]) / (2 * h), 1e-6);
}

//===-- NVIDIA GPUs -------------------------------------------------------===//

TEST_F(CalledFunction, IsAFunctionOfPtx) {
  auto f = function("f", [](Real x, Real y) {
    Var<double> v = x * y;
    return std::pair(Real(v + sin(x)), v > 1.0);
  });
  auto traced = detail::trace(
      "k",
      [&](X x, X y) {
        parallel(x, [&](Index i) {
          auto [v, isLarge] = f(x(i), 0.5);
          y(i) = select(isLarge, v, f(v, x(0)).first);
        });
      },
      Loc::current());
  auto program = compiler::Program::lower(traced->outlined(Calls::All),
                                          {.calls = Calls::All});
  ASSERT_TRUE(program) << program.error().text;
  for (auto mode : {compiler::Mode::Primal, compiler::Mode::Gradient}) {
    std::vector<bool> active;
    if (mode == compiler::Mode::Gradient)
      active = {true, true};
    compiler::Derivation derivation(mode, active);
    derivation.target = "sm_80";
    auto code = (*program)->compile(derivation);
    ASSERT_TRUE(code) << code.error().text;
    const std::string &ptx = code->device->image;
    EXPECT_NE(ptx.find(".func"), std::string::npos) << ptx;
    EXPECT_NE(ptx.find("call"), std::string::npos) << ptx;
  }
}

/// Where functions are parts of the kernel, nothing of `mark` is read.
TEST_F(CalledFunction, GradientsReadBackWhatOnlyTheCallingKernelReads) {
  auto f = function("f", [](Real x) { return sin(x); });
  Array<double> x = active(spread(3)), y = active(Values(3));
  Array<int> mark = cpu().array<int>({3});
  Kernel kernel = calling("reads", [&](X x, ArrayRef<int, 1> mark, X y) {
    parallel(x, [&](Index i) {
      mark(i) = 4;
      y(i) = f(x(i));
    });
    parallel(x,
             [&](Index i) { y(i) += select(mark(i) == mark(i), 2.0, x(0)); });
  });
  kernel(x, mark, y);
  y.grad().fill(1);
  kernel.grad(x, mark, y);
  for (int i = 0; i < 3; ++i)
    EXPECT_NEAR(x.grad().to_host()[i], std::cos(spread(3)[i]), 1e-14);
}

//===-- When it pays ------------------------------------------------------===//

TEST(Calls, ArePaidForBySize) {
  auto f = function("f", [](Real x, Real y) {
    Real v = x;
    for (int k = 0; k < 60; ++k)
      v = v * y + sin(v + 0.1 * k) / (1.0 + v * v);
    return v;
  });
  auto times = [&](int n) {
    return [&f, n](X x, X y) {
      parallel(x, [&](Index i) {
        Var<double> v = x(i);
        for (int k = 0; k < n; ++k)
          v = v + f(v, x(0));
        y(i) = v;
      });
    };
  };
  EXPECT_EQ(count(textOf(times(1), Calls::Large), "call @"), 0);
  EXPECT_EQ(count(textOf(times(2), Calls::Large), "call @"), 0); // vectorised
  EXPECT_EQ(count(textOf(times(20), Calls::Large), "call @"), 20);
  auto bytes = [&](compiler::Options options) {
    auto traced = detail::trace("k", times(20), Loc::current());
    auto program =
        compiler::Program::lower(traced->outlined(Calls::Large), options);
    return (*program)->compile(compiler::Mode::Primal, {})->objectBytes;
  };
  compiler::Options inlined;
  inlined.calls = Calls::None;
  EXPECT_LT(4 * bytes({}), bytes(inlined));
}

} // namespace
