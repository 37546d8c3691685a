// SPDX-License-Identifier: Apache-2.0
//
// The forward pass divided at its narrow places, where few bytes go on to what follows: after a
// block of a transformer, a stage of a network of convolutions with its skips. What crosses a
// border is kept, so each segment can be recomputed alone, right before its backward pass. A
// minimum cut with a price alone (recompute_cut.h) never finds borders: of a segment that is
// repeated anyway, keeping its first value saves no operation. After Chen, Xu, Zhang, Guestrin,
// "Training deep nets with sublinear memory cost", 2016, for any graph in program order; which
// borders serve a bound best follows from a dynamic program as in Beaumont et al., "Optimal
// checkpointing for heterogeneous chains", 2019.
#pragma once

#include "passes/planning/recompute_cut.h"

namespace trainc::planning {

struct Segments {
  std::vector<int> begins; // the first operation of each segment but the first one, rising
  int64_t borderBytes = 0; // of all values that cross borders
  int64_t innerBytes = 0;  // most that the backward pass needs of one segment besides

  /// About what is alive at the peak.
  int64_t peak() const { return borderBytes + innerBytes; }
};

/// Ways to divide it, from few segments to many: for falling bounds of what a segment may need, the
/// borders of least bytes. Empty where there is no place worth a border.
std::vector<Segments> narrowSegments(const ForwardGraph &graph);

/// By value: whether it crosses a border or is made after the last one, where the backward pass
/// begins.
std::vector<bool> heldBy(const Segments &segments, const ForwardGraph &graph);

} // namespace trainc::planning
