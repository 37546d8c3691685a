// SPDX-License-Identifier: Apache-2.0
//
// Grouping of loops on small graphs.
#include "passes/planning/fusion_groups.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace trainc::planning;

namespace {

using Kind = FusionNode::Kind;

class Graph {
public:
  std::vector<FusionNode> nodes;

  int add(Kind kind, int64_t kept, int64_t reduced, std::vector<FusionEdge> inputs) {
    FusionNode node;
    node.kind = kind;
    node.kept = kept;
    node.reduced = reduced;
    node.position = int(nodes.size());
    node.inputs = std::move(inputs);
    nodes.push_back(node);
    return int(nodes.size()) - 1;
  }
  /// Reads node n's value; its tensor has the number of the node.
  FusionEdge read(int n, Alignment alignment) const {
    bool reduces = nodes[n].kind != Kind::pointwise;
    return {n, n, alignment, reduces ? nodes[n].kept : nodes[n].kept * nodes[n].reduced};
  }
  /// Reads a tensor in memory.
  static FusionEdge memory(int leaf, int64_t elements, Alignment alignment = Alignment::identity) {
    return {1000 + leaf, -1, alignment, elements};
  }
  std::vector<std::vector<int>> groups() const {
    std::vector<std::vector<int>> result;
    for (const FusionGroup &group : formGroups(nodes))
      result.push_back(group.nodes);
    return result;
  }
};

using Groups = std::vector<std::vector<int>>;

TEST(FusionGroups, SoftmaxIsOneRowKernel) {
  Graph graph;
  int max = graph.add(Kind::row, 8, 16, {Graph::memory(0, 128)});
  int sum =
      graph.add(Kind::row, 8, 16, {Graph::memory(0, 128), graph.read(max, Alignment::leading)});
  graph.add(Kind::pointwise, 128, 1,
            {Graph::memory(0, 128), graph.read(max, Alignment::leading),
             graph.read(sum, Alignment::leading)});
  EXPECT_EQ(graph.groups(), (Groups{{0, 1, 2}}));
  EXPECT_EQ(formGroups(graph.nodes).front().kind, Kind::row);
}

TEST(FusionGroups, ProducerJoinsItsReduction) {
  Graph graph; // residual sum, then the row's mean
  int sum = graph.add(Kind::pointwise, 128, 1, {Graph::memory(0, 128), Graph::memory(1, 128)});
  graph.add(Kind::row, 8, 16, {graph.read(sum, Alignment::identity)});
  EXPECT_EQ(graph.groups(), (Groups{{0, 1}}));
}

TEST(FusionGroups, TransposedReadSplits) {
  Graph graph;
  int first = graph.add(Kind::pointwise, 128, 1, {Graph::memory(0, 128)});
  graph.add(Kind::pointwise, 128, 1, {graph.read(first, Alignment::other)});
  EXPECT_EQ(graph.groups(), (Groups{{0}, {1}}));
}

TEST(FusionGroups, NoCycleThroughAProduct) {
  Graph graph;
  int before = graph.add(Kind::pointwise, 128, 1, {Graph::memory(0, 128)});
  int product = graph.add(Kind::barrier, 1, 1, {graph.read(before, Alignment::other)});
  FusionEdge result{product, product, Alignment::identity, 128};
  graph.add(Kind::pointwise, 128, 1, {graph.read(before, Alignment::identity), result});
  EXPECT_EQ(graph.groups(), (Groups{{0}, {1}, {2}}));
}

TEST(FusionGroups, ReadersOfOneTensorShareALoop) {
  Graph graph; // gradients of scale and shift
  graph.add(Kind::column, 16, 8, {Graph::memory(0, 128)});
  graph.add(Kind::column, 16, 8, {Graph::memory(0, 128), Graph::memory(1, 128)});
  graph.add(Kind::column, 32, 4, {Graph::memory(0, 128)}); // another shape
  EXPECT_EQ(graph.groups(), (Groups{{0, 1}, {2}}));
}

TEST(FusionGroups, SharingDoesNotBlockALaterJoin) {
  // Cross-entropy: the count of labels must not join the sum of the rows' losses, which would put
  // it behind the row kernel that the gradient, which needs the count, belongs to.
  Graph graph;
  int rows = graph.add(Kind::row, 8, 16, {Graph::memory(0, 128)});
  int count = graph.add(Kind::full, 1, 8, {Graph::memory(1, 8)});
  graph.add(Kind::full, 1, 8, {Graph::memory(1, 8), graph.read(rows, Alignment::identity)});
  FusionEdge scalar{count, count, Alignment::leading, 1};
  scalar.alignment = Alignment::other;
  graph.add(Kind::pointwise, 128, 1,
            {Graph::memory(0, 128), graph.read(rows, Alignment::leading), scalar});
  Groups groups = graph.groups();
  EXPECT_NE(std::find(groups.begin(), groups.end(), std::vector<int>({0, 3})), groups.end());
  EXPECT_EQ(groups.size(), 3u);
}

TEST(FusionGroups, GroupsStayReadable) {
  Graph graph;
  int last = graph.add(Kind::pointwise, 128, 1, {Graph::memory(0, 128)});
  for (int i = 0; i < 9; ++i)
    last = graph.add(Kind::pointwise, 128, 1, {graph.read(last, Alignment::identity)});
  for (FusionNode &node : graph.nodes)
    node.operations = 20;
  for (const std::vector<int> &group : graph.groups())
    EXPECT_LE(group.size(), 3u);
}

TEST(FusionGroups, DistantPassesStayApart) {
  Graph graph; // the second reads the same tensor long after
  graph.add(Kind::pointwise, 128, 1, {Graph::memory(0, 128)});
  graph.add(Kind::pointwise, 128, 1, {Graph::memory(0, 128)});
  graph.nodes[1].position = 5000;
  EXPECT_EQ(graph.groups().size(), 2u);
}

TEST(FusionGroups, OrderRespectsEdges) {
  Graph graph;
  std::vector<FusionNode> &nodes = graph.nodes;
  for (int i = 0; i < 200; ++i) {
    std::vector<FusionEdge> inputs{Graph::memory(i % 7, 128)};
    for (int back : {1, 3, 8})
      if (i >= back)
        inputs.push_back(
            {i - back, i - back, (i * back) % 3 ? Alignment::identity : Alignment::other, 128});
    graph.add(i % 5 == 4 ? Kind::barrier : Kind::pointwise, 128, 1, inputs);
  }
  std::vector<int> position(nodes.size(), -1);
  Groups groups = graph.groups();
  size_t count = 0;
  for (size_t g = 0; g < groups.size(); ++g)
    for (int n : groups[g]) {
      position[n] = int(g);
      ++count;
    }
  EXPECT_EQ(count, nodes.size());
  for (size_t n = 0; n < nodes.size(); ++n)
    for (const FusionEdge &edge : nodes[n].inputs) {
      if (edge.producer < 0)
        continue;
      EXPECT_LE(position[edge.producer], position[n]);
      if (edge.alignment == Alignment::other) {
        EXPECT_LT(position[edge.producer], position[n]);
      }
    }
}

} // namespace
