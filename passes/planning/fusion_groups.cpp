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
  /// True where something was added.
  bool merge(const Bits &other) {
    if (words.size() < other.words.size())
      words.resize(other.words.size(), 0);
    bool changed = false;
    for (size_t w = 0; w < other.words.size(); ++w) {
      changed |= (other.words[w] & ~words[w]) != 0;
      words[w] |= other.words[w];
    }
    return changed;
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
    if (node.kind != Kind::barrier) {
      std::vector<int> candidates = producers;
      for (const FusionEdge &edge : node.inputs)
        if (edge.elements > 1 && edge.alignment == Alignment::identity)
          for (int unit : readers[edge.leaf])
            if (std::find(candidates.begin(), candidates.end(), unit) == candidates.end())
              candidates.push_back(unit);
      for (int unit : candidates)
        if (canJoin(node, unit, producers)) {
          chosen = unit;
          break;
        }
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
    if (unit.kind == Kind::pointwise && node.kind == Kind::row) {
      unit.kind = Kind::row;
      unit.kept = node.kept;
      unit.reduced = node.reduced;
    }
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
    for (const FusionEdge &edge : node.inputs) {
      std::vector<int> &list = readers[edge.leaf];
      if (node.kind != Kind::barrier && std::find(list.begin(), list.end(), chosen) == list.end()) {
        list.insert(list.begin(), chosen);
        if (list.size() > 6)
          list.pop_back();
      }
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
      std::vector<int> sources;
      for (int n : units[u].nodes)
        for (const FusionEdge &edge : nodes[n].inputs)
          if (edge.producer >= 0 && unitOf[edge.producer] != int(u))
            sources.push_back(unitOf[edge.producer]);
      std::sort(sources.begin(), sources.end());
      sources.erase(std::unique(sources.begin(), sources.end()), sources.end());
      waiting[u] = int(sources.size());
      for (int source : sources)
        users[source].push_back(int(u));
    }
    using Entry = std::pair<int, int>; // first position, unit
    std::priority_queue<Entry, std::vector<Entry>, std::greater<Entry>> ready;
    auto push = [&](int u) { ready.push({nodes[units[u].nodes.front()].position, u}); };
    for (size_t u = 0; u < units.size(); ++u)
      if (waiting[u] == 0)
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
  std::unordered_map<int, std::vector<int>> readers; // of a leaf: latest groups, newest first
};

} // namespace

std::vector<FusionGroup> formGroups(const std::vector<FusionNode> &nodes,
                                    const FusionOptions &options) {
  return Grouping(nodes, options).run();
}

} // namespace trainc::planning
