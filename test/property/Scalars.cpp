#include "property/Scalars.h"

#include <map>

namespace costate::property {
namespace {

using Nodes = std::vector<Node>;

Node operation(const char *head, const Node &a, const Node &b) {
  return list(head, {a, b});
}
Node sumOf(const Nodes &terms) {
  Node sum = terms[0];
  for (size_t k = 1; k < terms.size(); ++k)
    sum = operation("add", sum, terms[k]);
  return sum;
}
Nodes zip(const char *head, const Nodes &a, const Nodes &b) {
  Nodes all;
  for (size_t k = 0; k < a.size(); ++k)
    all.push_back(operation(head, a[k], b[k]));
  return all;
}
Node dot(const Nodes &a, const Nodes &b) { return sumOf(zip("mul", a, b)); }
Node select(const Node &condition, const Node &a, const Node &b) {
  return list("select", {condition, a, b});
}
Node is(const Node &index, int value) {
  return list("eq", {atom("i64"), index, atom(value)});
}

/// a / (1 + |a|)
Nodes tamed(const Nodes &a) {
  Node whole = operation("add", atom("1.0"), list("sqrt", {dot(a, a)}));
  return zip("div", a, Nodes(a.size(), whole));
}

class Expansion {
public:
  Node block(const Node &node) {
    Node result = node;
    result.children.clear();
    for (size_t i = 0; i < node.children.size(); ++i)
      if (i < firstStatement(node))
        result.children.push_back(number(node[i]));
      else
        for (Node &one : statement(node[i]))
          result.children.push_back(std::move(one));
    return result;
  }

private:
  Nodes statement(const Node &node) {
    if (isBlock(node))
      return {block(node)};
    if (node.is("vec") || node.is("mat"))
      return declare(node[0].text, value(node[1]));
    if (node.is("vset") || node.is("mset"))
      return change("set", node[0].text, value(node[1]));
    if (node.is("vadd") || node.is("madd"))
      return change("add", node[0].text, value(node[1]));
    if (node.is("vput") || node.is("mput"))
      return put(node);
    return {number(node)};
  }

  Nodes value(const Node &node) {
    if (node.isList)
      return isMatrix(node) ? matrix(node) : vector(node);
    Nodes all;
    for (size_t k = 0; k < sizes.at(node.text); ++k)
      all.push_back(atom(node.text + "x" + std::to_string(k)));
    return all;
  }

  static bool isMatrix(const Node &node) {
    for (const char *head : {"mat4", "mplus", "mm", "mscale", "transpose",
                             "outer", "mselect", "mtame"})
      if (node.is(head))
        return true;
    return false;
  }

  Nodes declare(const std::string &name, const Nodes &start) {
    sizes[name] = start.size();
    Nodes all;
    for (size_t k = 0; k < start.size(); ++k)
      all.push_back(list("var", {atom(name + "x" + std::to_string(k)),
                                 atom("f64"), start[k]}));
    return all;
  }

  /// All new values are there before the first component changes.
  Nodes change(const char *how, const std::string &name, const Nodes &by) {
    std::string fresh = "c" + std::to_string(counter++);
    Nodes all = declare(fresh, by), parts = value(atom(name));
    for (size_t k = 0; k < by.size(); ++k)
      all.push_back(operation(how, parts[k], value(atom(fresh))[k]));
    return all;
  }

  /// The component that is meant becomes the value, if there is one.
  Nodes put(const Node &node) {
    std::string fresh = "c" + std::to_string(counter++);
    bool isVector = node.is("vput");
    Nodes all = {
        list("var", {atom(fresh + "i"), atom("i64"), number(node[1])})};
    if (!isVector)
      all.push_back(
          list("var", {atom(fresh + "j"), atom("i64"), number(node[2])}));
    all.push_back(
        list("var", {atom(fresh), atom("f64"), number(node.children.back())}));
    Nodes parts = value(node[0]);
    for (int k = 0; k < int(parts.size()); ++k) {
      Node here = is(atom(fresh + "i"), isVector ? k : k / 2);
      if (!isVector)
        here = operation("and", here, is(atom(fresh + "j"), k % 2));
      const Node &part = parts[size_t(k)];
      all.push_back(operation("set", part, select(here, atom(fresh), part)));
    }
    return all;
  }

