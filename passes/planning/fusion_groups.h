// SPDX-License-Identifier: Apache-2.0
//
// Which values are computed by one kernel. Nodes are the values that need a
// loop of their own; an edge says how a node reads another one's elements. A
// group is a set of nodes with one iteration space whose edges inside keep to
// the current point or row. Nodes join, in program order, a group whose values
// they read; then groups that read the same tensors are merged. Ancestor sets of
// groups (bit sets) keep the order of groups free of cycles.
#pragma once

#include "passes/planning/strided_view.h"

#include <vector>

namespace trainc::planning {

struct FusionEdge {
  int leaf;     // tensor read, numbered from 0; equal numbers are the same tensor
  int producer; // node that computes it; -1 where it is in memory anyway
  Alignment alignment;
  int64_t elements; // of the tensor
};

struct FusionNode {
  // A barrier is a step of its own: matrix product, scatter.
  enum class Kind { barrier, pointwise, row, column, full };
  Kind kind;
  // Points that are kept and that are reduced; a pointwise node keeps all of them.
  int64_t kept = 1, reduced = 1;
  int position = 0;   // in program order
  int operations = 1; // size of its expression
  // Products of the trailing sizes of its own iteration space (walked dimensions first in a column,
  // last in a row): where the space can be cut. A group's cuts must nest.
  std::vector<int64_t> cuts;
  std::vector<FusionEdge> inputs;
};

struct FusionOptions {
  int largestGroup = 64; // operations in a kernel: beyond it nobody reads it, and registers spill
  // A node joins an earlier group only within this many program positions: further off it would
  // have its result wait in memory, as a gradient computed during the forward pass.
  int window = 160;
};

struct FusionGroup {
  FusionNode::Kind kind;
  int64_t kept = 1, reduced = 1;
  std::vector<int> nodes;
};

/// Groups in an order in which they can run; each barrier is a group by itself.
std::vector<FusionGroup> formGroups(const std::vector<FusionNode> &nodes,
                                    const FusionOptions &options = {});

} // namespace trainc::planning
