#include "property/Emit.h"

#include "api/KernelImpl.h"
#include "property/Environment.h"
#include "property/Singles.h"
#include "syntax/Trace.h"

#include <cmath>

namespace costate::property {
namespace {

class Emitter {
public:
  explicit Emitter(Environment environment)
      : environment(std::move(environment)) {}

  const Uses &uses() const { return environment.uses(); }

  void statements(const Node &block) {
    Environment::Block names(environment);
    for (size_t i = firstStatement(block); i < block.children.size(); ++i)
      statement(block[i]);
  }

private:
  Index index(const Node &node) { return environment.value<int64_t>(node); }
  Expr<bool> condition(const Node &node) {
    return environment.value<bool>(node);
  }

  void statement(const Node &node) {
    if (node.is("range"))
      return range(node);
    if (node.is("for"))
      return loop(node);
    if (node.is("while") || node.is("decay"))
      return whileLoop(node);
    if (node.is("if"))
      return branch(node);
    if (node.is("called"))
      return called(node);
    if (node.is("let"))
      return environment.bind(node[0].text, index(node[1]));
    if (node.is("break") || node.is("continue") || node.is("return"))
      environment.note(node.text);
    if (node.is("break"))
      return break_();
    if (node.is("continue"))
      return continue_();
    if (node.is("return"))
      return return_();
    if (node.is("print") || node.is("assert"))
      return environment.message(node);
    if (environment.tensorStatement(node))
      return;
    if (node.is("local"))
      return environment.defineLocal(node);
    if (node.is("put") || node.is("bump"))
      return environment.writeLocal(node);
    if (node.is("store") || node.is("update"))
      return environment.write(node);
    environment.define(node);
  }

  /// (range (i extent [j extent [k extent]]) ...)
  void range(const Node &node) {
    if (environment.isInControlFlow())
      environment.note("driven");
    const Node &head = node[0];
    auto extent = [&](size_t dim) { return index(head[2 * dim]); };
    auto body = [&](auto... indices) {
      Environment::Block names(environment);
      Environment::Inside inside(environment, Range);
      size_t dim = 0;
      auto bind = [&](Index index) {
        environment.bind(dim ? head[2 * dim - 1].text : head.text, index);
        ++dim;
      };
      (bind(indices), ...);
      statements(node);
    };
    if (head.children.size() == 1)
      return parallel(extent(0), [&](Index i) { body(i); });
    if (head.children.size() == 3)
      return parallel({extent(0), extent(1)},
                      [&](Index i, Index j) { body(i, j); });
    parallel({extent(0), extent(1), extent(2)},
             [&](Index i, Index j, Index k) { body(i, j, k); });
  }

  /// (for k lo hi step ...)
  void loop(const Node &node) {
    const Node &step = node[3];
    environment.note(step.isList           ? "for any"
                     : step.text[0] == '-' ? "for down"
                                           : "for up");
    for_(index(node[1]), index(node[2]), index(step), [&](Index k) {
      Environment::Block names(environment);
      Environment::Inside inside(environment, For);
      environment.bind(node[0].text, k);
      statements(node);
    });
  }

  /// (while most condition ...): at most `most` iterations.
  /// (decay start limit ...): shrinks a value until it is below the limit.
  void whileLoop(const Node &node) {
    environment.note(node.text);
    if (node.is("while")) {
      Var<int> iterations = 0;
      Expr<int> most = environment.value<int>(node[0]);
      return while_(
          [&] {
            Environment::Inside inside(environment, While);
            return (iterations < most) & condition(node[1]);
          },
          [&] {
            Environment::Inside inside(environment, While);
            iterations += 1;
            statements(node);
          });
    }
    Var<double> v = min(abs(environment.value<double>(node[0])), 3.0);
    Expr<double> limit = environment.value<double>(node[1]);
    while_([&] { return v > limit; },
           [&] {
             Environment::Inside inside(environment, While);
             v *= 0.6 - 0.01 * v;
             environment.set("decaying", v);
             statements(node);
           });
    environment.set("decaying", v);
  }

  /// (called sum e ...): a function of these statements that returns e, twice.
  void called(const Node &node) {
    environment.note("called");
    auto part = function("part", [&] {
      statements(node);
      return environment.value<double>(node[1]);
    });
    Expr<double> first = part(), second = part();
    environment.declare(node[0].text, first + second);
  }

  /// (if c (then ...) (elif c ...) ... (else ...))
  void branch(const Node &node) {
    environment.note("if");
    {
      detail::IfScope scope(condition(node[0]));
      Environment::Inside inside(environment, If);
      if (node.children.size() > 1)
        statements(node[1]);
    }
    for (size_t i = 2; i < node.children.size(); ++i) {
      environment.note(node[i].text);
      Environment::Inside inside(environment, If);
      if (node[i].is("elif")) {
        detail::ElifScope scope([&] { return condition(node[i][0]); });
        statements(node[i]);
      } else {
        detail::ElseScope scope;
        statements(node[i]);
      }
    }
  }

  Environment environment;
};

} // namespace

int widthOf(const Node &program) { return std::stoi(program[0].text); }

std::shared_ptr<detail::TracedKernel> traced(const Node &program, Uses *uses) {
  using Vector = ArrayRef<double, 1>;
  using Matrix = ArrayRef<double, 2>;
  auto tree = detail::trace(
      "random",
      [&](Vector x, Vector y, Vector z, Matrix u, Matrix v, Vector out,
          ArrayRef<double, 0> s, ArrayRef<float, 1> a, ArrayRef<float, 1> b,
          ArrayRef<int32_t, 1> m, ArrayRef<int32_t, 1> n,
          ArrayRef<int64_t, 1> g, ArrayRef<uint32_t, 1> h,
          ArrayRef<uint64_t, 1> w, ArrayRef<bool, 1> c, ArrayRef<int8_t, 1> d,
          ArrayRef<int16_t, 1> e, ArrayRef<uint8_t, 1> o,
          ArrayRef<uint16_t, 1> r, ArrayRef<f16, 1> f, ArrayRef<f16, 1> l,
          Scalar<double> p, Scalar<int> q) {
        Emitter emitter(Environment({x, y, z, u, v, out, s, a, b, m, n, g,
                                     h, w, c, d, e, o,   r, f, l, p, q}));
        emitter.statements(program);
        if (uses)
          *uses = emitter.uses();
      },
      std::source_location::current());
  if (usesSingles())
    narrow(tree->kernel);
  return tree;
}

Kernel emit(const Node &program, KernelOptions options, Uses *uses) {
  return detail::make_kernel(*traced(program, uses), options, Calls::All);
}

} // namespace costate::property
