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
  FusionOptions options;

  int add(Kind kind, int64_t kept, int64_t reduced, std::vector<FusionEdge> inputs) {
    FusionNode node;
    node.kind = kind;
    node.kept = kept;
    node.reduced = reduced;
    node.position = int(nodes.size());
    node.bytes = node.held = 4 * (kind == Kind::pointwise ? kept * reduced : kept);
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
    auto formed = formGroups(nodes, options);
    for (const FusionGroup &group : *formed)
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
  EXPECT_EQ(formGroups(graph.nodes)->front().kind, Kind::row);
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

TEST(FusionGroups, ARepetitionJoinsNothingThatStandsBeforeTheFirst) {
  // Together they would run where the repeated product is there, and take it to the forward pass.
  for (bool isRepetition : {false, true}) {
    Graph graph;
    int forward = graph.add(Kind::pointwise, 128, 1, {Graph::memory(0, 128)});
    graph.add(Kind::barrier, 1, 1, {graph.read(forward, Alignment::other)});
    int product = graph.add(Kind::barrier, 1, 1, {});
    int repeated = graph.add(Kind::pointwise, 128, 1,
                             {Graph::memory(0, 128), {product, product, Alignment::identity, 128}});
    graph.nodes[repeated].earliest = isRepetition ? product : 0;
    const Groups apart = {{0}, {1}, {2}, {3}};
    EXPECT_EQ(graph.groups() == apart, isRepetition);
  }
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
  // it after the row kernel that the gradient, which needs the count, belongs to.
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

TEST(FusionGroups, KernelsHoldSoManyInstructions) {
  Graph graph;
  int last = graph.add(Kind::pointwise, 128, 1, {Graph::memory(0, 128)});
  for (int i = 0; i < 9; ++i)
    last = graph.add(Kind::pointwise, 128, 1, {graph.read(last, Alignment::identity)});
  for (FusionNode &node : graph.nodes)
    node.flops = 80;
  EXPECT_EQ(graph.groups(), (Groups{{0, 1, 2}, {3, 4, 5}, {6, 7, 8}, {9}}));
}

TEST(FusionGroups, KernelsHoldSoManyScalars) {
  // Ten values that are all read once more at the end: none can be let go before.
  Graph graph;
  for (int i = 0; i < 10; ++i)
    graph.add(Kind::pointwise, 128, 1, {Graph::memory(0, 128)});
  for (int i = 0; i < 10; ++i)
    graph.add(Kind::pointwise, 128, 1, {Graph::memory(0, 128), graph.read(i, Alignment::identity)});
  graph.options.launchBytes = 0;
  EXPECT_EQ(graph.groups().size(), 1u);
  graph.options.liveScalars = 8;
  EXPECT_GT(graph.groups().size(), 1u);
}

TEST(FusionGroups, DistantBranchesJoin) {
  // The second reads the same tensor long after, and what it makes is small or used there.
  Graph graph;
  graph.add(Kind::row, 8, 16, {Graph::memory(0, 128)});
  graph.add(Kind::row, 8, 16, {Graph::memory(0, 128)});
  graph.nodes[1].position = 500000;
  graph.nodes[0].isReturned = graph.nodes[1].isReturned = true;
  graph.nodes[0].held = graph.nodes[1].held = 0; // gradients have places of their own
  EXPECT_EQ(graph.groups(), (Groups{{0, 1}}));
}

TEST(FusionGroups, MemoryHeldLongerIsACost) {
  // A mask for the backward pass could be computed from x as soon as the forward pass reads it,
  // but would then be alive at the peak.
  Graph graph;
  const int64_t elements = 1 << 20;
  auto points = [&](std::vector<FusionEdge> inputs) {
    return graph.add(Kind::pointwise, elements, 1, std::move(inputs));
  };
  FusionEdge x = Graph::memory(0, elements);
  int activation = points({x});
  int forward = graph.add(Kind::barrier, 1, 1, {graph.read(activation, Alignment::other)});
  graph.nodes[forward].bytes = graph.nodes[forward].held = 4 * elements;
  FusionEdge product{forward, forward, Alignment::identity, elements};
  int gradient = graph.add(Kind::barrier, 1, 1, {product});
  graph.nodes[gradient].bytes = graph.nodes[gradient].held = 4 * elements;
  int mask = points({x});
  FusionEdge dy{gradient, gradient, Alignment::other, elements};
  graph.add(Kind::barrier, 1, 1, {graph.read(mask, Alignment::other), dy});
  EXPECT_EQ(graph.groups().size(), 5u);
  graph.options.peakPrice = 0;
  EXPECT_EQ(graph.groups().size(), 4u);
}

TEST(FusionGroups, MostBytesSavedComesFirst) {
  // The last node can join either producer, not both: one of them is transposed in between.
  Graph graph;
  int first = graph.add(Kind::pointwise, 128, 1, {Graph::memory(0, 128), Graph::memory(1, 128)});
  int turned = graph.add(Kind::pointwise, 128, 1, {graph.read(first, Alignment::other)});
  int last = graph.add(
      Kind::pointwise, 128, 1,
      {graph.read(turned, Alignment::identity), Graph::memory(0, 128), Graph::memory(1, 128)});
  (void)last;
  EXPECT_EQ(graph.groups(), (Groups{{0}, {1, 2}})); // saves a value written and read
  graph.nodes[turned].isReturned = true;            // written all the same
  graph.nodes[last].inputs[0].bytes = 64;           // and half of it read
  EXPECT_EQ(graph.groups(), (Groups{{0}, {1, 2}})); // the first cannot be joined: a cycle
}

TEST(FusionGroups, ColumnReductionsTakeWhatTheyRead) {
  Graph graph; // the gradient of an activation, of which only the bias's and scale's want sums
  int dz = graph.add(Kind::pointwise, 128, 1, {Graph::memory(0, 128), Graph::memory(1, 128)});
  graph.add(Kind::column, 16, 8, {graph.read(dz, Alignment::identity)});
  graph.add(Kind::column, 16, 8, {graph.read(dz, Alignment::identity), Graph::memory(2, 128)});
  EXPECT_EQ(graph.groups(), (Groups{{0, 1, 2}}));
  EXPECT_EQ(formGroups(graph.nodes)->front().kind, Kind::column);
  graph.nodes[dz].isReturned = true; // stored as well: then only where it saves enough
  EXPECT_EQ(graph.groups(), (Groups{{0}, {1, 2}}));
  graph.options.launchBytes = 64;
  EXPECT_EQ(graph.groups(), (Groups{{0, 1, 2}}));
}

TEST(FusionGroups, CycleIsRefused) {
  Graph graph;
  graph.add(Kind::pointwise, 128, 1, {{1, 1, Alignment::identity, 128}});
  graph.add(Kind::pointwise, 128, 1, {{0, 0, Alignment::identity, 128}});
  EXPECT_FALSE(formGroups(graph.nodes).has_value());
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
