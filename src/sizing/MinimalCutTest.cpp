#include "sizing/MinimalCut.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace costate::sizing {
namespace {

struct Edge {
  MinimalCut::Node from, to;
  double capacity;
};

/// Of the edges from `atSource`, bits by node, to the other nodes.
double capacityOf(const std::vector<Edge> &edges, unsigned atSource) {
  double sum = 0;
  for (const Edge &edge : edges)
    if ((atSource >> edge.from & 1) && !(atSource >> edge.to & 1))
      sum += edge.capacity;
  return sum;
}

TEST(MinimalCut, IsTheCheapestOfAll) {
  constexpr unsigned nodes = 8;
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    std::vector<Edge> edges;
    MinimalCut cut;
    for (unsigned k = 2; k < nodes; ++k)
      cut.addNode();
    for (int k = 0; k < 20; ++k) {
      Edge edge{unsigned(random() % nodes), unsigned(random() % nodes),
                double(random() % 10)};
      if (edge.from == edge.to)
        continue;
      edges.push_back(edge);
      cut.addEdge(edge.from, edge.to, edge.capacity);
    }
    cut.solve();
    double least = MinimalCut::unlimited;
    unsigned nearest = 0, found = 0;
    for (unsigned set = 0; set < 1u << nodes; ++set) {
      if (!(set & 1) || (set & 2))
        continue;
      double capacity = capacityOf(edges, set);
      if (capacity < least)
        nearest = set;
      else if (capacity == least)
        nearest &= set;
      least = std::min(least, capacity);
    }
    for (unsigned k = 0; k < nodes; ++k)
      found |= unsigned(cut.isAtSource(k)) << k;
    EXPECT_EQ(capacityOf(edges, found), least);
    EXPECT_EQ(found, nearest);
  }
}

TEST(MinimalCut, UnlimitedEdgesStay) {
  MinimalCut cut;
  auto a = cut.addNode(), b = cut.addNode();
  cut.addEdge(MinimalCut::source, a, MinimalCut::unlimited);
  cut.addEdge(a, b, 7);
  cut.addEdge(b, MinimalCut::sink, MinimalCut::unlimited);
  cut.solve();
  EXPECT_TRUE(cut.isAtSource(a));
  EXPECT_FALSE(cut.isAtSource(b));
}

} // namespace
} // namespace costate::sizing
