#pragma once
/// The cheapest set of edges without which nothing gets from source to sink.

#include <limits>
#include <vector>

namespace costate::sizing {

/// By Dinic's algorithm.
class MinimalCut {
public:
  using Node = unsigned;
  static constexpr Node source = 0, sink = 1;
  /// Of an edge that is never cut.
  static constexpr double unlimited = std::numeric_limits<double>::infinity();

  Node addNode();
  void addEdge(Node from, Node to, double capacity);
  /// Of several cuts the one nearest to the source is taken.
  void solve();
  /// Whether the source still reaches `node`.
  bool isAtSource(Node node) const { return distance[node] >= 0; }

private:
  struct Edge {
    Node to;
    double left; ///< capacity that no flow uses
  };

  bool findDistances();
  bool addFlow();

  std::vector<Edge> edges; ///< the reverse of edge k is edge k ^ 1
  std::vector<std::vector<unsigned>> leaving{{}, {}}; ///< edges of each node
  std::vector<int> distance;  ///< from the source; -1: not reached
  std::vector<unsigned> next; ///< edges before lead nowhere
};

} // namespace costate::sizing
