// SPDX-License-Identifier: Apache-2.0
//
// Borders where few bytes cross, and what a graph of the kind of real models keeps with them.
#include "passes/planning/segments.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

using namespace trainc::planning;

namespace {

struct Builder {
  ForwardGraph graph;

  /// An operation that makes one value; its number.
  int add(int64_t bytes, std::vector<int> reads, bool isNeeded = true) {
    const int value = int(graph.values.size());
    graph.values.push_back({bytes, isNeeded});
    ForwardOperation operation;
    operation.reads = std::move(reads);
    operation.makes = {value};
    operation.time = double(bytes);
    graph.operations.push_back(operation);
    return value;
  }
};

/// Blocks as a transformer has them: the stream of 10 bytes beside wide values.
ForwardGraph blocks(int count) {
  Builder builder;
  int stream = builder.add(10, {});
  for (int i = 0; i < count; ++i) {
    int wide = builder.add(40, {stream});
    int wider = builder.add(40, {wide});
    int narrow = builder.add(10, {wider}, /*isNeeded=*/false);
    stream = builder.add(10, {stream, narrow});
  }
  return builder.graph;
}

TEST(Segments, EndWhereTheStreamAloneGoesOn) {
  const ForwardGraph graph = blocks(4);
  const std::vector<Segments> ways = narrowSegments(graph);
  ASSERT_FALSE(ways.empty());
  EXPECT_EQ(ways.back().begins, (std::vector<int>{5, 9, 13})); // behind each block's sum
  EXPECT_EQ(ways.back().borderBytes, 30);
  EXPECT_EQ(ways.back().innerBytes, 100); // of the first one, with the stream before it
  const std::vector<bool> held = heldBy(ways.back(), graph);
  for (int v = 0; v < int(held.size()); ++v)
    EXPECT_EQ(held[v], v == 4 || v == 8 || v >= 12) << v;
  // At any price the streams stay, and the last block; all that lies between comes again.
  const std::vector<bool> repeated = repeatedOperations(graph, 1e9, held);
  for (int o = 0; o < int(repeated.size()); ++o)
    EXPECT_EQ(repeated[o], !held[o] && o % 4 != 3) << o; // nothing needs the narrow value
}

TEST(Segments, AreFewerWhereMoreMayBeNeededOfOne) {
  const std::vector<Segments> ways = narrowSegments(blocks(16));
  ASSERT_GE(ways.size(), 3u);
  for (size_t i = 1; i < ways.size(); ++i) {
    EXPECT_LE(ways[i].innerBytes, ways[i - 1].innerBytes);
    EXPECT_GE(ways[i].begins.size(), ways[i - 1].begins.size());
  }
  EXPECT_EQ(ways.back().begins.size(), 15u);
}

TEST(Segments, BordersHoldWhatSkipsThem) {
  // A U-Net: each level of the way down is read again on the way up.
  Builder builder;
  std::vector<int> levels;
  int at = builder.add(20, {});
  for (int i = 0; i < 3; ++i) {
    at = builder.add(80, {at});
    levels.push_back(at = builder.add(20, {at}));
  }
  for (int i = 3; i-- > 0;) {
    at = builder.add(80, {at, levels[i]});
    at = builder.add(20, {at});
  }
  builder.add(1, {at});
  const std::vector<Segments> ways = narrowSegments(builder.graph);
  ASSERT_FALSE(ways.empty());
  for (const Segments &way : ways) {
    const std::vector<bool> held = heldBy(way, builder.graph);
    const std::vector<bool> repeated = repeatedOperations(builder.graph, 1e9, held);
    // What a segment repeats needs nothing that another one repeats.
    auto segmentOf = [&](int o) {
      return std::upper_bound(way.begins.begin(), way.begins.end(), o) - way.begins.begin();
    };
    for (int o = 0; o < int(repeated.size()); ++o)
      for (int v : builder.graph.operations[o].reads)
        if (repeated[o] && repeated[v]) {
          EXPECT_EQ(segmentOf(o), segmentOf(v)) << o;
        }
  }
}

TEST(Segments, NoneCrossesWhatCannotBeKept) {
  ForwardGraph graph = blocks(3);
  graph.values[4].mayBeKept = false; // the first block's sum
  const std::vector<Segments> ways = narrowSegments(graph);
  ASSERT_FALSE(ways.empty());
  for (const Segments &way : ways)
    EXPECT_FALSE(std::count(way.begins.begin(), way.begins.end(), 5));
}

TEST(Segments, AGraphWithoutNarrowPlacesHasNone) {
  EXPECT_TRUE(narrowSegments({}).empty());
  Builder same;
  for (int i = 0, at = -1; i < 8; ++i)
    at = same.add(10, i == 0 ? std::vector<int>() : std::vector<int>{at});
  EXPECT_TRUE(narrowSegments(same.graph).empty());
}

/// Least bytes of borders within a bound, by every choice of narrow places.
TEST(Segments, BordersAreTheCheapestOfTheirBound) {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    Builder builder;
    int at = builder.add(1 + int64_t(random() % 20), {});
    for (int i = 0; i < 6; ++i) {
      const int wide = builder.add(100 + int64_t(random() % 200), {at});
      at = builder.add(1 + int64_t(random() % 20), {wide});
    }
    auto needed = [&](int first, int last) {
      int64_t bytes = 0;
      for (int v = first; v < last; ++v)
        bytes += builder.graph.values[v].bytes;
      return bytes;
    };
    const std::vector<Segments> ways = narrowSegments(builder.graph);
    ASSERT_FALSE(ways.empty());
    for (const Segments &way : ways) {
      for (int choice = 0; choice < 1 << 5; ++choice) {
        int64_t bytes = 0, most = 0;
        int begin = 0;
        for (int i = 0; i < 5; ++i)
          if (choice >> i & 1) {
            const int place = 2 * i + 3; // behind the narrow value of block i
            bytes += builder.graph.values[place - 1].bytes;
            most = std::max(most, needed(begin, place));
            begin = place;
          }
        most = std::max(most, needed(begin, int(builder.graph.values.size())));
        EXPECT_TRUE(most > way.innerBytes || bytes >= way.borderBytes);
      }
    }
  }
}

} // namespace
