#include "property/Expressions.h"

#include <algorithm>
#include <sstream>

namespace costate::property {

const std::vector<Expressions::Wish> &Expressions::wishes() {
  static const std::vector<Wish> all = [] {
    std::vector<Wish> wishes;
    for (const std::string &line : everything()) {
      std::istringstream words(line);
      std::vector<std::string> parts;
      for (std::string word; words >> word;)
        if (word != "to") // add to
          parts.push_back(word);
      parts.resize(3);
      if (parts[0] == "cast")
        wishes.push_back({"cast", parts[2], parts[1]});
      else if (parts[0] == "for")
        wishes.push_back({"for", "", ""});
      else
        wishes.push_back({parts[0], parts[1], ""});
    }
    return wishes;
  }();
  return all;
}

static bool isComparison(const std::string &head) {
  return std::ranges::find(comparisons(), head) != comparisons().end();
}

std::string Expressions::someType() {
  static const std::vector<std::string> some = {
      "f64", "f64", "f64", "f64", "f32", "i32", "i64", "u32",
      "u64", "i8",  "i16", "u8",  "u16", "f16", "bool"};
  // A comparison is a bool, whatever it compares.
  std::string wanted = isComparison(wish.head) ? "bool" : wish.type;
  std::string type = chance(40) && !wanted.empty() ? wanted : pick(some);
  return isSingle(type) && !single ? "f64" : type;
}

std::vector<const Name *> Expressions::named(const std::string &type,
                                             bool writable) {
  std::vector<const Name *> found;
  for (const Name &name : names)
    if (name.type == type && (name.writable || !writable))
      found.push_back(&name);
  return found;
}

std::vector<const Name *> Expressions::locals(const std::string &type) {
  return named("local " + type, true);
}

std::vector<Node> Expressions::elementOfLocal(const std::string &type) {
  return {atom(pick(locals(type))->text), index(localSize)};
}

//===-- Elements ----------------------------------------------------------===//

/// An element beside that of the work item.
Node Expressions::neighbour(int extent) {
  Node mine = pick(own), last = atom(extent - 1), step = atom(between(1, 2));
  switch (below(4)) {
  case 0:
    return list("min", {list("add", {mine, step}), last});
  case 1:
    return list("min",
                {list("max", {list("sub", {mine, step}), atom(0)}), last});
  case 2:
    return list("idx", {atom(extent), list("sub", {mine, step})});
  default:
    return list("idx", {atom(extent), list("add", {mine, step})});
  }
}

Node Expressions::index(int extent) {
  if (inRange && !own.empty() && extent > 1 && nested < 2 && chance(8))
    return neighbour(extent);
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
  bool racy = array == racing && inRange && chance(50);
  if (roles.at(array) == Role::Shuffled)
    return {list("idx", {atom(width), list("add", {own[0], atom(1)})})};
  if (arrayNamed(array).constant || roles.at(array) != Role::Own || racy)
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

/// Unless a program works in place, it does not change an array that it has
/// read: mostly, for else few programs would have a gradient by hand.
bool Expressions::mayLoad(const std::string &array) {
  if (arrayNamed(array).constant)
    return true;
  Role role = roles.at(array);
  if (role != Role::Own && role != Role::Gather)
    return false;
  if (read.contains(array) || wild || inPlace)
    return true;
  if (loops > 0 && written.contains(array))
    return false;
  return chance(40);
}

Node Expressions::load(const std::string &type) {
  std::vector<std::string> choices;
  for (const ArrayInfo &info : arrays())
    if (type == nameOf(info.type) && mayLoad(info.name))
      choices.push_back(info.name);
  if (choices.empty())
    return literal(type);
  std::string array = pick(choices);
  std::vector<Node> parts = {atom(array)};
  if (!arrayNamed(array).constant)
    read.insert(array);
  for (Node &part : element(array))
    parts.push_back(part);
  return list("load", parts);
}

Node Expressions::literal(const std::string &type) {
  if (type == "bool")
    return atom(chance(50) ? "true" : "false");
  if (!isReal(type))
    return atom(isUnsigned(type) ? between(0, 7) : between(-3, 5));
  std::string text = std::to_string(between(-190, 190) / 100.0 + 0.00371);
  return atom(text);
}

//===-- Values ------------------------------------------------------------===//

const Function *Expressions::wished(const std::vector<Function> &functions,
                                    const std::string &type) {
  if (wish.type != type || !chance(25))
    return nullptr;
  for (const Function &function : functions)
    if (wish.head == function.head)
      return &function;
  return nullptr;
}

Node Expressions::apply(const Function &function, const std::string &type,
                        int depth) {
  auto value = [&] { return expression(type, depth - 1); };
  switch (function.operands) {
  case Operands::Any:
    return list(function.head, {value()});
  case Operands::Choice:
    return list(function.head, {condition(depth - 1), value(), value()});
  case Operands::Three:
    return list(function.head, {value(), value(), value()});
  case Operands::Two:
    return list(function.head, {value(), value()});
  default:
    return applyToReals(function, type, depth);
  }
}

Node Expressions::applyAnywhere(const Function &function,
                                const std::string &type, int depth) {
  bool isBinary = function.operands == Operands::Away ||
                  function.operands == Operands::Power;
  std::vector<Node> operands(isBinary ? 2 : 1, real(depth - 1, type));
  if (function.operands == Operands::Bounds)
    operands.insert(operands.end(), {atom("-1.37"), atom("1.71")});
  return list(function.head, operands);
}

Node Expressions::applyToReals(const Function &function,
                               const std::string &type, int depth) {
  if (wild && chance(10)) // inf and NaN, too
    return applyAnywhere(function, type, depth);
  switch (function.operands) {
  case Operands::Small:
    return list(function.head, {tame(depth, type)});
  case Operands::AboveOne:
    return list(function.head, {list("add", {atom("2.3"), tame(depth, type)})});
  case Operands::Unit:
    return list(function.head,
                {list("mul", {atom("0.83"), tame(depth, type)})});
  case Operands::Away:
    return list(function.head,
                {real(depth - 1, type),
                 list("add", {atom("1.61"), tame(depth, type)})});
  case Operands::Power:
    return list(function.head, {list("add", {atom("1.61"), tame(depth, type)}),
                                list("sin", {real(depth - 1, type)})});
  default:
    return list(function.head,
                {real(depth - 1, type), atom("-1.37"), atom("1.71")});
  }
}

/// A value between -1 and 1.
Node Expressions::tame(int depth, const std::string &type) {
  static const std::vector<std::string> heads = {"sin", "cos", "tanh", "sin"};
  return list(pick(heads), {real(depth - 1, type)});
}

Node Expressions::realLeaf(const std::string &type) {
  if (chance(localPercent) && !locals(type).empty())
    return list("get", elementOfLocal(type));
  auto variables = named(type, false);
  if (!times.empty() && type == "f64" && chance(40))
    return pick(times);
  if (!variables.empty() && chance(65))
    return atom(pick(variables)->text);
  if (type == "f64" && chance(6))
    return atom("p");
  return chance(85) ? load(type) : literal(type);
}

Node Expressions::asReal(const std::string &type, Node value) {
  if (type == "f64")
    return value;
  Node converted = list("cast", {atom(type), std::move(value)});
  if (isReal(type) || type == "bool")
    return converted;
  return list("sin", {list("mul", {atom("0.127"), converted})});
}

Node Expressions::realFrom(const std::string &from, const std::string &to,
                           int depth) {
  Node value = list("cast", {atom(from), expression(from, depth - 1)});
  if (isReal(from) || from == "bool")
    return value;
  value = list("mul", {atom("0.127"), value});
  bool isSmall = from == "i32" && chance(40);
  return isSmall ? value : list("sin", {value});
}

Node Expressions::real(int depth, const std::string &type) {
  if (depth <= 0 || chance(15))
    return realLeaf(type);
  if (type == "f64" && chance(tensorPercent))
    return fromTensor(depth);
  if (const Function *function = wished(realFunctions(), type))
    return apply(*function, type, depth);
  if (wish.head == "cast" && wish.type == type && chance(25))
    return realFrom(wish.from, type, depth);
  if (chance(40)) {
    static const std::vector<std::string> plain = {"add", "sub", "mul", "add",
                                                   "mul", "min", "max"};
    return list(pick(plain), {real(depth - 1, type), real(depth - 1, type)});
  }
  if (chance(85))
    return apply(pick(realFunctions()), type, depth);
  if (chance(25))
    return list("mul", {atom("0.71"), real(depth - 1, type)});
  std::vector<std::string> from = {"i32", "i64", "u32", "u64", "bool",
                                   "i8",  "i16", "u8",  "u16"};
  for (const char *other : {"f16", "f32", "f64"})
    if (other != type && (isSingle(type) || single))
      from.insert(from.end(), 4, other);
  return realFrom(pick(from), type, depth);
}

Node Expressions::integerLeaf(const std::string &type) {
  if (chance(localPercent) && !locals(type).empty())
    return list("get", elementOfLocal(type));
  auto variables = named(type, false);
  if (!variables.empty() && chance(70))
    return atom(pick(variables)->text);
  if (type == "i64" && chance(5))
    return list("size");
  if (type == "i32" && chance(10))
    return atom("q");
  if (type == "i64" && chance(40))
    return list("cast", {atom("i32"), load("i32")});
  return chance(70) ? load(type) : literal(type);
}

Node Expressions::integerFrom(const std::string &from, const std::string &to,
                              int depth) {
  // Mostly small; or such as do not fit into 16 bits or less.
  std::string factor = isNarrow(to) && chance(40) ? "71234.7" : "2.57";
  Node value = isReal(from) ? list("mul", {atom(factor), real(1, from)})
                            : expression(from, depth - 1);
  return list("cast", {atom(from), value});
}

Node Expressions::integer(int depth, const std::string &type) {
  if (depth <= 0 || chance(25))
    return integerLeaf(type);
  if (const Function *function = wished(integerFunctions(), type))
    return apply(*function, type, depth);
  if (wish.head == "cast" && wish.type == type && chance(25))
    return integerFrom(wish.from, type, depth);
  if (type == "u64" && (wishes("philox") || chance(5)))
    return list("philox", {integer(depth - 1, type), integer(depth - 1, type),
                           integer(depth - 1, type)});
  if (chance(40)) {
    static const std::vector<std::string> plain = {"add", "sub", "rem",
                                                   "min", "max", "and"};
    return list(pick(plain),
                {integer(depth - 1, type), integer(depth - 1, type)});
  }
  if (chance(60))
    return apply(pick(integerFunctions()), type, depth);
  std::string from = pick(types());
  if (isSingle(from) && !single)
    from = "f64";
  return from == type ? integerLeaf(type) : integerFrom(from, type, depth);
}

Node Expressions::compare(const std::string &head, const std::string &type,
                          int depth) {
  return list(head,
              {atom(type), expression(type, depth), expression(type, depth)});
}

Node Expressions::conditionOfLanes() {
  int extent = between(2, 3);
  return list(pick(comparisons()),
              {atom("i64"), remainder(extent), atom(below(extent))});
}

Node Expressions::condition(int depth) {
  static const std::vector<std::string> joins = {"and", "or", "xor"};
  if (diverges())
    return conditionOfLanes();
  if (isComparison(wish.head) && chance(30) && (!isSingle(wish.type) || single))
    return compare(wish.head, wish.type, depth);
  if (wish.head == "cast" && wish.type == "bool" && chance(60))
    return list("cast", {atom(wish.from), expression(wish.from, depth)});
  if (depth > 0 && chance(25))
    return list(pick(joins), {condition(depth - 1), condition(depth - 1)});
  if (depth > 0 && chance(wishes("not") ? 50 : 10))
    return list("not", {condition(depth - 1)});
  if (depth > 0 && chance(wishes("select") ? 50 : 5))
    return list("select",
                {condition(0), condition(depth - 1), condition(depth - 1)});
  if (chance(localPercent) && !locals("bool").empty())
    return list("get", elementOfLocal("bool"));
  auto variables = named("bool", false);
  if (!variables.empty() && chance(25))
    return atom(pick(variables)->text);
  if (chance(10))
    return load("bool");
  if (chance(55))
    return compare(pick(comparisons()),
                   !single || chance(70) ? "f64"
                   : chance(60)          ? "f32"
                                         : "f16",
                   depth);
  static const std::vector<std::string> some = {"i32", "i64", "u32",  "u64",
                                                "i32", "i64", "bool", "i8",
                                                "i16", "u8",  "u16"};
  std::string type = pick(some);
  if (type == "bool")
    return compare(chance(50) ? "ne" : "eq", type, std::min(depth, 1) - 1);
  return compare(pick(comparisons()), type, depth);
}

Node Expressions::expression(const std::string &type, int depth) {
  if (type == "bool")
    return condition(depth);
  return isReal(type) ? real(depth, type) : integer(depth, type);
}

} // namespace costate::property
