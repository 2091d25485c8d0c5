/// Which functions the tree calls, and with what.

#include "syntax/Print.h"
#include "syntax/Trace.h"

#include "costate/costate.h"
#include "costate/syntax.h"
#include "costate/trace.h"

#include <gtest/gtest.h>

using namespace costate;

namespace {

using X = ArrayRef<double, 1>;
using Real = Expr<double>;

/// The shape of the functions, and the calls: what is left of the text without
/// what functions compute.
template <class F> std::string calls(F body) {
  auto traced = detail::trace("k", body, Loc::current());
  if (traced->failure)
    return traced->failure->text;
  std::istringstream text(syntax::print(traced->outlined()));
  std::string kept;
  for (std::string line; std::getline(text, line);)
    for (const char *word : {"function ", "call ", "result ", "gives "})
      if (line.find(word) != std::string::npos)
        kept += line.substr(line.find_first_not_of(' ')) + "\n";
  return kept;
}

/// More statements than a function that is not called has.
Real large(Real x) {
  Real y = x;
  for (int k = 0; k < 40; ++k)
    y = y * x + 1.0;
  return y;
}

TEST(Outline, CallsAShareTheirFunction) {
  auto f = function("f", [](Real x, Real y) { return large(x) + y; });
  EXPECT_EQ(calls([&](X x, X y) {
              parallel(x, [&](Index i) {
                Var<double> v = x(i);
                y(i) = f(v, x(i)) + f(2.0, v) + f(x(i), 0.5);
              });
            }),
            "function f(%0: f64, %1: f64)\n"
            "gives %122\n"
            "%125 = call f(%3, %4)\n"
            "%248 = call f(%126, %127)\n"
            "%372 = call f(%250, %251)\n");
}

TEST(Outline, SmallFunctionsAreNotCalled) {
  auto f = function("f", [](Real x) { return x * x; });
  EXPECT_EQ(calls([&](X x) { x(0) = f(x(1)) + f(x(2)); }), "");
}

} // namespace
