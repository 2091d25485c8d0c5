#pragma once
/// Names and expressions of a program while it is traced.

#include "property/Coverage.h"
#include "property/Program.h"

#include "costate/costate.h"

#include <any>
#include <map>
#include <memory>
#include <optional>

namespace costate::property {

struct Arguments {
  ArrayRef<double, 1> x, y, z;
  ArrayRef<double, 2> u, v;
  ArrayRef<double, 1> out;
  ArrayRef<double, 0> s;
  ArrayRef<float, 1> a, b;
  ArrayRef<int32_t, 1> m, n;
  ArrayRef<int64_t, 1> g;
  ArrayRef<uint32_t, 1> h;
  ArrayRef<uint64_t, 1> w;
  ArrayRef<bool, 1> c;
  ArrayRef<int8_t, 1> d;
  ArrayRef<int16_t, 1> e;
  ArrayRef<uint8_t, 1> o;
  ArrayRef<uint16_t, 1> r;
  ArrayRef<f16, 1> f, l;
  Scalar<double> p;
  Scalar<int> q;
};

class Environment {
public:
  explicit Environment(Arguments arguments) : arguments(arguments) {}

  /// Names that are bound while it lives are forgotten at its end.
  class Block {
  public:
    explicit Block(Environment &of) : of(of), outer(of.names) {}
    ~Block() { of.names = std::move(outer); }

  private:
    Environment &of;
    std::map<std::string, std::any> outer;
  };

  /// What is traced while it lives stands in `construct`.
  class Inside {
  public:
    Inside(Environment &of, Construct construct);
    ~Inside();

  private:
    Environment &of;
    uint8_t outerPlace;
    int outerLoops;
  };

  /// The value of an expression of type T.
  template <class T> Expr<T> value(const Node &node);

  /// (let name e)
  void bind(const std::string &name, Index index) { names[name] = index; }
  /// A new variable.
  void declare(const std::string &name, const Expr<double> &value) {
    names[name] = Variable<double>{std::make_shared<Var<double>>(value), loops};
  }
  /// Assigns to a variable if there is one of this name.
  void set(const std::string &name, const Expr<double> &value);
  /// (var name type e), (set name e), (add name e), (scale name e)
  void define(const Node &node);
  /// (local name type), (put name index e), (bump name index e)
  void defineLocal(const Node &node);
  void writeLocal(const Node &node);
  /// (store array index... e), (update array index... e)
  void write(const Node &node);
  /// A statement of vectors and matrices; false if it is none.
  bool tensorStatement(const Node &node);
  /// (print e), (assert e): one that holds.
  void message(const Node &node);

  /// Notes that `thing` is used here.
  void note(const std::string &thing) { used[thing] |= place; }
  const Uses &uses() const { return used; }
  /// Whether loops or branches are around.
  bool isInControlFlow() const {
    return (place & ~((1 << Serial) | (1 << Range))) != 0;
  }

private:
  template <class T> struct Variable {
    std::shared_ptr<Var<T>> var;
    int loops; ///< around its definition
  };

  template <class T> using Private = std::shared_ptr<Local<T, localSize>>;
  template <class T> Expr<T> get(const Node &node);
  template <class T> bool writeLocal(const Node &node, std::any &name);

  using Vector = Vec<double, 3>;
  using Matrix = Mat<double, 2, 2>;
  template <class T> T *variable(const std::string &name);
  VecExpr<double, 3> vector(const Node &node);
  MatExpr<double, 2, 2> matrix(const Node &node);
  std::optional<Expr<double>> fromTensor(const Node &node);

  template <class T> Expr<T> leaf(const std::string &text);
  template <class T> Expr<T> call(const Node &node);
  template <class T> Expr<T> cast(const Node &node);
  template <class T> Expr<T> number(const Node &node);
  template <class T> Expr<T> integer(const Node &node);
  template <class T> Expr<T> real(const Node &node);
  Expr<bool> truth(const Node &node);
  template <class T> Expr<bool> compare(const Node &node);
  template <class T> Expr<T> load(const Node &node);
  /// (fetch kind array index... e), (fetch compare array index... expected e)
  template <class T> Expr<T> fetch(const Node &node);
  template <class T>
  static Expr<T> fetchFrom(const ElementRef<T> &element,
                           const std::string &kind, const Expr<T> &expected,
                           const Expr<T> &value);
  /// (sum i n e), least, most, argmin, argmax; (sums i n x y) of a vector
  template <class T> Expr<T> reduction(const Node &node);
  template <class T> bool assign(const Node &node, std::any &name);
  template <class T>
  void writeTo(const ElementRef<T> &element, const Node &node);
  template <class F> void withElement(const Node &node, F &&f);
  template <class T> void note(const std::string &head) {
    note(head + " " + nameOf(dtypeOf<T>));
  }
  Index at(const Node &node) { return value<int64_t>(node); }

  Arguments arguments;
  std::map<std::string, std::any> names;
  Uses used;
  uint8_t place = 1 << Serial;
  int loops = 0;
};

} // namespace costate::property
