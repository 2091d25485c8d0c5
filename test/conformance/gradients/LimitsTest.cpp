/// Limits that derivatives of kernels often have in other systems, and that are
/// none here.

#include "conformance/ComplexStep.h"
#include "conformance/Gradients.h"

#include "syntax/Print.h"

#include <bit>

using namespace costate;
using namespace costate::test;

namespace {

using Values = std::vector<double>;
using X = ArrayRef<double, 1>;
using syntax::Op;

struct Operation {
  Op op;
  int floats; ///< that it takes; 0: it has no derivative
  bool isAboveOne;
};

enum Form {
  Numbers = 3,
  Floats = 3,
  Choice = 2,
  Cast = 1,
  Bits = 0,
  Integers = 0,
  Comparison = 0,
  BitCast = 0,
  Ordinal = 0,
  Philox = 0
};
enum Domain { Any, Small, Unit, AboveOne, Away, Power };

const Operation operations[] = {
#define COSTATE_OPERATION(Name, name, operands, form, ...)                     \
  {Op::Name, std::min(operands, int(form)), false},
#define COSTATE_FUNCTION(Name, name, mnemonic, operands, library, domain, ...) \
  {Op::Name, operands, domain == AboveOne},
#include "costate/detail/operations.def"
};

TEST(Limits, EveryOperationOnFloatsHasADerivative) {
  for (auto [op, floats, isAboveOne] : operations) {
    SCOPED_TRACE(syntax::nameOf(op));
    if (floats == 0 || op == Op::StopGradient || op == Op::ByOrder)
      continue;
    Kernel k = kernel("operation", [&, op = op, floats = floats,
                                    isAboveOne = isAboveOne](X x, X y) {
      auto place = std::source_location::current();
      Expr<double> a = x(0), b = x(1), c = x(2);
      if (isAboveOne)
        a = 1.0 + a;
      if (op == Op::Select)
        y(0) = select(a > b, a * a, b);
      else if (floats == 1)
        y(0) = detail::call<double>(op, place, a);
      else if (floats == 2)
        y(0) = detail::call<double>(op, place, a, b);
      else
        y(0) = detail::call<double>(op, place, a, b, c);
    });
    auto x = active<double>({0.63, 0.41, 0.27}), y = scalarResult();
    expectGradients({x}, {y}, k, x, y);
  }
}

/// Bounds that no closed form describes: divisions, remainders, roots, choices,
/// and what another array and an outer loop say.
TEST(Limits, ABoundMayBeAnyExpression) {
  Kernel k = kernel("bounds", [](ArrayRef<int, 1> n, X x, X y) {
    parallel(x.size(), [&](Index i) {
      Var<double> v = x(i);
      FOR (a, n(i) % 3, select(n(i) > 5, n(i) / 2, n(n(i) % 4))) {
        FOR (b, 0, cast<int64_t>(sqrt(cast<double>(n(i)) + 10.0 * v)) - a) {
          v = v / (1.0 + v);
        }
      }
      y(i) = v;
    });
  });
  std::vector<int> n{4, 7, 1, 12};
  Values start{0.9, 2.5, 1.5, 0.1}, want;
  for (int i = 0; i < 4; ++i) {
    double v = start[i], iterations = 0;
    for (int a = n[i] % 3; a < (n[i] > 5 ? n[i] / 2 : n[n[i] % 4]); ++a)
      for (int b = 0, most = int(std::sqrt(n[i] + 10 * v)) - a; b < most;
           ++b, ++iterations)
        v = v / (1 + v);
    EXPECT_GT(iterations, 0);
    want.push_back(1 / std::pow(1 + iterations * start[i], 2));
  }
  auto x = active(start), y = active(Values(4, 0.0));
  expectClosedForm({x}, {y}, {want}, k, constant(n), x, y);
}

/// Values of every type change in a loop and steer the reverse sweep, so all of
/// them are saved.
TEST(Limits, ValuesOfEveryTypeAreSaved) {
  Kernel k = kernel("types", [](ArrayRef<int, 1> n, X x, X y) {
    parallel(x.size(), [&](Index i) {
      Var<double> v = x(i);
      Var<float> narrow = cast<float>(n(i));
      Var<int> a = n(i);
      Var<int64_t> b = cast<int64_t>(n(i)) << 33;
      Var<uint32_t> c = cast<uint32_t>(n(i)) + 0x80000000u;
      Var<uint64_t> d = cast<uint64_t>(n(i)) << 62;
      Var<bool> odd = false;
      FOR (j, 0, 9) {
        v = v * sin(v) + 0.3 * cast<double>(a % 3) +
            0.01 * cast<double>(narrow) * v;
        a = a * 7 + 1 + cast<int>(j);
        b = b * 5 + (1 << 7);
        IF ((b >> 33) % 4 > 1) {
          v = v * 1.25;
        }
        c = c * 3u + 1u;
        IF (c > 0x80000000u) {
          v = v + 0.5;
        }
        d = d * 3u + 0x4000000000000001u;
        IF (d > 0x8000000000000000u) {
          v = v * 0.75;
        }
        odd = odd ^ (v > 1);
        IF (odd) {
          v = v - x(i);
        }
        narrow = narrow * 0.5f;
      }
      y(i) = v;
    });
  });
  auto x = active<double>({0.7, 1.3, 0.2, -0.9}), y = active(Values(4, 0.0));
  expectGradients({x}, {y}, k, constant<int>({1, 2, 5, 11}), x, y);
}

std::vector<uint64_t> bits(const Values &values) {
  std::vector<uint64_t> all;
  for (double value : values)
    all.push_back(std::bit_cast<uint64_t>(value));
  return all;
}

TEST(Limits, DebugDoesNotChangeADerivative) {
  auto body = [](ArrayRef<int, 1> at, X x, X y) {
    parallel(at.size(), [&](Index i) {
      Var<double> v = x(at(i));
      WHILE (abs(v * v - x(at(i))) > 1e-13) {
        v = 0.5 * (v + x(at(i)) / v);
      }
      IF (v > 1) {
        y(i) = v;
      }
      ELSE { y(i) += sin(v); }
    });
  };
  Kernel plain = kernel("plain", body),
         checked = kernel("checked", body, {.debug = true});
  auto at = constant<int>({3, 0, 2, 1});
  auto x = active<double>({0.5, 2, 10, 0.01}), y = active(Values(4, 0.0));
  std::vector<std::vector<uint64_t>> results;
  for (const Kernel &k : {plain, checked}) {
    y.fill(1);
    x.dual().from_host({1, 2, 3, 4});
    y.dual().fill(1);
    k.jvp(at, x, y);
    x.grad().fill(0);
    y.grad().fill(1);
    k.grad(at, x, y);
    results.push_back(bits(y.to_host()));
    results.push_back(bits(y.dual().to_host()));
    results.push_back(bits(x.grad().to_host()));
  }
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(results[i], results[i + 3]);
}

/// Statements and loops side by side, at the top and in a loop.
TEST(Limits, StatementsAndLoopsStandInAnyOrder) {
  Kernel k =
      kernel("mixed", [](X x, ArrayRef<double, 0> t, ArrayRef<double, 0> s) {
        t() = x(0);
        FOR (j, 0, x.size()) {
          t() += x(j) * x(j);
        }
        Var<double> scale = t();
        parallel(x.size(), [&](Index i) {
          Var<double> v = x(i);
          FOR (a, 0, 2) {
            v = v + 1.0;
            FOR (b, 0, 3) {
              v = v * 1.5;
            }
            v = v * v;
            FOR (b, 0, 2) {
              v = 0.1 * v;
            }
            IF (v > 1) {
              v = v - x(i);
            }
          }
          s() += scale * v;
        });
        s() += x(1) * scale;
      });
  auto model = [](const std::vector<Complex> &x) {
    Complex s = x[0];
    for (Complex v : x)
      s += v * v;
    Complex scale = s;
    s = 0;
    for (Complex start : x) {
      Complex v = start;
      for (int a = 0; a < 2; ++a) {
        v = (v + 1.0) * 1.5 * 1.5 * 1.5;
        v = v * v * 0.01;
        if (v.real() > 1)
          v -= start;
      }
      s += scale * v;
    }
    return s + x[1] * scale;
  };
  Values start{0.5, -1.5, 4};
  auto x = active(start);
  Array<double> t = cpu().array<double>({}, grad | dual);
  Array<double> s = cpu().array<double>({}, grad | dual);
  expectClosedForm({x}, {s}, {complexStep(model, start)}, k, x, t, s);
}

} // namespace
