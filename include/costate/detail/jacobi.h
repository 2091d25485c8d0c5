#pragma once
/// Jacobi iterations with a fixed number of sweeps, for matrices of 3 rows.
/// They are constants to every derivative.

#include "costate/control.h"
#include "costate/detail/attach.h"

namespace costate::detail {

/// Enough for all numbers of T: convergence is quadratic after the third.
template <class T>
inline constexpr int jacobiSweeps = std::is_same_v<T, float> ? 6 : 8;

/// A 3x3 matrix of variables.
template <class T> class Working {
public:
  Working(const Table<T, 3, 3> &start, const std::source_location &place)
      : place(place), m(tensorOf<Shape<3, 3>>(start), place) {}
  Located<T> operator()(size_t i, size_t j) const {
    return {m(i, j, place).value(place), place};
  }
  void set(size_t i, size_t j, const Located<T> &value) {
    m(i, j, place) = Source<T>(Expr<T>(value), place);
  }
  Table<T, 3, 3> all() const { return tableOf<T>(m, place); }
  /// Rotates columns p and q: p becomes c p - s q, and q becomes s p + c q.
  void rotateColumns(size_t p, size_t q, const Located<T> &c,
                     const Located<T> &s) {
    for (size_t k = 0; k < 3; ++k) {
      Located<T> a = (*this)(k, p), b = (*this)(k, q);
      set(k, p, c * a - s * b);
      set(k, q, s * a + c * b);
    }
  }

private:
  std::source_location place;
  Mat<T, 3, 3> m;
};

template <class T> Located<T> constantOf(const Located<T> &x) {
  return {stop_gradient(Expr<T>(x), x.where()).value(x.where()), x.where()};
}
template <class T> Table<T, 3, 3> constantOf(const Table<T, 3, 3> &m) {
  return changed(
      m, [](const Located<T> &x, size_t, size_t) { return constantOf(x); });
}
template <class T> Table<T, 3, 3> unitLike(const Table<T, 3, 3> &m) {
  return changed(m, [](const Located<T> &x, size_t i, size_t j) {
    return x.same(i == j);
  });
}

/// Cosine and sine of the rotation that makes the symmetric matrix [a b; b c]
/// diagonal, with the smaller angle.
template <class T>
std::pair<Located<T>, Located<T>>
rotationFor(const Located<T> &a, const Located<T> &b, const Located<T> &c) {
  Located<T> one = a.same(1), zero = a.same(0);
  Handle done = b == zero;
  Located<T> z = (c - a) / (choose(done, one, b) + choose(done, one, b));
  Located<T> t = one / (abs(z) + sqrt(one + z * z));
  t = choose(done, zero, choose(zero > z, -t, t));
  Located<T> cosine = one / sqrt(one + t * t);
  return {cosine, t * cosine};
}

/// Exchanges columns i and j where that is due; one of them changes its sign,
/// so that a rotation stays one.
template <class T>
void exchangeColumns(Handle due, Table<T, 3, 3> &m, size_t i, size_t j) {
  for (size_t k = 0; k < 3; ++k) {
    Located<T> a = m[k][i], b = m[k][j];
    m[k][i] = choose(due, b, a);
    m[k][j] = choose(due, -a, b);
  }
}

/// In derivatives three values, ascending, keep distances from each other, of
/// which the vectors divide by. `scale`: the largest one in size.
template <class T>
void keepApart(std::array<Located<T>, 3> &values, const Located<T> &least,
               const Located<T> &scale) {
  Located<T> zero = scale.same(0), one = scale.same(1);
  Located<T> size = choose(scale == zero, one, scale);
  auto above = [](const Located<T> &x, const Located<T> &floor) {
    return choose(floor > x, floor, x);
  };
  std::array<Located<T>, 3> found = values;
  values[1] = nearby(found[1], [&](const Located<T> &gap) {
    return above(found[1], least + gap * size);
  });
  values[2] = nearby(found[2], [&](const Located<T> &gap) {
    Located<T> step = gap * size;
    return above(found[2], above(found[1], least + step) + step);
  });
}

template <class F>
void sweep(int sweeps, const std::source_location &place, const F &rotate) {
  for_(IndexOperand(0, place), IndexOperand(sweeps, place), [&](Index) {
    for (auto [p, q] : {std::pair<size_t, size_t>{0, 1}, {0, 2}, {1, 2}})
      rotate(p, q);
  });
}

/// Eigenvalues, ascending, in the first row, and below them the eigenvectors as
/// columns.
template <class T>
Table<T, 4, 3> jacobiEig(const Table<T, 3, 3> &given,
                         const std::source_location &place) {
  Working<T> a(constantOf(given), place), v(unitLike(given), place);
  sweep(jacobiSweeps<T>, place, [&](size_t p, size_t q) {
    auto [c, s] = rotationFor(a(p, p), a(p, q), a(q, q));
    a.rotateColumns(p, q, c, s);
    for (size_t k = 0; k < 3; ++k) { // the rows
      Located<T> x = a(p, k), y = a(q, k);
      a.set(p, k, c * x - s * y);
      a.set(q, k, s * x + c * y);
    }
    v.rotateColumns(p, q, c, s);
  });
  Table<T, 3, 3> q = v.all();
  std::array<Located<T>, 3> values{a(0, 0), a(1, 1), a(2, 2)};
  for (auto [i, j] : {std::pair<size_t, size_t>{0, 1}, {1, 2}, {0, 1}}) {
    Handle due = values[i] > values[j];
    exchangeColumns(due, q, i, j);
    exchange(due, values[i], values[j]);
  }
  keepApart(values, values[0], abs(values[0]) + abs(values[2]));
  return {{values, q[0], q[1], q[2]}};
}

/// `v` without its part along the unit vectors `others`, of length 1; along
/// another direction where that part is most of it. Columns of Jacobi's
/// iteration are perpendicular, but for what rounding leaves of zeros.
template <class T>
std::array<Located<T>, 3>
orthonormal(std::array<Located<T>, 3> v,
            const std::vector<std::array<Located<T>, 3>> &others) {
  auto product = [](const auto &a, const auto &b) {
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
  };
  Located<T> zero = v[0].same(0), one = v[0].same(1);
  Located<T> whole = product(v, v) * v[0].same(0.25);
  for (const auto &other : others) {
    Located<T> part = product(v, other);
    for (size_t k = 0; k < 3; ++k)
      v[k] = v[k] - part * other[k];
  }
  Located<T> square = product(v, v);
  Handle none = choose(whole > square, zero, square) == zero;
  // Any direction that is not that of the only other vector.
  std::array<Located<T>, 3> spare{one, zero, zero};
  if (!others.empty()) {
    const auto &o = others[0];
    Handle upright = abs(o[0]) > v[0].same(0.6);
    Located<T> x = choose(upright, o[1], zero),
               y = choose(upright, -o[0], o[2]),
               z = choose(upright, zero, -o[1]);
    Located<T> length = sqrt(x * x + y * y + z * z);
    spare = {x / length, y / length, z / length};
  }
  Located<T> length = sqrt(choose(none, one, square));
  for (size_t k = 0; k < 3; ++k)
    v[k] = choose(none, spare[k], v[k] / length);
  return v;
}

/// The power of 2 at or below the largest number of `m`, 1 if that is 0: a
/// constant. What it divides keeps all digits, and its powers are numbers of T.
template <class T> Located<T> sizeOf(const Table<T, 3, 3> &m) {
  using Bits = std::conditional_t<std::is_same_v<T, float>, uint32_t, uint64_t>;
  constexpr int mantissa = std::numeric_limits<T>::digits - 1;
  constexpr Bits exponent = (~Bits(0) >> 1) >> mantissa << mantissa;
  Located<T> largest = m[0][0].same(0);
  for (const auto &row : constantOf(m))
    for (const Located<T> &x : row)
      largest = choose(abs(x) > largest, abs(x), largest);
  auto place = largest.where();
  Handle bits = pure(Op::BitCast, dtypeOf<Bits>, {largest.value()}, place);
  bits = pure(Op::And, dtypeOf<Bits>,
              {bits, constant(dtypeOf<Bits>, exponent, place)}, place);
  Located<T> power(pure(Op::BitCast, dtypeOf<T>, {bits}, place), place);
  return choose(power == power.same(0), power.same(1), power);
}
template <class T>
Table<T, 3, 3> dividedBy(const Located<T> &size, const Table<T, 3, 3> &m) {
  return changed(m,
                 [&](const Located<T> &x, size_t, size_t) { return x / size; });
}

/// u, the singular values and v, one below the other: columns of given * v are
/// made orthogonal.
template <class T>
Table<T, 7, 3> jacobiSvd(const Table<T, 3, 3> &given,
                         const std::source_location &place) {
  Working<T> b(constantOf(given), place), w(unitLike(given), place);
  auto product = [&](size_t p, size_t q) {
    return b(0, p) * b(0, q) + b(1, p) * b(1, q) + b(2, p) * b(2, q);
  };
  sweep(jacobiSweeps<T>, place, [&](size_t p, size_t q) {
    auto [c, s] = rotationFor(product(p, p), product(p, q), product(q, q));
    b.rotateColumns(p, q, c, s);
    w.rotateColumns(p, q, c, s);
  });
  std::array<Located<T>, 3> squares{product(0, 0), product(1, 1),
                                    product(2, 2)};
  Table<T, 3, 3> columns = b.all(), v = w.all();
  for (auto [i, j] : {std::pair<size_t, size_t>{0, 1}, {1, 2}, {0, 1}}) {
    Handle due = squares[j] > squares[i];
    exchangeColumns(due, columns, i, j);
    exchangeColumns(due, v, i, j);
    exchange(due, squares[i], squares[j]);
  }
  Table<T, 3, 3> c = transposed(columns);
  auto first = orthonormal<T>(c[0], {});
  auto second = orthonormal<T>(c[1], {first});
  std::array<Located<T>, 3> third;
  for (size_t k = 0; k < 3; ++k) {
    size_t i = (k + 1) % 3, j = (k + 2) % 3;
    third[k] = first[i] * second[j] - first[j] * second[i];
  }
  Table<T, 3, 3> u = transposed(Table<T, 3, 3>{first, second, third});
  Table<T, 3, 3> sigma = times(transposed(u), columns);
  // The size of the last one is a distance, too: from its negative.
  std::array<Located<T>, 3> rising{sigma[2][2], sigma[1][1], sigma[0][0]};
  keepApart(rising, abs(rising[0]), rising[2]);
  return {u[0], u[1], u[2], {rising[2], rising[1], rising[0]},
          v[0], v[1], v[2]};
}

} // namespace costate::detail
