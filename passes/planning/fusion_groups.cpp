// SPDX-License-Identifier: Apache-2.0
//
// Greedy grouping in program order with ancestor bit sets (fusion_groups.h).
#include "passes/planning/fusion_groups.h"

#include <algorithm>
#include <queue>
#include <unordered_map>

namespace trainc::planning {
namespace {

using Kind = FusionNode::Kind;

class Bits {
public:
  bool test(int i) const { return i / 64 < int(words.size()) && (words[i / 64] >> (i % 64) & 1); }
  void set(int i) {
    if (i / 64 >= int(words.size()))
      words.resize(i / 64 + 1, 0);
    words[i / 64] |= uint64_t(1) << (i % 64);
  }
  void reset(int i) {
    if (i / 64 < int(words.size()))
      words[i / 64] &= ~(uint64_t(1) << (i % 64));
  }
  void merge(const Bits &other) {
    if (words.size() < other.words.size())
      words.resize(other.words.size(), 0);
    for (size_t w = 0; w < other.words.size(); ++w)
      words[w] |= other.words[w];
  }

private:
  std::vector<uint64_t> words;
};

struct Unit : FusionGroup {
  Bits ancestors;
  int operations = 0;
  int lastPosition = 0;
};

class Grouping {
public:
  Grouping(const std::vector<FusionNode> &nodes, const FusionOptions &options)
      : nodes(nodes), options(options), unitOf(nodes.size(), -1) {}

  std::vector<FusionGroup> run() {
    for (size_t n = 0; n < nodes.size(); ++n)
      place(int(n));
    mergeReaders();
    return inOrder();
  }

private:
  void place(int n) {
    const FusionNode &node = nodes[n];
    Bits before;
    std::vector<int> producers;
    for (const FusionEdge &edge : node.inputs)
      if (edge.producer >= 0)
        producers.push_back(unitOf[edge.producer]);
    std::sort(producers.begin(), producers.end(), std::greater<int>());
    producers.erase(std::unique(producers.begin(), producers.end()), producers.end());

    int chosen = -1;
    if (node.kind != Kind::barrier)
      for (int unit : producers)
        if (canJoin(node, unit, producers)) {
          chosen = unit;
          break;
        }
    if (chosen < 0) {
      chosen = int(units.size());
      units.emplace_back();
      units.back().kind = node.kind;
      units.back().kept = node.kept;
      units.back().reduced = node.reduced;
    }
    join(n, chosen, producers);
  }

  void join(int n, int chosen, const std::vector<int> &producers) {
    const FusionNode &node = nodes[n];
    Unit &unit = units[chosen];
    becomeSpace(unit, joinedSpace(unit, node));
    unit.nodes.push_back(n);
    unit.operations += node.operations;
    unit.lastPosition = std::max(unit.lastPosition, node.position);
    unitOf[n] = chosen;
    bool changed = false;
    for (int producer : producers)
      if (producer != chosen && !unit.ancestors.test(producer)) {
        unit.ancestors.merge(units[producer].ancestors);
        unit.ancestors.set(producer);
        changed = true;
      }
    if (changed)
      for (Unit &other : units)
        if (other.ancestors.test(chosen))
          other.ancestors.merge(unit.ancestors);
  }

  // ---- second round: groups that read the same tensors

  void mergeReaders() {
    std::unordered_map<int, std::vector<int>> readers; // of a leaf: latest groups, newest first
    std::vector<int> scalars;
    for (int u = 0; u < int(units.size()); ++u) {
      if (units[u].kind == Kind::barrier)
        continue;
      std::vector<int> candidates = producersOf(u);
      std::vector<int> leaves = leavesOf(u);
      for (int leaf : leaves)
        candidates.insert(candidates.end(), readers[leaf].begin(), readers[leaf].end());
      bool isScalar = units[u].kind == Kind::pointwise && units[u].kept == 1;
      if (isScalar)
        candidates.insert(candidates.end(), scalars.begin(), scalars.end());
      int into = u;
      for (int candidate : candidates)
        if (units[candidate].kind != Kind::barrier && canMerge(candidate, u)) {
          merge(candidate, u);
          into = candidate;
          break;
        }
      for (int leaf : leaves)
        remember(readers[leaf], into);
      if (isScalar)
        remember(scalars, into);
    }
  }

