#include "property/Shrink.h"

#include <algorithm>
#include <set>

namespace costate::property {
namespace {

using Path = std::vector<size_t>;

template <class N> N &at(N &root, const Path &path) {
  N *node = &root;
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
  Shrinker(Node program, const FirstThatFails &firstThatFails, size_t together)
      : program(std::move(program)), firstThatFails(firstThatFails),
        together(together) {}

  Node run() {
    for (bool changed = true; changed;) {
      changed = shrink(&Shrinker::withoutStatement);
      changed |= shrink(&Shrinker::simplified);
    }
    return program;
  }

private:
  /// What the program might become at a place.
  using Smaller = std::vector<Node> (Shrinker::*)(const Path &) const;

  /// At each place but the root, from the last one on: what stands at those
  /// before it stays where it is.
  bool shrink(Smaller smaller) {
    bool changed = false;
    std::vector<Path> all = places();
    for (size_t left = all.size(); left > 1;) {
      std::vector<Node> candidates;
      std::vector<size_t> origins;
      for (; left > 1 && candidates.size() < together; --left)
        for (Node &candidate : (this->*smaller)(all[left - 1]))
          if (candidate != program) {
            candidates.push_back(std::move(candidate));
            origins.push_back(left - 1);
          }
      std::optional<size_t> found = firstThatFails(candidates);
      if (!found)
        continue;
      program = std::move(candidates[*found]);
      left = origins[*found];
      changed = true;
    }
    return changed;
  }

  std::vector<Path> places() const {
    std::vector<Path> all;
    Path path;
    collect(program, path, all);
    return all;
  }

  std::vector<Node> withoutStatement(const Path &path) const {
    Path block(path.begin(), path.end() - 1);
    const Node &parent = at(program, block);
    size_t child = path.back();
    if (!isBlock(parent) || child < firstStatement(parent))
      return {};
    std::vector<Node> found = {spliced(block, child, {})};
    Node inner = parent[child];
    if (inner.is("if") && inner.children.size() > 1)
      inner = inner[1];
    if (isBlock(inner) && !inner.is("for") && !inner.is("range"))
      found.push_back(
          spliced(block, child,
                  {inner.children.begin() + long(firstStatement(inner)),
                   inner.children.end()}));
    return found;
  }

  /// With statements in place of a child of `block`.
  Node spliced(const Path &block, size_t child,
               const std::vector<Node> &statements) const {
    Node candidate = program;
    auto &children = at(candidate, block).children;
    auto place = children.erase(children.begin() + long(child));
    children.insert(place, statements.begin(), statements.end());
    return candidate;
  }

  std::vector<Node> simplified(const Path &path) const {
    Path parent(path.begin(), path.end() - 1);
    std::vector<Node> found;
    for (Node &node : replacements(at(program, parent), path.back())) {
      found.push_back(program);
      at(found.back(), path) = std::move(node);
    }
    return found;
  }

  Node program;
  const FirstThatFails &firstThatFails;
  size_t together;
};

} // namespace

Node shrink(Node program, const std::function<bool(const Node &)> &fails) {
  auto first = [&](const std::vector<Node> &programs) -> std::optional<size_t> {
    auto found = std::ranges::find_if(programs, fails);
    if (found == programs.end())
      return std::nullopt;
    return found - programs.begin();
  };
  return shrink(std::move(program), first, 1);
}

Node shrink(Node program, const FirstThatFails &firstThatFails,
            size_t together) {
  return Shrinker(std::move(program), firstThatFails, together).run();
}

} // namespace costate::property
