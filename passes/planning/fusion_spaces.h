// SPDX-License-Identifier: Apache-2.0
//
// Whether values can share a loop: rules on iteration spaces for fusion_groups.cpp.
#pragma once

#include "passes/planning/fusion_groups.h"

namespace trainc::planning {

/// The iteration space of two groups (or of a group and a node) as one.
FusionGroup joinedSpace(const FusionGroup &first, const FusionGroup &second);

/// Whether the node can be computed in the group's space.
bool spaceAgrees(const FusionNode &node, const FusionGroup &group);

/// Whether the node is computed, and where others read it stored, at every point of a column or
/// full reduction.
bool isAtEveryPoint(const FusionNode &node, const FusionGroup &group);

/// Whether the producer's value is at hand where `node` needs it, inside the group's kernel.
bool staysInside(const FusionNode &node, const FusionNode &producer, const FusionEdge &edge,
                 const FusionGroup &group);

/// Whether one refinement of the group's space serves all nodes.
bool cutsNest(const std::vector<FusionNode> &nodes, const FusionGroup &group);

} // namespace trainc::planning
