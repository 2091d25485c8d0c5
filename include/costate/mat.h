#pragma once
/// Functions of matrices. Products are operators (tensor.h).

#include "costate/vec.h"

#include <bit>

namespace costate {

namespace detail {

template <class A>
concept MatrixLike = Tensor<A> && ShapeOf<A>::rank == 2;
template <class A>
concept SquareLike =
    MatrixLike<A> && ShapeOf<A>::extent[0] == ShapeOf<A>::extent[1];
template <class A>
concept FloatSquare = SquareLike<A> && FloatElement<ElementOf<A>>;

template <class A> inline constexpr int rowsOf = ShapeOf<A>::extent[0];
/// A vector is one column.
template <class A>
inline constexpr int columnsOf = ShapeOf<A>::count / ShapeOf<A>::extent[0];

template <class T, class A>
auto tableOf(const A &a, const std::source_location &place) {
  auto all = componentsAs<T, ShapeOf<A>>(a, place);
  Table<T, rowsOf<A>, columnsOf<A>> table;
  for (size_t k = 0; k < all.size(); ++k)
    table[k / columnsOf<A>][k % columnsOf<A>] = {all[k], place};
  return table;
}

template <class S, class T, size_t M, size_t N>
TensorExpr<T, S>
tensorOf(const std::array<std::array<Located<T>, N>, M> &table) {
  Handles<S> all;
  for (size_t k = 0; k < all.size(); ++k)
    all[k] = table[k / N][k % N].value();
  return TensorExpr<T, S>(all);
}

/// The determinant of [a b; c d] in rows i and j, columns k and l.
template <class T, size_t N>
Located<T> minorOf(const std::array<std::array<Located<T>, N>, N> &m, size_t i,
                   size_t j, size_t k, size_t l) {
  return m[i][k] * m[j][l] - m[i][l] * m[j][k];
}

/// The adjugate of a matrix of at most 3 rows: its inverse times determinant.
template <class T, size_t N>
auto adjugate(const std::array<std::array<Located<T>, N>, N> &m) {
  std::array<std::array<Located<T>, N>, N> result;
  if constexpr (N == 1)
    result[0][0] = m[0][0].same(1);
  else if constexpr (N == 2)
    result = {{{m[1][1], -m[0][1]}, {-m[1][0], m[0][0]}}};
  else
    for (size_t i = 0; i < 3; ++i)
      for (size_t j = 0; j < 3; ++j)
        result[j][i] =
            minorOf(m, (i + 1) % 3, (i + 2) % 3, (j + 1) % 3, (j + 2) % 3);
  return result;
}

/// The determinant as a polynomial: of the last rows, row by row upwards, all
/// minors of as many columns, which are bits of their index. Its derivatives
/// are right for singular matrices too.
template <class T, size_t N>
Located<T> polynomial(const std::array<std::array<Located<T>, N>, N> &m) {
  std::array<Located<T>, size_t(1) << N> minors;
  for (size_t columns = 1; columns < minors.size(); ++columns) {
    const auto &row = m[N - size_t(std::popcount(columns))];
    bool first = true, negative = false;
    for (size_t c = 0; c < N; ++c) {
      size_t others = columns & ~(size_t(1) << c);
      if (others == columns)
        continue;
      Located<T> term = others ? row[c] * minors[others] : row[c];
      Located<T> &sum = minors[columns];
      sum = first ? term : negative ? sum - term : sum + term;
      first = false;
      negative = !negative;
    }
  }
  return minors.back();
}

/// The determinant from the first row and the first column of the adjugate.
template <class T, size_t N>
Located<T> expanded(const std::array<std::array<Located<T>, N>, N> &m,
                    const std::array<std::array<Located<T>, N>, N> &adjugate) {
  Located<T> sum = m[0][0] * adjugate[0][0];
  for (size_t k = 1; k < N; ++k)
    sum = sum + m[0][k] * adjugate[k][0];
  return sum;
}

/// Exchanges x and y if the condition holds.
template <class T>
void exchange(Handle condition, Located<T> &x, Located<T> &y) {
  Located<T> old = x;
  x = choose(condition, y, old);
  y = choose(condition, old, y);
}

/// Gaussian elimination with row pivoting, in place: `a` becomes upper
/// triangular.
template <class T, size_t N, size_t K>
void eliminate(std::array<std::array<Located<T>, N>, N> &a,
               std::array<std::array<Located<T>, K>, N> &b) {
  for (size_t p = 0; p < N; ++p) {
    for (size_t r = p + 1; r < N; ++r) {
      Handle larger = abs(a[r][p]) > abs(a[p][p]);
      for (size_t c = p; c < N; ++c)
        exchange(larger, a[p][c], a[r][c]);
      for (size_t c = 0; c < K; ++c)
        exchange(larger, b[p][c], b[r][c]);
    }
    for (size_t r = p + 1; r < N; ++r) {
      Located<T> factor = a[r][p] / a[p][p];
      for (size_t c = p + 1; c < N; ++c)
        a[r][c] = a[r][c] - factor * a[p][c];
      for (size_t c = 0; c < K; ++c)
        b[r][c] = b[r][c] - factor * b[p][c];
    }
  }
}

/// Solves a x = b for upper triangular `a`.
template <class T, size_t N, size_t K>
void substitute(const std::array<std::array<Located<T>, N>, N> &a,
                std::array<std::array<Located<T>, K>, N> &b) {
  for (size_t r = N; r-- > 0;)
    for (size_t c = 0; c < K; ++c) {
      for (size_t k = r + 1; k < N; ++k)
        b[r][c] = b[r][c] - a[r][k] * b[k][c];
      b[r][c] = b[r][c] / a[r][r];
    }
}

/// a^-1 b
template <class T, size_t N, size_t K>
auto solved(std::array<std::array<Located<T>, N>, N> a,
            std::array<std::array<Located<T>, K>, N> b) {
  if constexpr (N > 3) {
    eliminate(a, b);
    substitute(a, b);
    return b;
  } else {
    auto adjugated = adjugate(a);
    Located<T> scale = a[0][0].same(1) / expanded(a, adjugated);
    std::array<std::array<Located<T>, K>, N> x;
    for (size_t i = 0; i < N; ++i)
      for (size_t j = 0; j < K; ++j) {
        x[i][j] = adjugated[i][0] * b[0][j];
        for (size_t k = 1; k < N; ++k)
          x[i][j] = x[i][j] + adjugated[i][k] * b[k][j];
        x[i][j] = x[i][j] * scale;
      }
    return x;
  }
}

/// The vectors one below the other.
template <class T, class S, class... A>
auto stacked(const std::source_location &place, const A &...rows) {
  using Stack = Shape<int(sizeof...(A)), S::count>;
  Handles<Stack> all;
  auto to = all.begin();
  for (const Handles<S> &one : {componentsAs<T, S>(rows, place)...})
    to = std::copy(one.begin(), one.end(), to);
  return TensorExpr<T, Stack>(all);
}

} // namespace detail

template <detail::MatrixLike A> auto transpose(const A &a, COSTATE_PLACE) {
  constexpr int rows = detail::rowsOf<A>, columns = detail::columnsOf<A>;
  auto from = a.components(place);
  detail::Handles<Shape<columns, rows>> to;
  for (size_t k = 0; k < to.size(); ++k)
    to[k] = from[k % rows * columns + k / rows];
  return MatExpr<detail::ElementOf<A>, columns, rows>(to);
}

template <detail::MatrixLike A>
auto row(const A &a, HostComponent i, COSTATE_PLACE) {
  constexpr size_t columns = detail::columnsOf<A>;
  auto from = a.components(place);
  detail::Handles<Shape<int(columns)>> to;
  for (size_t k = 0; k < columns; ++k)
    to[k] = from[i.below(detail::rowsOf<A>) * columns + k];
  return VecExpr<detail::ElementOf<A>, int(columns)>(to);
}
template <detail::MatrixLike A>
auto column(const A &a, HostComponent j, COSTATE_PLACE) {
  return row(transpose(a, place), j, place);
}

/// The matrix with these rows.
template <detail::VectorLike A, detail::VectorLike B>
  requires std::same_as<detail::ShapeOf<A>, detail::ShapeOf<B>>
auto from_rows(const A &a, const B &b, COSTATE_PLACE) {
  return detail::stacked<detail::ElementOf<A>, detail::ShapeOf<A>>(place, a, b);
}
template <detail::VectorLike A, detail::VectorLike B, detail::VectorLike C>
  requires std::same_as<detail::ShapeOf<A>, detail::ShapeOf<B>>
auto from_rows(const A &a, const B &b, const C &c, COSTATE_PLACE) {
  return detail::stacked<detail::ElementOf<A>, detail::ShapeOf<A>>(place, a, b,
                                                                   c);
}
/// The matrix with these columns.
template <detail::VectorLike A, detail::VectorLike B>
  requires std::same_as<detail::ShapeOf<A>, detail::ShapeOf<B>>
auto from_columns(const A &a, const B &b, COSTATE_PLACE) {
  return transpose(from_rows(a, b, place), place);
}
template <detail::VectorLike A, detail::VectorLike B, detail::VectorLike C>
  requires std::same_as<detail::ShapeOf<A>, detail::ShapeOf<B>>
auto from_columns(const A &a, const B &b, const C &c, COSTATE_PLACE) {
  return transpose(from_rows(a, b, c, place), place);
}

/// The matrix with `a` on its diagonal, and 0 elsewhere.
template <detail::VectorLike A> auto diagonal(const A &a, COSTATE_PLACE) {
  using T = detail::ElementOf<A>;
  constexpr int n = detail::ShapeOf<A>::count;
  auto from = a.components(place);
  auto to =
      detail::repeated<Shape<n, n>>(detail::constant(dtypeOf<T>, 0, place));
  for (size_t k = 0; k < from.size(); ++k)
    to[k * (n + 1)] = from[k];
  return MatExpr<T, n, n>(to);
}
template <Element T, int N> MatExpr<T, N, N> identity(COSTATE_PLACE) {
  return diagonal(VecExpr<T, N>(Source<T>(1, place)), place);
}

template <detail::SquareLike A>
  requires detail::NumberTensor<A>
Expr<detail::ElementOf<A>> trace(const A &a, COSTATE_PLACE) {
  using T = detail::ElementOf<A>;
  auto table = detail::tableOf<T>(a, place);
  auto sum = table[0][0];
  for (size_t k = 1; k < table.size(); ++k)
    sum = sum + table[k][k];
  return sum;
}

/// Up to 8 rows.
template <detail::FloatSquare A>
  requires(detail::rowsOf<A> <= 8)
Expr<detail::ElementOf<A>> determinant(const A &a, COSTATE_PLACE) {
  using T = detail::ElementOf<A>;
  return detail::polynomial(detail::tableOf<T>(a, place));
}

/// Of up to 3 rows from the adjugate, else by elimination with row pivoting.
/// inf or NaN for a singular matrix.
template <detail::FloatSquare A> auto inverse(const A &a, COSTATE_PLACE) {
  using T = detail::ElementOf<A>;
  constexpr int n = detail::rowsOf<A>;
  auto unit = detail::tableOf<T>(identity<T, n>(place), place);
  return detail::tensorOf<Shape<n, n>>(
      detail::solved(detail::tableOf<T>(a, place), unit));
}

/// The x with a * x == b, for a vector or a matrix b; as `inverse`.
template <detail::FloatSquare A, detail::Tensor B>
  requires(detail::rowsOf<A> == detail::rowsOf<B> &&
           std::is_same_v<detail::ElementOf<A>, detail::ElementOf<B>>)
auto solve(const A &a, const B &b, COSTATE_PLACE) {
  using T = detail::ElementOf<A>;
  return detail::tensorOf<detail::ShapeOf<B>>(detail::solved(
      detail::tableOf<T>(a, place), detail::tableOf<T>(b, place)));
}

} // namespace costate
