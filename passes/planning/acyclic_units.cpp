// SPDX-License-Identifier: Apache-2.0
//
// Joining units without closing a cycle (acyclic_units.h).
#include "passes/planning/acyclic_units.h"

#include <algorithm>

namespace trainc::planning {

constexpr int64_t keyDistance = int64_t(1) << 32;

AcyclicUnits::AcyclicUnits(const std::vector<std::vector<int>> &sources, int64_t searchLimit)
    : sources(sources), searchLimit(searchLimit), readers(sources.size()), members(sources.size()),
      units(sources.size()), next(sources.size() + 1), previous(sources.size() + 1),
      keys(sources.size() + 1), marksBelow(sources.size(), 0), marksAbove(sources.size(), 0) {
  int count = int(sources.size()); // the list's end
  for (int n = 0; n < count; ++n) {
    for (int source : sources[n])
      readers[source].push_back(n);
    members[n] = {n};
    units[n] = n;
  }
  for (int n = 0; n <= count; ++n) {
    keys[n] = n * keyDistance;
    next[n] = n == count ? 0 : n + 1;
    previous[n] = n == 0 ? count : n - 1;
  }
}

/// One direction of a search: units seen and those of them still to be looked at.
struct AcyclicUnits::Side {
  int from, to;
  bool down;
  std::vector<int> &seen;
  std::vector<int> &marks;
  size_t expanded = 0; // of `from` and then `seen`
};

/// Looks at one more unit; true where it shows a path.
bool AcyclicUnits::expand(Side &side, const Side &other, int64_t &budget) {
  int unit = side.expanded == 0 ? side.from : side.seen[side.expanded - 1];
  ++side.expanded;
  for (int node : members[unit])
    for (int neighbour : side.down ? readers[node] : sources[node]) {
      ++visited;
      if (--budget < 0)
        return true;
      int reached = units[neighbour];
      if (reached == unit || side.marks[reached] == searches)
        continue;
      if (reached == side.to) {
        if (unit == side.from)
          continue; // directly: the joined unit keeps that inside
        return true;
      }
      if (side.down ? keys[reached] > keys[side.to] : keys[reached] < keys[side.to])
        continue;
      if (other.marks[reached] == searches)
        return true;
      side.marks[reached] = searches;
      side.seen.push_back(reached);
    }
  return false;
}

AcyclicUnits::Outcome AcyclicUnits::search(int first, int last) {
  ++searches;
  below.clear();
  above.clear();
  int64_t budget = searchLimit;
  Side down{first, last, true, below, marksBelow}, up{last, first, false, above, marksAbove};
  while (true) {
    if (down.expanded > below.size())
      return Outcome::noneBelow;
    if (up.expanded > above.size())
      return Outcome::noneAbove;
    if (expand(down, up, budget) || expand(up, down, budget))
      return Outcome::path;
  }
}

bool AcyclicUnits::join(int a, int b) {
  int first = keys[a] < keys[b] ? a : b, last = first == a ? b : a;
  Outcome outcome = search(first, last);
  if (outcome == Outcome::path)
    return false;
  int slot = outcome == Outcome::noneBelow ? last : first;
  if (slot == a)
    unlink(b);
  else
    takePlaceOf(a, b);
  if (outcome == Outcome::noneBelow)
    moveBehind(a, below);
  else
    moveBefore(a, above);
  for (int node : members[b])
    units[node] = a;
  std::vector<int> &all = members[a];
  size_t own = all.size();
  all.insert(all.end(), members[b].begin(), members[b].end());
  std::inplace_merge(all.begin(), all.begin() + int64_t(own), all.end());
  std::vector<int>().swap(members[b]);
  return true;
}

void AcyclicUnits::moveBehind(int unit, std::vector<int> found) {
  std::sort(found.begin(), found.end(), [&](int x, int y) { return keys[x] < keys[y]; });
  for (int moved : found) {
    unlink(moved);
    insertBehind(moved, unit);
    unit = moved;
  }
}

void AcyclicUnits::moveBefore(int unit, std::vector<int> found) {
  std::sort(found.begin(), found.end(), [&](int x, int y) { return keys[x] < keys[y]; });
  for (int moved : found) {
    unlink(moved);
    insertBehind(moved, previous[unit]);
  }
}

void AcyclicUnits::unlink(int unit) {
  next[previous[unit]] = next[unit];
  previous[next[unit]] = previous[unit];
}

void AcyclicUnits::takePlaceOf(int unit, int gone) {
  unlink(unit);
  next[unit] = next[gone];
  previous[unit] = previous[gone];
  next[previous[unit]] = previous[next[unit]] = unit;
  keys[unit] = keys[gone];
}

void AcyclicUnits::insertBehind(int unit, int before) {
  int end = int(units.size()), after = next[before];
  next[unit] = after;
  previous[unit] = before;
  next[before] = previous[after] = unit;
  int64_t low = before == end ? keys[after] - keyDistance : keys[before];
  int64_t high = after == end ? low + keyDistance : keys[after];
  keys[unit] = low + (high - low) / 2;
  if (keys[unit] == low)
    renumber();
}

void AcyclicUnits::renumber() {
  int end = int(units.size());
  int64_t key = 0;
  for (int unit = next[end]; unit != end; unit = next[unit])
    keys[unit] = key += keyDistance;
}

} // namespace trainc::planning
