#include "property/Shrink.h"

#include <set>

namespace costate::property {
namespace {

using Path = std::vector<size_t>;

Node &at(Node &root, const Path &path) {
  Node *node = &root;
  for (size_t step : path)
    node = &node->children.at(step);
  return *node;
}

void collect(const Node &node, Path &path, std::vector<Path> &all) {
  all.push_back(path);
  for (size_t i = 0; i < node.children.size(); ++i) {
    path.push_back(i);
    collect(node[i], path, all);
    path.pop_back();
  }
}

/// Expressions that one of their operands may stand for without harm.
bool mayBecomeOperand(const Node &node) {
  static const std::set<std::string> rigid = {
      "idx",  "load",  "cast",  "select",  "size",   "var",  "set",
      "add",  "scale", "store", "update",  "local",  "get",  "put",
      "bump", "lt",    "le",    "gt",      "ge",     "eq",   "ne",
      "comp", "entry", "vec",   "vset",    "vadd",   "vput", "mat",
      "mset", "madd",  "mput",  "vselect", "mselect"};
  return node.isList && !isBlock(node) && node.children.size() > 0 &&
         !rigid.contains(node.text);
}

/// What might stand in place of a child of `parent`.
std::vector<Node> replacements(const Node &parent, size_t child) {
  const Node &node = parent[child];
  if (isBlock(parent) && child < firstStatement(parent) && !parent.is("if") &&
      !parent.is("elif") && !(parent.is("called") && child == 1))
    return {};
  if (node.is("idx"))
    return {atom(0)};
  if (parent.is("idx"))
    return child == 1 ? std::vector<Node>{atom(1)} : std::vector<Node>{};
  if (node.is("select"))
    return {node[1], node[2]};
  bool statement = isBlock(parent) && child >= firstStatement(parent);
  if (node.is("add") && !statement)
    return node.children;
  if (statement || !node.isList)
    return {};
  std::vector<Node> found;
  if (mayBecomeOperand(node))
    found = node.children;
  found.push_back(atom("0.7"));
  found.push_back(atom("true"));
  found.push_back(atom(1));
  return found;
}

class Shrinker {
public:
  Shrinker(Node program, const std::function<bool(const Node &)> &fails)
      : program(std::move(program)), fails(fails) {}

  Node run() {
    for (bool changed = true; changed;) {
      changed = removeStatements();
      changed |= simplify();
    }
    return program;
  }

private:
  bool accept(Node candidate) {
    if (candidate == program || !fails(candidate))
      return false;
    program = std::move(candidate);
    return true;
  }

  std::vector<Path> places() const {
    std::vector<Path> all;
    Path path;
    collect(program, path, all);
    return all;
  }

  bool removeStatements() {
    bool changed = false;
    std::vector<Path> all = places();
    for (auto path = all.rbegin(); path != all.rend(); ++path) {
      if (path->empty())
        continue;
      Path block(path->begin(), path->end() - 1);
      Node &parent = at(program, block);
      size_t child = path->back();
      if (isBlock(parent) && child >= firstStatement(parent))
        changed |= remove(block, child) || unwrap(block, child);
    }
    return changed;
  }

  bool remove(const Path &block, size_t child) {
    Node candidate = program;
    auto &children = at(candidate, block).children;
    children.erase(children.begin() + long(child));
    return accept(std::move(candidate));
  }

  /// A block's statements in place of the block.
  bool unwrap(const Path &block, size_t child) {
    Node candidate = program;
    auto &children = at(candidate, block).children;
    Node inner = children[child];
    if (inner.is("if") && inner.children.size() > 1)
      inner = inner[1];
    if (!isBlock(inner) || inner.is("for") || inner.is("range"))
      return false;
    auto place = children.erase(children.begin() + long(child));
    children.insert(place, inner.children.begin() + long(firstStatement(inner)),
                    inner.children.end());
    return accept(std::move(candidate));
  }

  bool simplify() {
    bool changed = false;
    std::vector<Path> all = places();
    for (auto path = all.rbegin(); path != all.rend(); ++path) {
      if (path->empty())
        continue;
      Path parent(path->begin(), path->end() - 1);
      for (Node &node : replacements(at(program, parent), path->back())) {
        Node candidate = program;
        at(candidate, *path) = node;
        if (accept(std::move(candidate))) {
          changed = true;
          break;
        }
      }
    }
    return changed;
  }

  Node program;
  const std::function<bool(const Node &)> &fails;
};

} // namespace

Node shrink(Node program, const std::function<bool(const Node &)> &fails) {
  return Shrinker(std::move(program), fails).run();
}

} // namespace costate::property
