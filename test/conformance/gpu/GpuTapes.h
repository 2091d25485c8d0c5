#pragma once
/// Loops whose gradients save values, with what tests of tapes ask of them.

#include "conformance/TestDevice.h"
#include "costate/costate.h"
#include "costate/syntax.h"

#include <gtest/gtest.h>

#include <cmath>

namespace costate::test {

/// Whether `simt` has warps of 64 lanes, with rows that take twice as much.
inline bool hasWideWarps() {
  const char *chosen = std::getenv("COSTATE_SIMT");
  if (chosen && std::string(chosen).find("lanes=64") != std::string::npos)
    return true;
  std::string device = openDevice().name();
  return device.starts_with("amd-") && device.find("gfx1") == device.npos;
}

/// Goes round in a circle: after any trip count the derivative is not far
/// from 1, so that no record is without effect.
inline Var<double> rotated(const Var<double> &v) {
  return v + 0.62 + 0.1 * sin(3.0 * v);
}

/// Has the same bits everywhere, and a derivative above 0.
inline Var<float> damped(const Var<float> &s) { return s * (1.0f - 1e-5f * s); }

struct Loops {
  const char *name;
  Kernel kernel;
};

template <class Body> Kernel loopKernel(const char *name, Body body) {
  return kernel(name, [=](ArrayRef<double, 1> x, ArrayRef<int, 1> n,
                          ArrayRef<double, 1> y) {
    parallel(x.size(), [&](Index i) {
      Var<double> v = x(i);
      body(v, n, i);
      y(i) = v;
    });
  });
}

/// Private arrays are a part of what a loop carries.
template <class Add> void addLoopsWithLocals(Add add) {
  using Ints = ArrayRef<int, 1>;
  add("ring", [](Var<double> &v, Ints n, Index i) {
    Local<double, 3> last;
    last[1] = 0.1;
    FOR (k, 0, n(i)) {
      v = rotated(v) + 1e-3 * sin(last[k % 3]);
      last[(k + 1) % 3] = v;
    }
    v = v + 0.1 * last[cast<int64_t>(n(i)) % 3];
  });
  add("filled_before", [](Var<double> &v, Ints n, Index i) {
    Local<double, 5> table;
    FOR (j, 0, 5) {
      table[j] = 0.1 + 0.2 * sin(v + cast<double>(j));
    }
    FOR (k, 0, n(i)) {
      v = v + 0.62 + 0.1 * sin(3.0 * v + table[k % 5]);
    }
    FOR (j, 0, 5) {
      table[j] = 0.01 * sin(v * table[j]);
    }
    FOR (k, 0, n(i) / 3) {
      v = rotated(v) + 0.1 * table[(k * k) % 5];
    }
  });
  add("array_of_an_iteration", [](Var<double> &v, Ints n, Index i) {
    FOR (k, 0, n(i)) {
      Local<double, 4> parts;
      parts[k % 4] = 0.1 * sin(2.0 * v);
      parts[(k + 1) % 4] = sin(v);
      v = rotated(v) + 1e-3 * parts[k % 2] * parts[1 + k % 3];
    }
  });
  add("array_decides_iterations", [](Var<double> &v, Ints n, Index i) {
    Local<int64_t, 2> seen;
    FOR (k, 0, n(i) / 4) {
      FOR (j, 0, seen[k % 2] % 4) {
        v = rotated(v);
        seen[(k + j) % 2] += 1;
      }
      seen[k % 2] += 3;
      v = v + 0.3 + 0.1 * sin(v);
    }
  });
  add("array_in_a_nest", [](Var<double> &v, Ints n, Index i) {
    Local<double, 2> sides;
    FOR (k, 0, n(i) / 8) {
      sides[k % 2] = 0.1 * sin(v);
      FOR (j, 0, (k * 7 + cast<int64_t>(n(i))) % 5) {
        v = rotated(v) + 0.01 * sides[(k + j) % 2];
        sides[j % 2] = sides[1 - j % 2] + 0.001 * v;
      }
      v = v + 0.3 + 0.1 * sin(v);
    }
  });
  add("array_of_a_while", [](Var<double> &v, Ints n, Index i) {
    Local<double, 2> last;
    Var<int> k = 0;
    WHILE (k < n(i) & last[0] < 10000.0) {
      v = rotated(v) + 1e-3 * sin(last[k % 2]);
      last[(k + 1) % 2] = v;
      k += 1;
    }
    IF (v > 0.5) {
      v = v + 0.1 * sin(last[0]) * last[1] / (1.0 + last[1] * last[1]);
    }
  });
}

inline std::vector<Loops> loops() {
  using Ints = ArrayRef<int, 1>;
  std::vector<Loops> all;
  auto add = [&](const char *name, auto body) {
    all.push_back({name, loopKernel(name, body)});
  };
  add("one", [](Var<double> &v, Ints n, Index i) {
    FOR (k, 0, n(i)) {
      v = rotated(v);
    }
  });
  add("open", [](Var<double> &v, Ints n, Index i) {
    Var<int> k = 0;
    WHILE (k < n(i) & v < 10000.0) {
      v = rotated(v) + 0.01;
      k += 1;
      IF (v > 9000.0) {
        BREAK;
      }
    }
  });
  add("open_of_one_value", [](Var<double> &v, Ints n, Index i) {
    WHILE (v < cast<double>(n(i))) {
      v = v + 0.62 + 0.1 * sin(v);
    }
  });
  add("nest", [](Var<double> &v, Ints n, Index i) {
    FOR (k, 0, n(i) / 8) {
      FOR (j, 0, (k * 7 + cast<int64_t>(n(i))) % 5) {
        v = rotated(v);
      }
      v = v + 0.3 + 0.1 * sin(v);
    }
  });
  add("open_in_nest", [](Var<double> &v, Ints n, Index i) {
    FOR (k, 0, n(i) / 8) {
      Var<double> w = sin(v);
      WHILE (w < 1.5 + 0.3 * cos(2.0 * v)) {
        w = w + 0.1 + 0.05 * sin(w);
      }
      v = rotated(v) + 1e-4 * w;
    }
  });
  add("open_without_records", [](Var<double> &v, Ints n, Index i) {
    FOR (k, 0, n(i) / 8) {
      Var<int64_t> m = k + cast<int64_t>(i) + 2;
      Var<int> steps = 0;
      WHILE (m > 1) { // decides the iterations of the loop after it
        m = select(m % 2 == 0, m / 2, 3 * m + 1);
        steps += 1;
      }
      FOR (j, 0, steps % 5) {
        v = rotated(v);
      }
      v = v + 0.3 + 0.1 * sin(v);
    }
  });
  add("nest_in_open", [](Var<double> &v, Ints n, Index i) {
    Var<int> k = 0;
    WHILE (k *k < n(i)) {
      FOR (j, 0, k % 4) {
        v = rotated(v);
      }
      k += 1;
    }
  });
  add("in_a_row", [](Var<double> &v, Ints n, Index i) {
    FOR (k, 0, n(i) / 2) {
      v = rotated(v);
    }
    v = v + v * v / (1.0 + v * v);
    FOR (k, 0, n(i) / 3) {
      v = rotated(v) - 0.001;
    }
    Var<double> w = v;
    FOR (k, 0, 4) {
      w = w + 0.5 * sin(w);
    }
    v += w;
  });
  add("branches", [](Var<double> &v, Ints n, Index i) {
    IF (n(i) % 3 != 1) {
      FOR (k, 0, n(i)) {
        IF (v > 1.0) {
          v = v + 0.3 - 0.2 * sin(v);
        }
        ELSE { v = rotated(v) * 1.01; }
      }
    }
    ELSE {
      FOR (k, 0, n(i) / 2) {
        v = v + 0.2 + 0.1 * sin(v);
      }
    }
    IF (v > 0.5) {
      v = v + 0.5 * sin(v);
    }
  });
  add("three_deep", [](Var<double> &v, Ints n, Index i) {
    FOR (a, 0, n(i) % 7) {
      FOR (c, 0, a + 1) {
        FOR (e, 0, (a + c) % 3) {
          v = rotated(v);
        }
        IF (v > 0.7) {
          FOR (e, 0, 2 * c) {
            v = v - 0.1 * sin(v) * sin(v);
          }
        }
      }
      v = rotated(v);
    }
  });
  add("single_before_a_nest", [](Var<double> &v, Ints n, Index i) {
    Var<float> s = cast<float>(v);
    FOR (k, 0, n(i)) {
      s = damped(s);
    }
    v = cast<double>(s);
    FOR (k, 0, 3) {
      FOR (j, 0, n(i) % 19) {
        v = rotated(v);
      }
      v = v * sin(v) + 0.3;
    }
  });
  addLoopsWithLocals(add);
  return all;
}

/// A loop that even checkpoints make too long for the memory of a block.
inline Kernel uncut(const char *name) {
  return loopKernel(name, [](Var<double> &v, ArrayRef<int, 1> n, Index i) {
    FOR (c, 0, n(i)) {
      v = v * 0.999999;
      IF (v < 0.0) {
        v = v * v;
      }
    }
  });
}

struct Case {
  int64_t workItems;
  int longest; ///< iterations of a few; others are shorter
};

inline std::vector<int> tripCountsOf(Case c) {
  std::vector<int> iterations;
  for (int64_t i = 0; i < c.workItems; ++i)
    iterations.push_back(i % 37 == 5 ? c.longest : int(i * 7919 % 61));
  return iterations;
}

inline std::vector<double> gradient(const Device &device, const Kernel &kernel,
                                    Case c, int launches = 2) {
  auto size = static_cast<size_t>(c.workItems);
  Array<double> x = device.array<double>({c.workItems}, grad),
                y = device.array<double>({c.workItems}, grad);
  Array<int> n = device.array<int>({c.workItems});
  std::vector<double> start(size);
  for (size_t i = 0; i < size; ++i)
    start[i] = 0.2 + double(i * 31 % 101) / 60;
  x.from_host(start);
  n.from_host(tripCountsOf(c));
  for (int k = 0; k < launches; ++k) {
    x.grad().fill(0);
    y.grad().fill(1);
    kernel.grad(x, n, y);
  }
  return x.grad().to_host();
}

/// Nothing is added in an order of chance here, and functions are the host's.
inline void expectSame(const std::vector<double> &found,
                       const std::vector<double> &expected) {
  bool sameFunctions = !hasOwnFunctions(openDevice());
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    SCOPED_TRACE("entry " + std::to_string(i));
    ASSERT_TRUE(std::isnormal(expected[i])) << expected[i] << " proves nothing";
    if (sameFunctions)
      ASSERT_EQ(found[i], expected[i]);
    else
      ASSERT_NEAR(found[i], expected[i], 1e-7 * std::abs(expected[i]));
  }
}

} // namespace costate::test
