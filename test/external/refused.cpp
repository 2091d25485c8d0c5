// What must not compile: C++ conditions over traced values, and operations that
// a type does not have.
#include <costate/costate.h>
#include <costate/syntax.h>

using namespace costate;

void trace() {
  kernel("refused",
         [](ArrayRef<double, 1> x, ArrayRef<int, 1> n, Scalar<bool> flag) {
           Var<double> v = x(0);
           Expr<double> e = v * 2;
           IF ((v > 0) & flag) {
             v = e;
           }
           // refused: if (v > 0) { v = 1; }
           // refused: if (flag) { v = 1; }
           // refused: while (v > 0) { v = 1; }
           // refused: for (; v > 0;) { v = 1; }
           // refused: v = v > 0 ? 1.0 : 2.0;
           // refused: IF ((v > 0) && flag) { v = 1; }
           // refused: IF ((v > 0) || flag) { v = 1; }
           // refused: IF (!flag) { v = 1; }
           // refused: IF (v) { v = 1; }
           // refused: e += 1.0;
           // refused: v = x(0, 1);
           // refused: v = x[0.5];
           // refused: n(0) = v;
           // refused: n(0) = n(0) + 0.5;
           // refused: v = n(0) % v;
           // refused: v = v & v;
           // refused: flag = true;
           // refused: Var<int> i = v;
           // refused: parallel(v, [](Index) {});
           // refused: FOR (k, 0, 3) { break; }
           // refused: v = sin(n(0));
           // refused: v = minimum(3, [&](Index i) { return vec(x(i), x(i)); });
           // refused: x(0) |= 1.0;
           Vec<double, 2> a(v, v);
           const Vec<double, 2> b = a;
           VecExpr<double, 2> sum = a + b;
           Mat<double, 2, 2> m = outer(a, b);
           sum = a;
           // refused: sum[0] = 1.0;
           // refused: sum.x() = v;
           // refused: sum[n(0)] = 1.0;
           // refused: b[n(0)] = 1.0;
           // refused: b.x() = 1.0;
           // refused: row(m, 0) = a;
           // refused: row(m, 0)[1] = 1.0;
           // refused: transpose(m)(n(0), 1) = 1.0;
           // refused: e + e = v;
           // refused: sin(e) = e;
           // refused: swizzle<1, 0>(a) = sum;
         });
}