  static void remember(std::vector<int> &list, int unit) {
    list.erase(std::remove(list.begin(), list.end(), unit), list.end());
    list.insert(list.begin(), unit);
    if (list.size() > 6)
      list.pop_back();
  }

  std::vector<int> producersOf(int u) const {
    std::vector<int> list;
    for (int n : units[u].nodes)
      for (const FusionEdge &edge : nodes[n].inputs)
        if (edge.producer >= 0 && unitOf[edge.producer] != u)
          list.push_back(unitOf[edge.producer]);
    std::sort(list.begin(), list.end(), std::greater<int>());
    list.erase(std::unique(list.begin(), list.end()), list.end());
    return list;
  }

  std::vector<int> leavesOf(int u) const {
    std::vector<int> list;
    for (int n : units[u].nodes)
      for (const FusionEdge &edge : nodes[n].inputs)
        if (edge.elements > 1 && edge.alignment == Alignment::identity)
          list.push_back(edge.leaf);
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
    return list;
  }

  /// Whether unit b can become part of unit a.
  bool canMerge(int a, int b) const {
    const Unit &first = units[a], &second = units[b];
    if (a == b || first.nodes.empty() || second.nodes.empty() ||
        first.operations + second.operations > options.largestGroup ||
        std::abs(nodes[second.nodes.front()].position - first.lastPosition) > options.window)
      return false;
    Unit joined;
    static_cast<FusionGroup &>(joined) = joinedSpace(first, second);
    for (const Unit *unit : {&first, &second})
      for (int n : unit->nodes)
        if (!spacesAgree(nodes[n], joined))
          return false;
    for (auto [from, to] : {std::pair(a, b), std::pair(b, a)})
      for (int producer : producersOf(to))
        if (producer != from && units[producer].ancestors.test(from))
          return false;
    for (const Unit *unit : {&first, &second})
      for (int n : unit->nodes)
        for (const FusionEdge &edge : nodes[n].inputs)
          if (edge.producer >= 0 && (unitOf[edge.producer] == a || unitOf[edge.producer] == b) &&
              !staysInside(nodes[n], nodes[edge.producer], edge, joined))
            return false;
    joined.nodes = first.nodes;
    joined.nodes.insert(joined.nodes.end(), second.nodes.begin(), second.nodes.end());
    return cutsNest(joined);
  }

  void merge(int a, int b) {
    Unit &first = units[a], &second = units[b];
    becomeSpace(first, joinedSpace(first, second));
    for (int n : second.nodes)
      unitOf[n] = a;
    first.nodes.insert(first.nodes.end(), second.nodes.begin(), second.nodes.end());
    std::sort(first.nodes.begin(), first.nodes.end());
    first.operations += second.operations;
    first.lastPosition = std::max(first.lastPosition, second.lastPosition);
    first.ancestors.merge(second.ancestors);
    first.ancestors.reset(a);
    first.ancestors.reset(b);
    second.nodes.clear();
    for (Unit &other : units)
      if (other.ancestors.test(a) || other.ancestors.test(b)) {
        other.ancestors.merge(first.ancestors);
        other.ancestors.set(a);
      }
  }

  bool canJoin(const FusionNode &node, int u, const std::vector<int> &producers) const {
    const Unit &unit = units[u];
    if (unit.kind == Kind::barrier || unit.operations + node.operations > options.largestGroup ||
        node.position - unit.lastPosition > options.window || !spacesAgree(node, unit))
      return false;
    for (int producer : producers)
      if (producer != u && units[producer].ancestors.test(u))
        return false;
    for (const FusionEdge &edge : node.inputs)
      if (edge.producer >= 0 && unitOf[edge.producer] == u &&
          !staysInside(node, nodes[edge.producer], edge, unit))
        return false;
    FusionGroup joined = joinedSpace(unit, node);
    joined.nodes = unit.nodes;
    return cutsNest(joined, &node);
  }

  /// The iteration space of a group once `other` (a node or a group) is in it.
  template <typename T> static FusionGroup joinedSpace(const Unit &unit, const T &other) {
    bool becomesRow = unit.kind == Kind::pointwise && other.kind == Kind::row;
    return becomesRow ? FusionGroup{other.kind, other.kept, other.reduced, {}}
                      : FusionGroup{unit.kind, unit.kept, unit.reduced, {}};
  }

