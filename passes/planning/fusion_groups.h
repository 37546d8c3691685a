// SPDX-License-Identifier: Apache-2.0
//
// Which values are computed by one kernel. Nodes are the values that need a
// loop of their own; an edge says how a node reads another one's elements. A
// group is a set of nodes with one iteration space whose edges inside keep to
// the current point or row.
//
// What a join is worth is counted in bytes of memory traffic: tensors that both
// sides read are read once, a value that only the joined kernel reads is neither
// written nor read, and there is one launch less. Against it stands memory that
// is held longer, where that raises the most bytes alive at any position of the
// program. Nodes join, in program order, the group from which they gain most;
// then groups that read the same tensors are merged, wherever they are; then
// column and full reductions take the pointwise groups that make what they read.
// planning/acyclic_units.h keeps the graph of groups free of cycles. What limits
// a kernel is what it has to hold: live scalars, and instructions.
// Weakness: greedy, and a group runs where its first node stood.
#pragma once

#include "passes/planning/strided_view.h"

#include <optional>
#include <vector>

namespace trainc::planning {

struct FusionEdge {
  int leaf;     // tensor read, numbered from 0; equal numbers are the same tensor
  int producer; // node that computes it; -1 where it is in memory anyway
  Alignment alignment;
  int64_t elements; // of the tensor
  int64_t bytes = 4 * elements;
};

struct FusionNode {
  // A barrier is a step of its own: matrix product, scatter.
  enum class Kind { barrier, pointwise, row, column, full };
  Kind kind;
  // Points that are kept and that are reduced; a pointwise node keeps all of them.
  int64_t kept = 1, reduced = 1;
  int position = 0;  // in program order
  int earliest = 0;  // position before which no other node of its group may stand
  double flops = 1;  // of its expression, per point
  int scalars = 1;   // live at once while its expression is computed
  int64_t bytes = 0; // of its value
  int64_t held = 0;  // what the value takes of the activations; 0 where it has its own place
  bool isReturned = false;
  // Products of the trailing sizes of its own iteration space (walked dimensions first in a column,
  // last in a row): where the space can be cut. A group's cuts must nest.
  std::vector<int64_t> cuts;
  std::vector<FusionEdge> inputs;
};

/// What decides what is worth a join, and what a kernel can hold.
struct FusionOptions {
  // What a launch costs, as traffic: some microseconds at some gigabytes per second.
  double launchBytes = 16384;
  // Bytes of traffic per step that a byte of peak memory is worth: memory decides the batch that
  // fits, so a tensor is not held longer to save reading it.
  double peakPrice = 8;
  int liveScalars = 32; // vector registers of AVX-512 and NEON; four-wide, half of a GPU thread's
  double largestKernel = 256; // flops per point: unrolled twice, what stays in an instruction cache
  int64_t searchLimit = 400;  // edges looked at to prove that a join closes no cycle
};

struct FusionGroup {
  FusionNode::Kind kind;
  int64_t kept = 1, reduced = 1;
  std::vector<int> nodes;
};

/// Groups in an order in which they can run; each barrier is a group by itself. Nothing where
/// a node reads a later one.
std::optional<std::vector<FusionGroup>> formGroups(const std::vector<FusionNode> &nodes,
                                                   const FusionOptions &options = {});

} // namespace trainc::planning
