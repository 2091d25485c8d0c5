#include "property/Expressions.h"

#include "property/Emit.h"

namespace costate::property {

static const std::map<std::string, std::string> arrayTypes = {
    {"x", "f64"},   {"y", "f64"}, {"z", "f64"}, {"u", "f64"},
    {"v", "f64"},   {"s", "f64"}, {"a", "f32"}, {"b", "f32"},
    {"out", "f64"}, {"m", "i32"}, {"n", "i32"}};

std::vector<const Name *> Expressions::named(const std::string &type,
                                             bool writable) {
  std::vector<const Name *> found;
  for (const Name &name : names)
    if (name.type == type && (name.writable || !writable))
      found.push_back(&name);
  return found;
}

Node Expressions::index(int extent) {
  std::vector<Node> choices = {atom(below(extent))};
  for (const Name *name : named("i64", false)) {
    if (name->bound > 0 && name->bound <= extent)
      choices.insert(choices.end(), 3, atom(name->text));
    if (name->bound > 0 && name->bound < extent)
      choices.insert(choices.end(), wild ? 3 : 1,
                     list("add", {atom(name->text), atom(1)}));
  }
  int choice = below(int(choices.size()) + 2);
  if (choice < int(choices.size()) || nested >= 2)
    return pick(choices);
  ++nested;
  Node index = list("idx", {atom(extent), integer(between(1, 2), "i64")});
  --nested;
  return index;
}

std::vector<Node> Expressions::element(const std::string &array) {
  if (array == "s")
    return {};
  if (array == "out")
    return {index(sums)};
  bool matrix = array == "u" || array == "v";
  int rows = array == "u" ? steps : 3;
  if (roles.at(array) != Role::Own)
    return matrix ? std::vector<Node>{index(rows), index(width)}
                  : std::vector<Node>{index(width)};
  if (own.size() == 2)
    return own;
  Node mine = flip[array] ? list("sub", {atom(width - 1), own[0]}) : own[0];
  if (array == "v" && flip[array] == 0)
    return {index(3), mine};
  return matrix ? std::vector<Node>{index(rows), mine}
                : std::vector<Node>{mine};
}

/// Once an array is read, the program does not change it: mostly, for else few
/// programs would have a gradient.
bool Expressions::mayLoad(const std::string &array) {
  if (array == "x" || array == "a" || array == "m")
    return true;
  if (roles.at(array) == Role::Scatter || roles.at(array) == Role::Locked)
    return false;
  if (read.contains(array) || wild)
    return true;
  if (loops > 0 && written.contains(array))
    return false;
  return chance(40);
}

Node Expressions::load(const std::string &type) {
  std::vector<std::string> arrays;
  for (auto &[array, of] : arrayTypes)
    if (of == type)
      arrays.push_back(array);
  std::string array = pick(arrays);
  if (!mayLoad(array))
    array = type == "f64" ? "x" : type == "f32" ? "a" : "m";
  std::vector<Node> parts = {atom(array)};
  if (array == "x" || array == "a" || array == "m") {
    parts.push_back(index(width));
    return list("load", parts);
  }
  read.insert(array);
  for (Node &part : element(array))
    parts.push_back(part);
  return list("load", parts);
}

Node Expressions::literal(const std::string &type) {
  if (type == "i32" || type == "i64")
    return atom(between(-3, 5));
  if (type == "u32")
    return atom(between(0, 7));
  std::string text = std::to_string(between(-190, 190) / 100.0 + 0.00371);
  return atom(text);
}

Node Expressions::realLeaf(const std::string &type) {
  auto variables = named(type, false);
  if (!times.empty() && type == "f64" && chance(40))
    return pick(times);
  if (!variables.empty() && chance(65))
    return atom(pick(variables)->text);
  if (type == "f64" && chance(6))
    return atom("p");
  return chance(85) ? load(type) : literal(type);
}

/// A value between -1 and 1.
Node Expressions::tame(int depth, const std::string &type) {
  static const std::vector<std::string> heads = {"sin", "cos", "tanh", "sin"};
  return list(pick(heads), {real(depth - 1, type)});
}

Node Expressions::unary(int depth, const std::string &type) {
  static const std::vector<std::string> any = {"sin",  "cos",   "tanh", "atan",
                                               "erf",  "asinh", "neg",  "abs",
                                               "erfc", "sin"};
  if (chance(60))
    return list(pick(any), {real(depth - 1, type)});
  static const std::vector<std::string> small = {"exp",  "exp2", "expm1",
                                                 "sinh", "cosh", "tan"};
  if (chance(50))
    return list(pick(small), {tame(depth, type)});
  static const std::vector<std::string> steps = {"floor", "ceil", "round",
                                                 "trunc"};
  return list(pick(steps), {real(depth - 1, type)});
}

/// Functions that are defined on a part of the line only.
Node Expressions::partial(int depth, const std::string &type) {
  static const std::vector<std::string> positive = {
      "sqrt", "rsqrt", "cbrt", "log", "log2", "log10", "acosh"};
  static const std::vector<std::string> unit = {"asin", "acos", "atanh",
                                                "log1p"};
  if (chance(60))
    return list(pick(positive),
                {list("add", {atom("2.3"), tame(depth, type)})});
  return list(pick(unit), {list("mul", {atom("0.83"), tame(depth, type)})});
}

Node Expressions::binary(int depth, const std::string &type) {
  static const std::vector<std::string> plain = {"add", "sub", "mul", "min",
                                                 "max", "add", "mul"};
  if (chance(75))
    return list(pick(plain), {real(depth - 1, type), real(depth - 1, type)});
  Node left = real(depth - 1, type);
  Node away = list("add", {atom("1.61"), tame(depth, type)});
  static const std::vector<std::string> guarded = {"div", "atan2", "hypot",
                                                   "fmod", "rem"};
  if (chance(80))
    return list(pick(guarded), {left, away});
  return list("pow", {away, list("sin", {left})});
}

Node Expressions::other(int depth, const std::string &type) {
  switch (below(6)) {
  case 0:
    return list("select", {condition(depth - 1), real(depth - 1, type),
                           real(depth - 1, type)});
  case 1:
    return list("fma", {real(depth - 1, type), tame(depth, type),
                        real(depth - 1, type)});
  case 2:
    return list("clamp", {real(depth - 1, type), atom("-1.37"), atom("1.71")});
  case 3: {
    std::string from = type == "f64" && single ? "f32" : "i32";
    if (type == "f32" && chance(70))
      from = "f64";
    return list("cast", {atom(from), expression(from, depth - 1)});
  }
  case 4: {
    static const std::vector<std::string> types = {"i64", "u32", "bool", "i32"};
    std::string from = pick(types);
    return list("mul", {atom("0.127"),
                        list("cast", {atom(from), expression(from, 1)})});
  }
  default:
    return list("mul", {atom("0.71"), real(depth - 1, type)});
  }
}

Node Expressions::real(int depth, const std::string &type) {
  if (depth <= 0 || chance(15))
    return realLeaf(type);
  int choice = below(100);
  if (choice < 35)
    return binary(depth, type);
  if (choice < 65)
    return unary(depth, type);
  return choice < 75 ? partial(depth, type) : other(depth, type);
}

Node Expressions::integer(int depth, const std::string &type) {
  auto variables = named(type, false);
  if (depth <= 0 || chance(25)) {
    if (!variables.empty() && chance(70))
      return atom(pick(variables)->text);
    if (type != "u32" && chance(60)) {
      Node small = chance(10) ? atom("q") : load("i32");
      return type == "i32" ? small : list("cast", {atom("i32"), small});
    }
    if (type == "i64" && chance(5))
      return list("size");
    return literal(type);
  }
  static const std::vector<std::string> heads = {
      "add", "sub", "mul", "div", "rem", "and", "or",
      "xor", "shr", "min", "max", "add", "rem", "shl"};
  if (chance(60))
    return list(pick(heads),
                {integer(depth - 1, type), integer(depth - 1, type)});
  if (chance(20))
    return list("select", {condition(0), integer(depth - 1, type),
                           integer(depth - 1, type)});
  static const std::vector<std::string> types = {"i32", "i64", "u32",
                                                 "f64", "i32", "bool"};
  std::string from = pick(types);
  if (from == type)
    return list("abs", {integer(depth - 1, type)});
  Node inner = from == "f64" ? list("mul", {atom("2.57"), real(1)})
                             : expression(from, depth - 1);
  return list("cast", {atom(from), inner});
}

Node Expressions::condition(int depth) {
  static const std::vector<std::string> joins = {"and", "or", "xor"};
  if (depth > 0 && chance(25))
    return list(pick(joins), {condition(depth - 1), condition(depth - 1)});
  if (depth > 0 && chance(10))
    return list("not", {condition(depth - 1)});
  auto variables = named("bool", false);
  if (!variables.empty() && chance(25))
    return atom(pick(variables)->text);
  static const std::vector<std::string> orders = {"lt", "le", "gt", "ge"};
  static const std::vector<std::string> types = {"i32", "i64", "u32"};
  if (chance(55))
    return list(pick(orders),
                {atom("f64"), real(depth, "f64"), real(depth, "f64")});
  std::string type = pick(types);
  return list(chance(20) ? "ne" : pick(orders),
              {atom(type), integer(depth, type), integer(depth, type)});
}

Node Expressions::expression(const std::string &type, int depth) {
  if (type == "bool")
    return condition(depth);
  return type == "f64" || type == "f32" ? real(depth, type)
                                        : integer(depth, type);
}

} // namespace costate::property
