/// Mistakes in a kernel: every text that the tracer can give.

#include "syntax/Tracer.h"
#include "syntax/Trace.h"

#include "costate/custom_derivative.h"
#include "costate/detail/recorded_at.h"
#include "costate/local.h"
#include "costate/math.h"
#include "costate/syntax.h"
#include "costate/trace.h"

#include <gtest/gtest.h>

#include <optional>

using namespace costate;

namespace {

template <class F> std::string mistakeOf(F body) {
  auto traced = detail::trace("k", body, Loc::current());
  if (!traced->failure)
    return "none";
  EXPECT_EQ(traced->failure->code, ErrorCode::BadKernel);
  const std::string &text = traced->failure->text;
  EXPECT_NE(text.find("TracerTest.cpp:"), std::string::npos) << text;
  size_t start = text.find("error: ") + 7;
  EXPECT_NE(text.find("\nnote: "), std::string::npos) << text;
  return text.substr(start, text.find('\n') - start);
}

using X = ArrayRef<double, 1>;

TEST(Tracer, TheTextNamesPlaceSituationAndWayOut) {
  uint32_t line = std::source_location::current().line() + 1;
  auto traced = detail::trace("k", [](X) { BREAK; }, Loc::current());
  const std::string &text = traced->failure->text;
  EXPECT_NE(text.find(":" + std::to_string(line) + ":"), std::string::npos);
  EXPECT_NE(text.find("error: `BREAK` outside a loop\nnote: it belongs into a "
                      "`FOR` or `WHILE`; `RETURN` ends a work item of "
                      "`parallel`"),
            std::string::npos)
      << text;
}

TEST(Tracer, TheFirstMistakeCounts) {
  EXPECT_EQ(mistakeOf([](X) {
              CONTINUE;
              BREAK;
            }),
            "`CONTINUE` outside a loop");
}

TEST(Tracer, PrivateArraysStayWhereTheyAreDeclared) {
  EXPECT_EQ(mistakeOf([](X x) {
              Local<double, 2> a;
              parallel(x.size(), [&](Index i) { x(i) = a[0]; });
            }),
            "a `Local` from outside of `parallel` is used inside");
  EXPECT_EQ(mistakeOf([](X x) {
              std::optional<Local<double, 2>> a;
              FOR (k, 0, 3) {
                a.emplace();
              }
              x(0) = (*a)[0];
            }),
            "a `Local` is used outside of the block that declared it");
  std::optional<Local<double, 2>> other;
  mistakeOf([&](X x) {
    other.emplace();
    BREAK;
  });
  EXPECT_EQ(mistakeOf([&](X x) { x(0) = (*other)[0]; }),
            "a `Local` of another kernel is used");
}

TEST(Tracer, ConditionsAndCustomDerivativesChangeNoPrivateArray) {
  EXPECT_EQ(mistakeOf([](X) {
              Local<double, 2> a;
              auto condition = [&] {
                a[0] = 1;
                return a[1] < 1;
              };
              while_(condition, [] {});
            }),
            "the condition of a `WHILE` stores into a `Local`");
  auto slope = [](Expr<double>, Expr<double>) { return Expr<double>(1.0); };
  auto twice = [](Expr<double> v) {
    Local<double, 2> a;
    return v + v;
  };
  EXPECT_EQ(
      mistakeOf([&](X x) { x(0) = custom_derivative(twice, slope)(x(0)); }),
      "a `custom_derivative` declares a `Local`");
  EXPECT_EQ(mistakeOf([&](X x) {
              Local<double, 2> a;
              auto first = [&](Expr<double>) { return Expr<double>(a[0]); };
              x(0) = custom_derivative(first, slope)(x(0));
            }),
            "a `Local` from outside is used in a `custom_derivative`");
}

TEST(Tracer, JumpsNeedALoopOfTheSameWorkItem) {
  EXPECT_EQ(mistakeOf([](X x) {
              FOR (k, 0, 3) {
                parallel(x.size(), [&](Index) { BREAK; });
              }
            }),
            "`BREAK` outside a loop");
}

TEST(Tracer, AnElseFollowsAnIf) {
  const char *text = "`ELSE` or `ELIF` without an `IF`";
  EXPECT_EQ(mistakeOf([](X x) {
              ELSE { x(0) = 1; }
            }),
            text);
  EXPECT_EQ(mistakeOf([](X x) {
              ELIF (x(0) > 1) {
                x(0) = 1;
              }
            }),
            text);
  EXPECT_EQ(mistakeOf([](X x) {
              IF (x(0) > 1) {
                x(0) = 1;
              }
              x(1) = 2;
              ELSE { x(0) = 3; }
            }),
            text);
  EXPECT_EQ(mistakeOf([](X x) {
              IF (x(0) > 1) {
                x(0) = 1;
              }
              ELSE { x(0) = 2; }
              ELSE { x(0) = 3; }
            }),
            text);
}

// RULE: ranges
TEST(Tracer, RangesDoNotNest) {
  EXPECT_EQ(mistakeOf([](X x) {
              parallel(3, [&](Index) { parallel(3, [&](Index) {}); });
            }),
            "`parallel` inside `parallel`");
}

TEST(Tracer, ValuesStayInTheirBlock) {
  EXPECT_EQ(mistakeOf([](X x) {
              Expr<double> inner;
              IF (x(0) > 1) {
                inner = x(1) + 1;
              }
              x(0) = inner;
            }),
            "a value is used outside of the block that computed it");
  EXPECT_EQ(mistakeOf([](X x) {
              Expr<double> never;
              x(0) = never;
            }),
            "a value is used that was never set");
}

TEST(Tracer, VariablesStayInTheirBlock) {
  EXPECT_EQ(mistakeOf([](X x) {
              std::optional<Var<double>> inner;
              FOR (k, 0, 3) {
                inner.emplace(x(k));
              }
              x(0) = *inner;
            }),
            "a `Var` is used outside of the block that declared it");
}

TEST(Tracer, WorkItemsDoNotAssignSharedVariables) {
  EXPECT_EQ(mistakeOf([](X x) {
              Var<double> sum;
              parallel(x.size(), [&](Index i) { sum += x(i); });
            }),
            "a `Var` from outside of `parallel` is assigned inside");
}

TEST(Tracer, KernelsShareNothing) {
  std::optional<X> other;
  std::optional<Expr<double>> value;
  std::optional<Var<double>> variable;
  mistakeOf([&](X x) {
    other.emplace(x);
    value.emplace(x(0) + 1);
    variable.emplace(x(0));
  });
  EXPECT_EQ(mistakeOf([&](X x) { x(0) = (*other)(0); }),
            "an array of another kernel is used");
  EXPECT_EQ(mistakeOf([&](X x) { x(0) = *value; }),
            "a value of another kernel is used");
  EXPECT_EQ(mistakeOf([&](X x) { x(0) = *variable; }),
            "a `Var` of another kernel is used");
}

/// The mistake of a function with partial derivatives that does `effect`.
template <class F> std::string mistakeInCustom(F effect) {
  return mistakeOf([&](X x) {
    auto f = custom_derivative(
        [&](Expr<double> a) {
          effect(x, a);
          return a;
        },
        [](Expr<double>, Expr<double>) { return 1.0; });
    x(0) = f(x(0));
  });
}

TEST(Tracer, CustomDerivativesOnlyCompute) {
  using A = Expr<double>;
  EXPECT_EQ(mistakeInCustom([](X, A) {}), "none");
  EXPECT_EQ(mistakeInCustom([](X, A a) {
              Var<double> v = a;
              WHILE (v > 1) {
                v *= 0.5;
                IF (v < 2) {
                  BREAK;
                }
              }
            }),
            "none");
  EXPECT_EQ(mistakeInCustom([](X x, A) { A read = x(0); }),
            "a `custom_derivative` reads an array");
  EXPECT_EQ(mistakeInCustom([](X x, A) { x.size(); }),
            "a `custom_derivative` reads an array");
  EXPECT_EQ(mistakeInCustom([](X x, A a) { x(0) = a; }),
            "a `custom_derivative` stores into an array");
  EXPECT_EQ(mistakeInCustom([](X x, A a) { x(0) += a; }),
            "a `custom_derivative` adds to an array");
  EXPECT_EQ(mistakeInCustom([](X x, A a) { atomic_max(x(0), a); }),
            "a `custom_derivative` updates an array");
  EXPECT_EQ(mistakeInCustom([](X, A) { RETURN; }),
            "a `custom_derivative` has a `RETURN`");
  EXPECT_EQ(mistakeInCustom([](X, A) { BREAK; }), "`BREAK` outside a loop");
  EXPECT_EQ(mistakeInCustom([](X, A) { parallel(3, [](Index) {}); }),
            "a `custom_derivative` has a `parallel`");
}

TEST(Tracer, CustomDerivativesKnowTheirArgumentsOnly) {
  EXPECT_EQ(mistakeOf([&](X x) {
              Expr<double> outside = x(1);
              auto f = custom_derivative(
                  [&](Expr<double> a) { return a * outside; },
                  [](Expr<double>, Expr<double>) { return 1.0; });
              x(0) = f(x(0));
            }),
            "a value from outside is used in a `custom_derivative`");
  EXPECT_EQ(mistakeOf([&](X x, Scalar<double> outside) {
              auto f = custom_derivative(
                  [&](Expr<double> a) { return a; },
                  [&](Expr<double>, Expr<double>) { return 1.0 * outside; });
              x(0) = f(x(0));
            }),
            "a value from outside is used in a `custom_derivative`");
  EXPECT_EQ(mistakeOf([&](X x) {
              Var<double> outside = x(1);
              auto f = custom_derivative(
                  [&](Expr<double> a) { return a * outside; },
                  [](Expr<double>, Expr<double>) { return 1.0; });
              x(0) = f(x(0));
            }),
            "a `Var` from outside is used in a `custom_derivative`");
  EXPECT_EQ(mistakeOf([&](X x) {
              Var<double> outside;
              auto f = custom_derivative(
                  [&](Expr<double> a) {
                    outside = a;
                    return a;
                  },
                  [](Expr<double>, Expr<double>) { return 1.0; });
              x(0) = f(x(0));
            }),
            "a `Var` from outside is used in a `custom_derivative`");
  EXPECT_EQ(mistakeOf([&](X x) {
              std::optional<Expr<double>> inner;
              auto f = custom_derivative(
                  [&](Expr<double> a) {
                    inner = a * a;
                    return a;
                  },
                  [&](Expr<double>, Expr<double>) { return *inner; });
              x(0) = f(x(0));
            }),
            "a value is used outside of the block that computed it");
}

TEST(Tracer, PartialDerivativesAreStraightCode) {
  auto partialsThat = [](auto effect) {
    return mistakeOf([&](X x) {
      auto f = custom_derivative([](Expr<double> a) { return a; },
                                 [&](Expr<double> a, Expr<double>) {
                                   effect(a);
                                   return a;
                                 });
      x(0) = f(x(0));
    });
  };
  const char *text =
      "the partial derivatives of a `custom_derivative` have control flow";
  EXPECT_EQ(partialsThat([](auto a) {
              IF (a > 1) {
              }
            }),
            text);
  EXPECT_EQ(partialsThat([](auto) {
              FOR (k, 0, 3) {
              }
            }),
            text);
  EXPECT_EQ(partialsThat([](auto a) {
              WHILE (a > 1) {
              }
            }),
            text);
  // But for those of another function.
  EXPECT_EQ(partialsThat([](Expr<double> a) {
              auto g = custom_derivative(
                  [](Expr<double> b) {
                    FOR (k, 0, 3) {
                    }
                    return b;
                  },
                  [](Expr<double>, Expr<double>) { return 1.0; });
              g(a);
            }),
            "none");
}

TEST(Tracer, ConditionsOnlyCompute) {
  auto conditionThat = [](auto effect) {
    return mistakeOf([&](X x) {
      Var<int> n = 3;
      while_([&] { return effect(x, n), n > 0; }, [&] { n -= 1; });
    });
  };
  std::string start = "the condition of a `WHILE` ";
  EXPECT_EQ(conditionThat([](X x, auto &) { x(0) = 1; }),
            start + "stores into an array");
  EXPECT_EQ(conditionThat([](X x, auto &) { x(0) += 1; }),
            start + "adds to an array");
  EXPECT_EQ(conditionThat([](X, auto &n) { n = 1; }),
            start + "assigns a `Var`");
  EXPECT_EQ(conditionThat([](X, auto &) { RETURN; }), start + "has a `RETURN`");
  EXPECT_EQ(conditionThat([](X, auto &) { parallel(3, [](Index) {}); }),
            start + "has a `parallel`");
  EXPECT_EQ(conditionThat([](X x, auto &) { Var<double> local = x(0); }),
            "none");
}

TEST(Tracer, CheckpointsAreOfALoop) {
  auto keep = [](int64_t most) {
    detail::keepCheckpoints(most, Loc::current());
  };
  EXPECT_EQ(mistakeOf([&](X) { keep(3); }), "`checkpoints` of no loop");
  EXPECT_EQ(mistakeOf([&](X) {
              IF (Expr<bool>(true)) {
                keep(3);
              }
            }),
            "`checkpoints` of no loop");
  EXPECT_EQ(mistakeOf([&](X) {
              FOR (k, 0, 3) {
                keep(0);
              }
            }),
            "a loop cannot have 0 checkpoints");
  EXPECT_EQ(mistakeOf([&](X) {
              FOR (k, 0, 3) {
                keep(2);
              }
            }),
            "none");
}

// RULE: steps
TEST(Tracer, AStepIsNotZero) {
  EXPECT_EQ(mistakeOf([](X x) {
              FOR (k, 0, 3, 0) {
                x(k) = 1;
              }
            }),
            "the step of this `FOR` is 0");
}

TEST(Tracer, NumbersFit) {
  EXPECT_EQ(mistakeOf([](X) { Var<int> n = 3000000000; }),
            "a number does not fit in i32");
  EXPECT_EQ(mistakeOf([](X) { Var<unsigned> n = -1; }),
            "a number does not fit in u32");
}

TEST(Tracer, DimensionsExist) {
  EXPECT_EQ(mistakeOf([](X x) { x(x.size(1)) = 1; }),
            "an array of rank 1 has no dimension 1");
}

TEST(Tracer, AKernelHasAStatement) {
  EXPECT_EQ(mistakeOf([](X, Scalar<double>) {}), "kernel `k` is empty");
}

TEST(Tracer, OutsideOfAKernelThereIsNoTracing) {
  try {
    Var<double> v = 1.0;
    FAIL() << "no error";
  } catch (const Error &error) {
    EXPECT_EQ(error.code(), ErrorCode::BadKernel);
    EXPECT_STREQ(error.what(),
                 "a value of the kernel language is used outside of a kernel\n"
                 "note: use it in the function that is passed to `kernel`");
  }
}

TEST(Tracer, AnExceptionOfTheUserPassesThrough) {
  auto throwing = [](X x) {
    IF (x(0) > 1) {
      WHILE (throw 7, x(0) > 1) {
        x(0) = 1;
      }
    }
  };
  EXPECT_THROW(detail::trace("k", throwing, Loc::current()), int);
  EXPECT_THROW(Var<double>(1.0), Error); // this thread traces no longer
  EXPECT_EQ(mistakeOf([](X x) { x(0) = 1; }), "none");
}

TEST(Tracer, FunctionsOfTheLibraryStandWhereAnotherFrontEndSays) {
  auto traced = detail::trace(
      "k",
      [](X x) {
        detail::RecordedAt outer(Loc("user.py", 7, 1));
        Local<double, 2> a;
        {
          detail::RecordedAt inner(Loc("user.py", 9, 1));
          Var<double> v = 1.0;
        }
        x(0) = a[0];
        BREAK;
      },
      Loc::current());
  const syntax::Kernel &kernel = traced->kernel;
  EXPECT_EQ(kernel.variables.front().loc.line, 9u);
  EXPECT_EQ(kernel.locals.front().loc.line, 7u);
  EXPECT_STREQ(kernel.body.back().loc.file, "user.py");
  EXPECT_EQ(kernel.body.back().loc.line, 7u);
  EXPECT_EQ(traced->failure->text.find("user.py:7:"), 0u)
      << traced->failure->text;
}

TEST(Tracer, AKernelMayBeTracedInsideAnother) {
  EXPECT_EQ(mistakeOf([](X x) {
              EXPECT_EQ(mistakeOf([](X y) { y(0) = 1; }), "none");
              x(0) = 1;
            }),
            "none");
}

} // namespace
