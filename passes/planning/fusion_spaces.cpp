// SPDX-License-Identifier: Apache-2.0
//
// Iteration spaces of groups (fusion_spaces.h).
#include "passes/planning/fusion_spaces.h"

#include <algorithm>

namespace trainc::planning {

using Kind = FusionNode::Kind;

FusionGroup joinedSpace(const FusionGroup &first, const FusionGroup &second) {
  bool changes = first.kind == Kind::pointwise && second.kind == Kind::row;
  const FusionGroup &space = changes ? second : first;
  return {space.kind, space.kept, space.reduced, {}};
}

bool isAtEveryPoint(const FusionNode &node, const FusionGroup &group) {
  return (group.kind == Kind::column || group.kind == Kind::full) && node.kind == Kind::pointwise &&
         group.reduced > 1 && node.kept == group.kept * group.reduced;
}

bool spaceAgrees(const FusionNode &node, const FusionGroup &group) {
  int64_t points = node.kept * node.reduced, all = group.kept * group.reduced;
  switch (group.kind) {
  case Kind::barrier:
    return false;
  case Kind::pointwise: // becomes a row group with the first reduction
    if (node.kind == Kind::row)
      return points == all || node.kept == all;
    return node.kind == Kind::pointwise && points == all;
  case Kind::row:
    if (node.kind == Kind::row)
      return node.kept == group.kept && node.reduced == group.reduced;
    return node.kind == Kind::pointwise && (points == all || points == group.kept);
  case Kind::column:
  case Kind::full:
    if (node.kind == group.kind)
      return node.kept == group.kept && node.reduced == group.reduced;
    return node.kind == Kind::pointwise && (points == group.kept || isAtEveryPoint(node, group));
  }
  return false;
}

bool staysInside(const FusionNode &node, const FusionNode &producer, const FusionEdge &edge,
                 const FusionGroup &group) {
  int64_t rows = node.kind == Kind::row ? node.kept : group.kept;
  int64_t all = node.kind == Kind::row ? node.kept * node.reduced : group.kept * group.reduced;
  if (group.kind == Kind::column || group.kind == Kind::full) {
    bool walks = node.kind == group.kind || isAtEveryPoint(node, group);
    return walks == isAtEveryPoint(producer, group) && edge.alignment == Alignment::identity;
  }
  bool whole = producer.kind == Kind::pointwise && producer.kept == all;
  bool nodeWhole = node.kind == Kind::row || (node.kind == Kind::pointwise && node.kept == all);
  if (whole)
    return nodeWhole && edge.alignment == Alignment::identity;
  if (edge.elements != rows)
    return false;
  return edge.alignment == (nodeWhole ? Alignment::leading : Alignment::identity);
}

bool cutsNest(const std::vector<FusionNode> &nodes, const FusionGroup &group) {
  std::vector<int64_t> cuts;
  for (int n : group.nodes) {
    bool perRow = group.kind == Kind::row && nodes[n].kind == Kind::pointwise &&
                  nodes[n].kept == group.kept && group.reduced > 1;
    for (int64_t cut : nodes[n].cuts)
      cuts.push_back(perRow ? cut * group.reduced : cut);
  }
  std::sort(cuts.begin(), cuts.end());
  for (size_t i = 1; i < cuts.size(); ++i)
    if (cuts[i] % cuts[i - 1] != 0)
      return false;
  return true;
}

} // namespace trainc::planning