  Nodes vector(const Node &node) {
    if (node.is("vec3"))
      return {number(node[0]), number(node[1]), number(node[2])};
    if (node.is("vscale"))
      return zip("mul", Nodes(3, number(node[0])), value(node[1]));
    if (node.is("vselect"))
      return chosen(node);
    Nodes a = value(node[0]), b;
    if (node.children.size() > 1)
      b = value(node[1]);
    if (node.is("vplus"))
      return zip("add", a, b);
    if (node.is("vminus"))
      return zip("sub", a, b);
    if (node.is("vtimes"))
      return zip("mul", a, b);
    if (node.is("vmax"))
      return zip("max", a, b);
    if (node.is("vunit"))
      return tamed(a);
    if (node.is("swizzle"))
      return {a[2], a[0], a[0]};
    if (node.is("vsin"))
      return {list("sin", {a[0]}), list("sin", {a[1]}), list("sin", {a[2]})};
    auto minor = [&](size_t i, size_t j) {
      return operation("sub", operation("mul", a[i], b[j]),
                       operation("mul", a[j], b[i]));
    };
    return {minor(1, 2), minor(2, 0), minor(0, 1)}; // cross
  }

  Nodes matrix(const Node &node) {
    if (node.is("mat4"))
      return {number(node[0]), number(node[1]), number(node[2]),
              number(node[3])};
    if (node.is("mselect"))
      return chosen(node);
    Nodes a = value(node[0]), b;
    if (node.is("mscale"))
      return zip("mul", a, Nodes(4, number(node[1])));
    if (node.is("transpose"))
      return {a[0], a[2], a[1], a[3]};
    if (node.is("mtame"))
      return tamed(a);
    b = value(node[1]);
    if (node.is("mplus"))
      return zip("add", a, b);
    if (node.is("outer"))
      return zip("mul", {a[0], a[0], a[1], a[1]}, {b[2], b[1], b[2], b[1]});
    Nodes product;
    for (size_t i : {0, 2})
      for (size_t j : {0, 1})
        product.push_back(dot({a[i], a[i + 1]}, {b[j], b[j + 2]}));
    return product;
  }

  Nodes chosen(const Node &node) {
    Node condition = number(node[0]);
    Nodes a = value(node[1]), b = value(node[2]), all;
    for (size_t k = 0; k < a.size(); ++k)
      all.push_back(select(condition, a[k], b[k]));
    return all;
  }

  /// The value at an index, 0 where there is none.
  static Node at(const Node &index, const Nodes &values) {
    Node found = atom("0.0");
    for (int k = int(values.size()); k-- > 0;)
      found = select(is(index, k), values[size_t(k)], found);
    return found;
  }

  Node number(const Node &node) {
    if (!node.isList)
      return node;
    if (node.is("comp"))
      return at(number(node[1]), value(node[0]));
    if (node.is("dot"))
      return dot(value(node[0]), value(node[1]));
    if (node.is("norm") || node.is("norm2")) {
      Nodes a = value(node[0]);
      return node.is("norm") ? list("sqrt", {dot(a, a)}) : dot(a, a);
    }
    if (node.is("vsum"))
      return sumOf(value(node[0]));
    if (node.is("entry")) {
      Nodes m = value(node[0]);
      Node column = number(node[2]);
      return at(number(node[1]),
                {at(column, {m[0], m[1]}), at(column, {m[2], m[3]})});
    }
    if (node.is("trace") || node.is("det")) {
      Nodes m = value(node[0]);
      if (node.is("trace"))
        return operation("add", m[0], m[3]);
      return operation("sub", operation("mul", m[0], m[3]),
                       operation("mul", m[1], m[2]));
    }
    Node result = node;
    for (Node &child : result.children)
      child = number(child);
    return result;
  }

  std::map<std::string, size_t> sizes;
  int counter = 0;
};

} // namespace

Node withoutTensors(const Node &program) { return Expansion().block(program); }

} // namespace costate::property
