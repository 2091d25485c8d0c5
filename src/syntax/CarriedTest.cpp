/// Which elements work items leave to others.

#include "costate/detail/carried.h"

#include "costate/costate.h"
#include "costate/syntax.h"
#include "costate/trace.h"

#include <gtest/gtest.h>

using namespace costate;

namespace {

using X = ArrayRef<double, 1>;
using XX = ArrayRef<double, 2>;
using N = ArrayRef<int, 1>;

/// The arguments, each with `s` for shared, `+` for added, `?` for not sure.
template <class F> std::string carried(F body) {
  auto traced = detail::trace("k", body, Loc::current());
  std::string text;
  for (const detail::CarriedElement &one : detail::carriedElements(*traced))
    text += std::to_string(one.argument) + (one.isShared ? "s" : "") +
            (one.isAdded ? "+" : "") + (one.isSure ? "" : "?") + " ";
  return text;
}

/// Of `parallel(x.size(), ...)`.
template <class F> std::string inRange(F body) {
  return carried([&](X x, X y, N n, Scalar<int> m) {
    parallel(x.size(), [&](Index i) { body(x, y, n, m, i); });
  });
}

TEST(Carried, ElementsOfNeighbours) {
  EXPECT_EQ(inRange([](X x, X, N, auto, Index i) { x(i + 1) = x(i); }), "0 ");
  EXPECT_EQ(inRange([](X x, X, N, auto, Index i) { x(i) = x(i - 1); }), "0 ");
  EXPECT_EQ(inRange([](X x, X, N, auto, Index i) { x(i + 1) += x(i); }), "0+ ");
  EXPECT_EQ(inRange([](X x, X, N, auto m, Index i) {
              x(cast<int64_t>(m) - 1 - i) = x(cast<int64_t>(m) - i);
            }),
            "0 ");
  EXPECT_EQ(inRange([](X x, X, N, auto, Index i) {
              IF (i > 0) {
                x(i) = x(i - 1);
              }
            }),
            "0 ");
}

TEST(Carried, ElementsOfOnesOwnAreNot) {
  for (const std::string &found : {
           inRange([](X x, X y, N, auto, Index i) { y(i) = x(i + 1); }),
           inRange([](X x, X, N, auto, Index i) { x(i) = 2.0 * x(i); }),
           inRange([](X x, X, N, auto, Index i) { x(2 * i) = x(2 * i + 1); }),
           inRange([](X x, X, N n, auto, Index i) { x(n(i)) = x(i); }),
           inRange([](X x, X, N n, auto, Index i) { x(i + n(i)) = x(i); }),
           inRange([](X x, X y, N, auto, Index i) { y(0) += x(i); }),
           inRange([](X x, X, N, auto m, Index i) { x(i + m) = x(i + m); }),
       })
    EXPECT_EQ(found, "");
}

TEST(Carried, BranchesOfWhichNobodyKnowsMayKeepThemApart) {
  EXPECT_EQ(inRange([](X x, X, N, auto, Index i) {
              IF (i % 2 == 0) {
                x(i) = x(i + 1);
              }
            }),
            "");
  EXPECT_EQ(inRange([](X x, X, N n, auto, Index i) {
              IF (n(i) > 0) {
                RETURN;
              }
              x(i) = x(i + 1);
            }),
            "");
  EXPECT_EQ(inRange([](X x, X, N, auto, Index i) {
              IF (i == 0) {
                x(i + 1) = x(i);
              }
            }),
            "");
}

TEST(Carried, WorkItemsThatBranchesKeepApart) {
  auto of100 = [](auto body) {
    return carried([&](X x) { parallel(100, [&](Index i) { body(x, i); }); });
  };
  EXPECT_EQ(of100([](X x, Index i) {
              IF (i < 50) {
                x(i) = x(i + 50);
              }
            }),
            "");
  EXPECT_EQ(of100([](X x, Index i) {
              IF (i < 50) {
                x(i) = x(i + 49);
              }
            }),
            "0 ");
  EXPECT_EQ(of100([](X x, Index i) {
              IF (i >= 50) {
                x(i) = x(i - 50);
              }
            }),
            "");
  EXPECT_EQ(of100([](X x, Index i) {
              IF (49 < i) {
                RETURN;
              }
              x(i) = x(i + 50);
            }),
            "");
  EXPECT_EQ(of100([](X x, Index i) {
              IF (i == 0) {
                RETURN;
              }
              x(i) = x(i - 1);
            }),
            "0 ");
  EXPECT_EQ(of100([](X x, Index i) { x(i) = x(i + 100); }), "");
}

TEST(Carried, OneElementForAll) {
  EXPECT_EQ(inRange([](X x, X y, N, auto, Index i) { y(0) = y(0) + x(i); }),
            "1s ");
  EXPECT_EQ(inRange([](X x, X y, N, auto, Index i) {
              y(0) += x(i);
              x(i) = y(0);
            }),
            "1s+ ");
  EXPECT_EQ(inRange([](X x, X y, N, auto, Index i) {
              IF (x(i) > 0.0) {
                y(0) = y(0) + 1.0;
              }
            }),
            "1s? ");
  EXPECT_EQ(inRange([](X x, X y, N, auto, Index i) {
              IF (y(0) < x(i)) {
                y(0) = 1.0;
              }
            }),
            "");
  EXPECT_EQ(inRange([](X x, X y, N, auto, Index i) {
              IF (i == 0) {
                y(0) = y(0) + x(i);
              }
            }),
            "");
}

TEST(Carried, LoopsInside) {
  EXPECT_EQ(carried([](XX h, XX w) {
              parallel(h.size(0), [&](Index t) {
                FOR (i, 0, h.size(1)) {
                  Var<double> sum = 0.0;
                  FOR (j, 0, h.size(1)) {
                    sum += w(i, j) * h(t, j);
                  }
                  h(t + 1, i) = sum;
                }
              });
            }),
            "0 ");
  EXPECT_EQ(carried([](X x, XX a) {
              parallel(x.size(), [&](Index i) {
                Var<double> sum = 0.0;
                FOR (j, 0, i) {
                  sum += a(i, j) * x(j);
                }
                x(i) = sum;
              });
            }),
            "0 ");
  EXPECT_EQ(carried([](X x, N begin) {
              parallel(x.size() - 1, [&](Index i) {
                Var<double> sum = 0.0;
                FOR (j, begin(i), begin(i + 1)) {
                  sum += x(j);
                }
                x(i) = sum;
              });
            }),
            "");
  EXPECT_EQ(carried([](XX x) {
              parallel(x.size(0), [&](Index i) {
                FOR (t, 0, 9) {
                  x(i, t + 1) = x(i, t);
                }
              });
            }),
            "");
}

TEST(Carried, OtherIndicesOfTheRange) {
  auto all = [](XX a, X x, X y) {
    parallel({a.size(0), a.size(1)},
             [&](Index i, Index j) { y(i) = y(i) + a(i, j) * x(j); });
  };
  EXPECT_EQ(carried(all), "2 ");
  auto one = [](XX a, X x, X y) {
    parallel({a.size(0), Index(1)},
             [&](Index i, Index j) { y(i) = y(i) + a(i, j) * x(j); });
  };
  EXPECT_EQ(carried(one), "");
}

TEST(Carried, TheLinesAreThoseOfTheProgram) {
  uint32_t line = std::source_location::current().line();
  auto traced = detail::trace(
      "k",
      [](X x) {
        parallel(x.size(), [&](Index i) {
          Var<double> v = x(i);
          x(i + 1) = v;
        });
      },
      Loc::current());
  auto found = detail::carriedElements(*traced);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].range.line, line + 4);
  EXPECT_EQ(found[0].read.line, line + 5);
  EXPECT_EQ(found[0].change.line, line + 6);
}

} // namespace
