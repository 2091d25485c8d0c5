#include "sizing/MinimalCut.h"

#include <algorithm>

namespace costate::sizing {

MinimalCut::Node MinimalCut::addNode() {
  leaving.emplace_back();
  return static_cast<Node>(leaving.size() - 1);
}

void MinimalCut::addEdge(Node from, Node to, double capacity) {
  leaving[from].push_back(static_cast<unsigned>(edges.size()));
  edges.push_back({to, capacity});
  leaving[to].push_back(static_cast<unsigned>(edges.size()));
  edges.push_back({from, 0});
}

void MinimalCut::solve() {
  while (findDistances()) {
    next.assign(leaving.size(), 0);
    while (addFlow()) {
    }
  }
}

bool MinimalCut::findDistances() {
  distance.assign(leaving.size(), -1);
  distance[source] = 0;
  std::vector<Node> reached{source};
  for (size_t k = 0; k < reached.size(); ++k)
    for (unsigned edge : leaving[reached[k]]) {
      auto [to, left] = edges[edge];
      if (left == 0 || distance[to] >= 0)
        continue;
      distance[to] = distance[reached[k]] + 1;
      reached.push_back(to);
    }
  return distance[sink] >= 0;
}

/// Along one path of edges that lead away from the source; false: there is
/// none.
bool MinimalCut::addFlow() {
  std::vector<unsigned> path;
  for (Node node = source; node != sink;) {
    if (next[node] == leaving[node].size()) {
      if (path.empty())
        return false;
      node = edges[path.back() ^ 1].to;
      path.pop_back();
      ++next[node];
      continue;
    }
    unsigned edge = leaving[node][next[node]];
    auto [to, left] = edges[edge];
    if (left == 0 || distance[to] != distance[node] + 1) {
      ++next[node];
      continue;
    }
    path.push_back(edge);
    node = to;
  }
  double flow = unlimited;
  for (unsigned edge : path)
    flow = std::min(flow, edges[edge].left);
  for (unsigned edge : path) {
    edges[edge].left -= flow;
    edges[edge ^ 1].left += flow;
  }
  return true;
}

} // namespace costate::sizing
