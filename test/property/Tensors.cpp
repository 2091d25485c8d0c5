#include "property/Tensors.h"

#include "property/Environment.h"
#include "property/Expressions.h"

namespace costate::property {

const std::vector<TensorOperation> &vectorOperations() {
  static const std::vector<TensorOperation> all = {
      {"vec3", "eee"},  {"vplus", "vv"},    {"vminus", "vv"}, {"vtimes", "vv"},
      {"vscale", "ev"}, {"cross", "vv"},    {"vsin", "v"},    {"vmax", "vv"},
      {"vunit", "v"},   {"vselect", "cvv"}, {"swizzle", "v"}};
  return all;
}

const std::vector<TensorOperation> &matrixOperations() {
  static const std::vector<TensorOperation> all = {
      {"mat4", "eeee"},   {"mplus", "mm"}, {"mm", "mm"},       {"mscale", "me"},
      {"transpose", "m"}, {"outer", "vv"}, {"mselect", "cmm"}, {"mtame", "m"}};
  return all;
}

const std::vector<TensorOperation> &tensorReductions() {
  static const std::vector<TensorOperation> all = {
      {"comp", "vi"}, {"dot", "vv"},    {"norm", "v"}, {"norm2", "v"},
      {"vsum", "v"},  {"entry", "mii"}, {"det", "m"},  {"trace", "m"}};
  return all;
}

const std::vector<TensorOperation> &tensorStatements() {
  static const std::vector<TensorOperation> all = {
      {"vec", "v"}, {"vset", "v"}, {"vadd", "v"}, {"vput", "ie"},
      {"mat", "m"}, {"mset", "m"}, {"madd", "m"}, {"mput", "iie"}};
  return all;
}

//===-- Programs ----------------------------------------------------------===//

const TensorOperation &
Expressions::choose(const std::vector<TensorOperation> &all) {
  for (const TensorOperation &one : all)
    if (wishes(one.head))
      return one;
  return pick(all);
}

std::vector<Node> Expressions::operandsOf(const TensorOperation &operation,
                                          int depth) {
  std::vector<Node> operands;
  for (const char *kind = operation.operands; *kind; ++kind)
    operands.push_back(*kind == 'v'   ? vector(depth - 1)
                       : *kind == 'm' ? matrix(depth - 1)
                       : *kind == 'c' ? condition(depth - 1)
                       : *kind == 'i' ? index(4)
                                      : real(depth - 1));
  return operands;
}

Node Expressions::vector(int depth) {
  auto variables = named("vec", false);
  if (!variables.empty() && (depth <= 0 || chance(35)))
    return atom(pick(variables)->text);
  const TensorOperation &operation =
      depth <= 0 ? vectorOperations().front() : choose(vectorOperations());
  return list(operation.head, operandsOf(operation, depth));
}

Node Expressions::matrix(int depth) {
  auto variables = named("mat", false);
  if (!variables.empty() && (depth <= 0 || chance(35)))
    return atom(pick(variables)->text);
  const TensorOperation &operation =
      depth <= 0 ? matrixOperations().front() : choose(matrixOperations());
  return list(operation.head, operandsOf(operation, depth));
}

Node Expressions::fromTensor(int depth) {
  const TensorOperation &operation = choose(tensorReductions());
  return list(operation.head, operandsOf(operation, depth));
}

/// In loops, what is assigned must stay small.
Node Expressions::tensorStatement(const std::string &fresh) {
  TensorOperation operation = choose(tensorStatements());
  std::string head = operation.head, type = head[0] == 'v' ? "vec" : "mat";
  auto variables = named(type, true);
  if (head == type && !variables.empty() && chance(70)) {
    operation = tensorStatements()[type == "vec" ? 3 : 7];
    head = operation.head;
  }
  if (head == type || variables.empty()) {
    Node start = type == "vec" ? vector(2) : matrix(2);
    names.push_back({fresh, type, true, 0});
    return list(type, {atom(fresh), start});
  }
  std::vector<Node> parts = operandsOf(operation, 3);
  if (loops > 0 || inPlace) {
    const char *tame = head.ends_with("put") ? "sin"
                       : type == "vec"       ? "vsin"
                                             : "mtame";
    parts.back() = list(tame, {parts.back()});
  }
  parts.insert(parts.begin(), atom(pick(variables)->text));
  return list(head, parts);
}

//===-- Traced ------------------------------------------------------------===//

template <class T> T *Environment::variable(const std::string &name) {
  auto place = names.find(name);
  if (place == names.end())
    throw InvalidProgram("no such name: " + name);
  auto *found = std::any_cast<std::shared_ptr<T>>(&place->second);
  if (!found)
    throw InvalidProgram("another type: " + name);
  return found->get();
}

VecExpr<double, 3> Environment::vector(const Node &node) {
  if (!node.isList)
    return *variable<Vector>(node.text);
  auto v = [&](size_t i) { return vector(node[i]); };
  auto e = [&](size_t i) { return value<double>(node[i]); };
  note(node.text);
  if (node.is("vec3"))
    return {e(0), e(1), e(2)};
  if (node.is("vplus"))
    return v(0) + v(1);
  if (node.is("vminus"))
    return v(0) - v(1);
  if (node.is("vtimes"))
    return v(0) * v(1);
  if (node.is("vscale"))
    return e(0) * v(1);
  if (node.is("cross"))
    return cross(v(0), v(1));
  if (node.is("vsin"))
    return sin(v(0));
  if (node.is("vmax"))
    return max(v(0), v(1));
  if (node.is("vunit")) {
    VecExpr<double, 3> whole = v(0);
    return whole / (1.0 + norm(whole));
  }
  if (node.is("vselect"))
    return select(value<bool>(node[0]), v(1), v(2));
  if (node.is("swizzle"))
    return swizzle<2, 0, 0>(v(0));
  throw InvalidProgram("no vector: " + print(node));
}

MatExpr<double, 2, 2> Environment::matrix(const Node &node) {
  if (!node.isList)
    return *variable<Matrix>(node.text);
  auto m = [&](size_t i) { return matrix(node[i]); };
  auto e = [&](size_t i) { return value<double>(node[i]); };
  note(node.text);
  if (node.is("mat4"))
    return {e(0), e(1), e(2), e(3)};
  if (node.is("mplus"))
    return m(0) + m(1);
  if (node.is("mm"))
    return m(0) * m(1);
  if (node.is("mscale"))
    return m(0) * e(1);
  if (node.is("transpose"))
    return transpose(m(0));
  if (node.is("outer"))
    return outer(swizzle<0, 1>(vector(node[0])),
                 swizzle<2, 1>(vector(node[1])));
  if (node.is("mselect"))
    return select(value<bool>(node[0]), m(1), m(2));
  if (node.is("mtame")) {
    MatExpr<double, 2, 2> whole = m(0);
    return whole / (1.0 + norm(whole));
  }
  throw InvalidProgram("no matrix: " + print(node));
}

std::optional<Expr<double>> Environment::fromTensor(const Node &node) {
  auto v = [&](size_t i) { return vector(node[i]); };
  if (node.is("comp"))
    return v(0)[at(node[1])];
  if (node.is("dot"))
    return dot(v(0), v(1));
  if (node.is("norm"))
    return norm(v(0));
  if (node.is("norm2"))
    return norm_sqr(v(0));
  if (node.is("vsum"))
    return sum(v(0));
  if (node.is("entry"))
    return matrix(node[0])(at(node[1]), at(node[2]));
  if (node.is("det"))
    return determinant(matrix(node[0]));
  if (node.is("trace"))
    return trace(matrix(node[0]));
  return {};
}

bool Environment::tensorStatement(const Node &node) {
  if (node.is("vec"))
    names[node[0].text] = std::make_shared<Vector>(vector(node[1]));
  else if (node.is("vset"))
    *variable<Vector>(node[0].text) = vector(node[1]);
  else if (node.is("vadd"))
    *variable<Vector>(node[0].text) += vector(node[1]);
  else if (node.is("vput"))
    (*variable<Vector>(node[0].text))[at(node[1])] = value<double>(node[2]);
  else if (node.is("mat"))
    names[node[0].text] = std::make_shared<Matrix>(matrix(node[1]));
  else if (node.is("mset"))
    *variable<Matrix>(node[0].text) = matrix(node[1]);
  else if (node.is("madd"))
    *variable<Matrix>(node[0].text) += matrix(node[1]);
  else if (node.is("mput"))
    (*variable<Matrix>(node[0].text))(at(node[1]), at(node[2])) =
        value<double>(node[3]);
  else
    return false;
  note(node.text);
  return true;
}

} // namespace costate::property
