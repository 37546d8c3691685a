// SPDX-License-Identifier: Apache-2.0
//
// Nodes of an acyclic graph joined into units, whose graph stays acyclic: two
// units may become one where no path leads from one to the other through a
// third. Units are kept in a topological order, so a search looks only at what
// lies between the two; it goes down from the first and up from the second in
// turn and ends when either side is exhausted or they meet (after Pearce and
// Kelly, "A dynamic topological sort algorithm", 2007). What it found moves
// after or before the joined unit. Weakness: a search that visits more edges
// than the limit counts as a path.
#pragma once

#include <cstdint>
#include <vector>

namespace trainc::planning {

class AcyclicUnits {
public:
  /// Every node is a unit; `sources[n]` are the nodes before n that it needs.
  AcyclicUnits(const std::vector<std::vector<int>> &sources, int64_t searchLimit);

  int unitOf(int node) const { return units[node]; }
  /// In ascending order; empty for a unit that was joined to another.
  const std::vector<int> &nodesOf(int unit) const { return members[unit]; }
  const std::vector<int> &readersOf(int node) const { return readers[node]; }

  /// Makes the nodes of `b` part of `a`; false, and nothing changes, where a cycle would close.
  bool join(int a, int b);

  int64_t visitedEdges() const { return visited; }

private:
  enum class Outcome { path, noneBelow, noneAbove };
  struct Side;

  Outcome search(int first, int last);
  bool expand(Side &side, const Side &other, int64_t &budget);
  void moveBehind(int unit, std::vector<int> found);
  void moveBefore(int unit, std::vector<int> found);
  void takePlaceOf(int unit, int gone);
  void unlink(int unit);
  void insertBehind(int unit, int before);
  void renumber();

  const std::vector<std::vector<int>> &sources;
  int64_t searchLimit, visited = 0;
  std::vector<std::vector<int>> readers, members; // by node; by unit
  std::vector<int> units;                         // by node
  // The topological order: a list, with keys that grow along it.
  std::vector<int> next, previous;
  std::vector<int64_t> keys;
  std::vector<int> marksBelow, marksAbove; // searches that saw the unit
  int searches = 0;
  std::vector<int> below, above; // found by the last search
};

} // namespace trainc::planning