  static void becomeSpace(Unit &unit, const FusionGroup &space) {
    unit.kind = space.kind;
    unit.kept = space.kept;
    unit.reduced = space.reduced;
  }

  /// Whether one refinement of the space serves all nodes.
  bool cutsNest(const FusionGroup &joined, const FusionNode *extra = nullptr) const {
    std::vector<int64_t> cuts;
    auto add = [&](const FusionNode &node) {
      bool perRow = joined.kind == Kind::row && node.kind == Kind::pointwise &&
                    node.kept == joined.kept && joined.reduced > 1;
      for (int64_t cut : node.cuts)
        cuts.push_back(perRow ? cut * joined.reduced : cut);
    };
    for (int n : joined.nodes)
      add(nodes[n]);
    if (extra)
      add(*extra);
    std::sort(cuts.begin(), cuts.end());
    for (size_t i = 1; i < cuts.size(); ++i)
      if (cuts[i] % cuts[i - 1] != 0)
        return false;
    return true;
  }

  static bool spacesAgree(const FusionNode &node, const Unit &unit) {
    int64_t points = node.kept * node.reduced, all = unit.kept * unit.reduced;
    switch (unit.kind) {
    case Kind::barrier:
      return false;
    case Kind::pointwise: // becomes a row group with the first reduction
      if (node.kind == Kind::row)
        return points == all || node.kept == all;
      return node.kind == Kind::pointwise && points == all;
    case Kind::row:
      if (node.kind == Kind::row)
        return node.kept == unit.kept && node.reduced == unit.reduced;
      return node.kind == Kind::pointwise && (points == all || points == unit.kept);
    case Kind::column:
    case Kind::full:
      if (node.kind == unit.kind)
        return node.kept == unit.kept && node.reduced == unit.reduced;
      return node.kind == Kind::pointwise && points == unit.kept;
    }
    return false;
  }

  /// Whether the value is at hand where `node` needs it, inside the kernel.
  static bool staysInside(const FusionNode &node, const FusionNode &producer,
                          const FusionEdge &edge, const Unit &unit) {
    int64_t rows = node.kind == Kind::row ? node.kept : unit.kept;
    int64_t all = node.kind == Kind::row ? node.kept * node.reduced : unit.kept * unit.reduced;
    bool whole = producer.kind == Kind::pointwise && producer.kept == all;
    bool nodeWhole = node.kind == Kind::row || (node.kind == Kind::pointwise && node.kept == all);
    if (unit.kind == Kind::column || unit.kind == Kind::full)
      return node.kind == Kind::pointwise && edge.alignment == Alignment::identity;
    if (whole)
      return nodeWhole && edge.alignment == Alignment::identity;
    if (edge.elements != rows)
      return false;
    return edge.alignment == (nodeWhole ? Alignment::leading : Alignment::identity);
  }

  std::vector<FusionGroup> inOrder() {
    // Topological order, the group that ends first in the program first.
    std::vector<std::vector<int>> users(units.size());
    std::vector<int> waiting(units.size(), 0);
    for (size_t u = 0; u < units.size(); ++u) {
      std::vector<int> sources = producersOf(int(u));
      waiting[u] = int(sources.size());
      for (int source : sources)
        users[source].push_back(int(u));
    }
    using Entry = std::pair<int, int>; // first position, unit
    std::priority_queue<Entry, std::vector<Entry>, std::greater<Entry>> ready;
    auto push = [&](int u) { ready.push({nodes[units[u].nodes.front()].position, u}); };
    for (size_t u = 0; u < units.size(); ++u)
      if (waiting[u] == 0 && !units[u].nodes.empty())
        push(int(u));
    std::vector<FusionGroup> groups;
    while (!ready.empty()) {
      int u = ready.top().second;
      ready.pop();
      groups.push_back(units[u]);
      for (int user : users[u])
        if (--waiting[user] == 0)
          push(user);
    }
    return groups;
  }

  const std::vector<FusionNode> &nodes;
  const FusionOptions &options;
  std::vector<int> unitOf;
  std::vector<Unit> units;
};

} // namespace

std::vector<FusionGroup> formGroups(const std::vector<FusionNode> &nodes,
                                    const FusionOptions &options) {
  return Grouping(nodes, options).run();
}

} // namespace trainc::planning
