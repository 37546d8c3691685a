// SPDX-License-Identifier: Apache-2.0
//
// Greedy grouping by bytes saved (fusion_groups.h).
#include "passes/planning/fusion_groups.h"
#include "passes/planning/acyclic_units.h"
#include "passes/planning/fusion_spaces.h"
#include "passes/planning/live_bytes.h"

#include <algorithm>
#include <queue>
#include <unordered_map>
#include <unordered_set>

namespace trainc::planning {
namespace {

using Kind = FusionNode::Kind;

constexpr size_t rememberedReaders = 6; // groups per tensor that a later reader is tried with
constexpr size_t lookedAtReaders = 64;  // of a value; with more it counts as alive to the last

/// In order, each once.
template <typename Before = std::less<int>>
void sortUnique(std::vector<int> &list, Before before = {}) {
  std::sort(list.begin(), list.end(), before);
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

std::vector<std::vector<int>> sourcesOf(const std::vector<FusionNode> &nodes) {
  std::vector<std::vector<int>> sources(nodes.size());
  for (size_t n = 0; n < nodes.size(); ++n) {
    for (const FusionEdge &edge : nodes[n].inputs)
      if (edge.producer >= 0)
        sources[n].push_back(edge.producer);
    sortUnique(sources[n]);
  }
  return sources;
}

int positionsOf(const std::vector<FusionNode> &nodes) {
  int last = 0;
  for (const FusionNode &node : nodes)
    last = std::max(last, node.position);
  return last + 1;
}

class Grouping {
public:
  Grouping(const std::vector<FusionNode> &nodes, const FusionOptions &options)
      : nodes(nodes), options(options), sources(sourcesOf(nodes)),
        units(sources, options.searchLimit), positions(positionsOf(nodes)), live(positions),
        lives(nodes.size()) {
    for (const FusionNode &node : nodes) {
      spaces.push_back({node.kind, node.kept, node.reduced, {}});
      runsAt.push_back(node.position);
    }
    for (size_t n = 0; n < nodes.size(); ++n)
      setLife(int(n), lifeOf(int(n)));
  }

  std::vector<FusionGroup> run() {
    for (size_t n = 0; n < nodes.size(); ++n)
      if (nodes[n].kind != Kind::barrier)
        joinBest(producersOf(int(n)), int(n));
    mergeReaders();
    absorbProducers();
    return inOrder();
  }

private:
  // When a value is in memory, as positions of the program; no bytes where it never is.
  struct Life {
    int first = 0, last = 0;
    int64_t bytes = 0;
    bool operator==(const Life &other) const = default;
  };

  int joinBest(const std::vector<int> &candidates, int unit);
  void mergeReaders();
  void absorbProducers();
  bool tryJoin(int a, int b, double gain);
  bool fits(int a, int b, const FusionGroup &joined) const;
  bool edgesFit(int n, int a, int b, const FusionGroup &joined) const;
  bool readInside(int u, int reader) const;
  bool scalarsFit(const FusionGroup &joined) const;
  double savedBytes(int a, int b) const;
  bool worthItsMemory(int a, int b, double gain, std::vector<std::pair<int, Life>> &before);
  int startOf(int a, int b) const;
  Life lifeOf(int value) const;
  void setLife(int value, const Life &life);
  std::vector<int> producersOf(int unit) const;
  std::vector<int> leavesOf(int unit) const;
  std::vector<FusionGroup> inOrder() const;

  bool isInside(int node, int a, int b) const {
    int unit = units.unitOf(node);
    return unit == a || unit == b;
  }

  const std::vector<FusionNode> &nodes;
  const FusionOptions &options;
  std::vector<std::vector<int>> sources; // by node
  AcyclicUnits units;
  std::vector<FusionGroup> spaces; // by unit, without nodes
  std::vector<int> runsAt;         // by unit: position at which all that it reads is there
  int positions;
  LiveBytes live;
  std::vector<Life> lives; // by node
  // A join that is being tried: unit b counts as part of a.
  int tried = -1, triedInto = -1;
  bool absorbing = false; // the third round
};

/// Units that compute what the unit reads, latest first.
std::vector<int> Grouping::producersOf(int unit) const {
  std::vector<int> list;
  for (int n : units.nodesOf(unit))
    for (int source : sources[n])
      if (units.unitOf(source) != unit)
        list.push_back(units.unitOf(source));
  sortUnique(list, std::greater<int>());
  return list;
}

/// Tensors that the unit reads in the order of its points.
std::vector<int> Grouping::leavesOf(int unit) const {
  std::vector<int> list;
  for (int n : units.nodesOf(unit))
    for (const FusionEdge &edge : nodes[n].inputs)
      if (edge.elements > 1 && edge.alignment == Alignment::identity)
        list.push_back(edge.leaf);
  sortUnique(list);
  return list;
}

/// Joins the unit to the candidate from which it gains most; the unit that it is then part of.
int Grouping::joinBest(const std::vector<int> &candidates, int unit) {
  std::vector<std::pair<double, int>> ranked; // of equal gains the first candidate
  for (int candidate : candidates)
    if (candidate != unit && spaces[candidate].kind != Kind::barrier &&
        !units.nodesOf(candidate).empty())
      ranked.push_back({savedBytes(candidate, unit), candidate});
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto &x, const auto &y) { return x.first > y.first; });
  for (auto [gain, candidate] : ranked)
    if (tryJoin(candidate, unit, gain))
      return candidate;
  return unit;
}

// ---- second round: groups that read the same tensors

void Grouping::mergeReaders() {
  std::unordered_map<int, std::vector<int>> readers; // of a leaf: latest groups, newest first
  std::vector<int> scalars;
  auto remember = [](std::vector<int> &list, int unit) {
    std::erase(list, unit);
    list.insert(list.begin(), unit);
    if (list.size() > rememberedReaders)
      list.pop_back();
  };
  for (int u = 0; u < int(nodes.size()); ++u) {
    if (spaces[u].kind == Kind::barrier || units.nodesOf(u).empty())
      continue;
    std::vector<int> candidates = producersOf(u), leaves = leavesOf(u);
    for (int leaf : leaves)
      candidates.insert(candidates.end(), readers[leaf].begin(), readers[leaf].end());
    bool isScalar = spaces[u].kind == Kind::pointwise && spaces[u].kept == 1;
    if (isScalar)
      candidates.insert(candidates.end(), scalars.begin(), scalars.end());
    int into = joinBest(candidates, u);
    for (int leaf : leaves)
      remember(readers[leaf], into);
    if (isScalar)
      remember(scalars, into);
  }
}

// ---- third round: column and full reductions take what they read

void Grouping::absorbProducers() {
  absorbing = true;
  for (int u = int(nodes.size()) - 1; u >= 0; --u) {
    if (spaces[u].kind != Kind::pointwise || units.nodesOf(u).empty())
      continue;
    std::vector<int> readers; // latest first
    for (int n : units.nodesOf(u))
      for (int reader : units.readersOf(n))
        if (Kind kind = spaces[units.unitOf(reader)].kind;
            readers.size() < rememberedReaders && (kind == Kind::column || kind == Kind::full))
          readers.push_back(units.unitOf(reader));
    sortUnique(readers, std::greater<int>());
    // Such a kernel cannot write over what it reads: where little is moved, memory counts more.
    std::erase_if(readers, [&](int reader) {
      return !readInside(u, reader) && savedBytes(reader, u) < 2 * options.launchBytes;
    });
    joinBest(readers, u);
  }
}

// ---- what a join is worth

double Grouping::savedBytes(int a, int b) const {
  double saved = options.launchBytes;
  std::unordered_map<int, int64_t> readByA;
  for (int n : units.nodesOf(a))
    for (const FusionEdge &edge : nodes[n].inputs)
      if (edge.alignment != Alignment::other)
        readByA[edge.leaf] = edge.bytes;
  std::unordered_set<int> counted;
  auto readInside = [&](const FusionEdge &edge) {
    if (!counted.insert(edge.leaf).second)
      return;
    saved += double(edge.bytes);
    const std::vector<int> &readers = units.readersOf(edge.producer);
    bool onlyInside = !nodes[edge.producer].isReturned && readers.size() <= lookedAtReaders &&
                      std::all_of(readers.begin(), readers.end(),
                                  [&](int reader) { return isInside(reader, a, b); });
    saved += onlyInside ? double(nodes[edge.producer].bytes) : 0;
  };
  for (auto [from, to] : {std::pair(a, b), std::pair(b, a)})
    for (int n : units.nodesOf(to))
      for (const FusionEdge &edge : nodes[n].inputs) {
        if (edge.producer >= 0 && units.unitOf(edge.producer) == from)
          readInside(edge);
        else if (to == b && edge.alignment != Alignment::other && readByA.count(edge.leaf) &&
                 counted.insert(edge.leaf).second)
          saved += double(std::min(edge.bytes, readByA[edge.leaf]));
      }
  return saved;
}

/// Position at which all that the joined unit reads is there.
int Grouping::startOf(int a, int b) const {
  int start = nodes[std::min(units.nodesOf(a).front(), units.nodesOf(b).front())].position;
  for (int unit : {a, b})
    for (int n : units.nodesOf(unit))
      for (int source : sources[n])
        if (!isInside(source, a, b))
          start = std::max(start, runsAt[units.unitOf(source)]);
  return start;
}

Grouping::Life Grouping::lifeOf(int value) const {
  const FusionNode &node = nodes[value];
  if (node.held == 0)
    return {};
  auto unitOf = [&](int n) {
    int unit = units.unitOf(n);
    return unit == tried ? triedInto : unit;
  };
  int own = unitOf(value);
  Life life{runsAt[own], runsAt[own], node.isReturned ? node.held : 0};
  const std::vector<int> &readers = units.readersOf(value);
  if (node.isReturned || readers.size() > lookedAtReaders)
    life = {life.first, node.isReturned ? positions - 1 : nodes[readers.back()].position,
            node.held};
  else
    for (int reader : readers)
      if (int unit = unitOf(reader); unit != own)
        life = {life.first, std::max(life.last, runsAt[unit]), node.held};
  life.last = std::max(life.first, life.last);
  return life;
}

void Grouping::setLife(int value, const Life &life) {
  live.add(lives[value].first, lives[value].last, -lives[value].bytes);
  live.add(life.first, life.last, life.bytes);
  lives[value] = life;
}

/// Updates the lives of all values concerned; false where they cost more than the gain.
bool Grouping::worthItsMemory(int a, int b, double gain,
                              std::vector<std::pair<int, Life>> &before) {
  int64_t peak = live.peak();
  std::vector<int> concerned;
  for (int unit : {a, b})
    for (int n : units.nodesOf(unit)) {
      concerned.push_back(n);
      concerned.insert(concerned.end(), sources[n].begin(), sources[n].end());
    }
  sortUnique(concerned);
  for (int value : concerned)
    if (Life life = lifeOf(value); life != lives[value]) {
      before.push_back({value, lives[value]});
      setLife(value, life);
    }
  return options.peakPrice * double(live.peak() - peak) < gain;
}

// ---- whether a join is possible

/// Unit b becomes part of unit a, where that is possible and worth the memory that it costs.
bool Grouping::tryJoin(int a, int b, double gain) {
  FusionGroup joined = joinedSpace(spaces[a], spaces[b]);
  joined.nodes.resize(units.nodesOf(a).size() + units.nodesOf(b).size());
  std::merge(units.nodesOf(a).begin(), units.nodesOf(a).end(), units.nodesOf(b).begin(),
             units.nodesOf(b).end(), joined.nodes.begin());
  if (!fits(a, b, joined))
    return false;
  const int first = nodes[joined.nodes.front()].position;
  if (std::any_of(joined.nodes.begin(), joined.nodes.end(),
                  [&](int n) { return first < nodes[n].earliest; }))
    return false;
  int oldStart = runsAt[a];
  runsAt[a] = startOf(a, b);
  tried = b;
  triedInto = a;
  std::vector<std::pair<int, Life>> before;
  bool done = worthItsMemory(a, b, gain, before) && units.join(a, b);
  tried = triedInto = -1;
  if (!done) {
    runsAt[a] = oldStart;
    for (const auto &[value, life] : before)
      setLife(value, life);
    return false;
  }
  joined.nodes.clear();
  spaces[a] = joined;
  return true;
}

bool Grouping::fits(int a, int b, const FusionGroup &joined) const {
  double flops = 0;
  for (int n : joined.nodes)
    flops += nodes[n].flops;
  return flops <= options.largestKernel &&
         std::all_of(joined.nodes.begin(), joined.nodes.end(),
                     [&](int n) {
                       return spaceAgrees(nodes[n], joined) && edgesFit(n, a, b, joined) &&
                              (!isAtEveryPoint(nodes[n], joined) || absorbing);
                     }) &&
         cutsNest(nodes, joined) && scalarsFit(joined);
}

bool Grouping::edgesFit(int n, int a, int b, const FusionGroup &joined) const {
  return std::all_of(nodes[n].inputs.begin(), nodes[n].inputs.end(), [&](const FusionEdge &edge) {
    return edge.producer < 0 || !isInside(edge.producer, a, b) ||
           staysInside(nodes[n], nodes[edge.producer], edge, joined);
  });
}

/// Whether nobody but units `u` and `reader` reads what `u` computes.
bool Grouping::readInside(int u, int reader) const {
  for (int n : units.nodesOf(u)) {
    const std::vector<int> &readers = units.readersOf(n);
    if (nodes[n].isReturned || !std::all_of(readers.begin(), readers.end(),
                                            [&](int user) { return isInside(user, u, reader); }))
      return false;
  }
  return true;
}

/// Values computed and still to be used, and what the next expression needs, at once.
bool Grouping::scalarsFit(const FusionGroup &joined) const {
  std::unordered_map<int, size_t> lastUse; // of a value inside: which of the nodes
  for (size_t i = 0; i < joined.nodes.size(); ++i)
    for (int source : sources[joined.nodes[i]])
      lastUse[source] = i;
  std::vector<int> ending(joined.nodes.size(), 0);
  int carried = 0;
  for (size_t i = 0; i < joined.nodes.size(); ++i) {
    if (i > 0 && carried + nodes[joined.nodes[i]].scalars > options.liveScalars)
      return false;
    carried -= ending[i];
    if (auto use = lastUse.find(joined.nodes[i]); use != lastUse.end()) {
      ++carried;
      ++ending[use->second];
    }
  }
  return true;
}

/// Topological order, the group that begins first in the program first.
std::vector<FusionGroup> Grouping::inOrder() const {
  std::vector<std::vector<int>> users(nodes.size());
  std::vector<int> waiting(nodes.size(), 0);
  for (int u = 0; u < int(nodes.size()); ++u)
    for (int producer : producersOf(u)) {
      users[producer].push_back(u);
      ++waiting[u];
    }
  using Entry = std::pair<int, int>; // first position, unit
  std::priority_queue<Entry, std::vector<Entry>, std::greater<Entry>> ready;
  auto push = [&](int u) { ready.push({nodes[units.nodesOf(u).front()].position, u}); };
  for (int u = 0; u < int(nodes.size()); ++u)
    if (waiting[u] == 0 && !units.nodesOf(u).empty())
      push(u);
  std::vector<FusionGroup> groups;
  while (!ready.empty()) {
    int u = ready.top().second;
    ready.pop();
    groups.push_back(spaces[u]);
    groups.back().nodes = units.nodesOf(u);
    for (int user : users[u])
      if (--waiting[user] == 0)
        push(user);
  }
  return groups;
}

} // namespace

std::optional<std::vector<FusionGroup>> formGroups(const std::vector<FusionNode> &nodes,
                                                   const FusionOptions &options) {
  for (size_t n = 0; n < nodes.size(); ++n)
    for (const FusionEdge &edge : nodes[n].inputs)
      if (edge.producer >= int(n))
        return std::nullopt;
  std::vector<FusionGroup> groups = Grouping(nodes, options).run();
  size_t grouped = 0;
  for (const FusionGroup &group : groups)
    grouped += group.nodes.size();
  if (grouped != nodes.size()) // groups that wait for each other
    return std::nullopt;
  return groups;
}

} // namespace trainc::planning
