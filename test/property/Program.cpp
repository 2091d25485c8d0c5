#include "property/Program.h"

#include <map>

namespace costate::property {

Node atom(std::string text) { return {std::move(text), false, {}}; }
Node atom(int value) { return atom(std::to_string(value)); }
Node list(std::string head, std::vector<Node> children) {
  return {std::move(head), true, std::move(children)};
}

/// How many children stand in front of the statements of a block.
static const std::map<std::string, size_t> &blocks() {
  static const std::map<std::string, size_t> heads = {
      {"program", 1}, {"range", 1}, {"for", 4},  {"while", 2}, {"decay", 2},
      {"if", 1},      {"then", 0},  {"elif", 1}, {"else", 0},  {"called", 2}};
  return heads;
}

bool isBlock(const Node &node) {
  return node.isList && blocks().contains(node.text);
}

size_t firstStatement(const Node &block) {
  if (!isBlock(block))
    throw InvalidProgram("no block: " + block.text);
  return blocks().at(block.text);
}

size_t countStatements(const Node &node) {
  if (!isBlock(node))
    return 1;
  size_t count = 1;
  for (size_t i = firstStatement(node); i < node.children.size(); ++i)
    count += countStatements(node[i]);
  return count;
}

static void print(const Node &node, size_t indent, std::string &out) {
  if (!node.isList) {
    out += node.text;
    return;
  }
  out += "(" + node.text;
  size_t body = isBlock(node) ? firstStatement(node) : node.children.size();
  for (size_t i = 0; i < node.children.size(); ++i) {
    out += i < body ? " " : "\n" + std::string(indent + 2, ' ');
    print(node[i], indent + 2, out);
  }
  out += ")";
}

std::string print(const Node &node) {
  std::string out;
  print(node, 0, out);
  return out;
}

namespace {
class Parser {
public:
  explicit Parser(const std::string &text) : text(text) {}

  std::vector<Node> all() {
    std::vector<Node> nodes;
    for (skip(); at < text.size(); skip())
      nodes.push_back(node());
    return nodes;
  }

private:
  void skip() {
    while (at < text.size() && (isspace(text[at]) || text[at] == ';'))
      if (text[at] == ';')
        at = std::min(text.find('\n', at), text.size());
      else
        ++at;
  }

  std::string word() {
    size_t end = std::min(text.find_first_of("() \n\t;", at), text.size());
    if (end == at)
      throw InvalidProgram("a word is missing");
    std::string result = text.substr(at, end - at);
    at = end;
    return result;
  }

  Node node() {
    if (text[at] != '(')
      return atom(word());
    ++at;
    Node result = list(word());
    for (skip(); at < text.size() && text[at] != ')'; skip())
      result.children.push_back(node());
    if (at == text.size())
      throw InvalidProgram("`)` is missing");
    ++at;
    return result;
  }

  const std::string &text;
  size_t at = 0;
};
} // namespace

std::vector<Node> parse(const std::string &text) { return Parser(text).all(); }

DType typeNamed(const std::string &name) {
  for (DType type :
       {DType::Bool, DType::I8, DType::I16, DType::I32, DType::I64, DType::U8,
        DType::U16, DType::U32, DType::U64, DType::F16, DType::F32, DType::F64})
    if (name == nameOf(type))
      return type;
  throw InvalidProgram("no type " + name);
}

} // namespace costate::property
