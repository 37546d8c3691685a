// SPDX-License-Identifier: Apache-2.0
//
// Which forward operations are recomputed for the backward pass, where a byte that is not kept
// for it is worth a given time. For one price the best answer is a minimum cut: a value that the
// backward pass needs, or an operation that is repeated for it, is either kept, for its bytes, or
// its own operation is repeated, for its time, and needs what that reads. After the joint graph's
// partition in PyTorch (functorch/_src/partitioners.py), whose operations are free or forbidden;
// with a time for each, products and convolutions take part. Cuts of rising prices are nested
// (Gallo, Grigoriadis, Tarjan, "A fast parametric maximum flow algorithm", 1989), so one number
// leads from keeping everything to keeping nothing.
//
// Weakness: what is repeated takes memory again while the backward pass uses it, which no cut
// counts; so the caller has to look at the peak of several prices.
#pragma once

#include <cstdint>
#include <vector>

namespace trainc::planning {

struct ForwardOperation {
  std::vector<int> reads; // values
  std::vector<int> makes; // values
  double time = 0;        // as bytes of memory traffic
  bool isRepeatable = true;
  bool isForced = false; // it is repeated, and nothing that it makes is kept
};

struct ForwardValue {
  int64_t bytes = 0;
  bool isNeeded = false;     // by the backward pass
  bool mayBeKept = true;     // its memory is not taken by a later operation
  bool isKeptAnyway = false; // it lives as long, or in a place of its own
};

struct ForwardGraph {
  std::vector<ForwardOperation> operations; // in program order
  std::vector<ForwardValue> values;         // each is made by one of them
};

/// Whether each operation is repeated, where a kept byte costs as much as `price` bytes of traffic.
/// Of operations that are alike, the earlier ones are worth it at a lower price: their memory is
/// needed again later, when less is alive. Forced ones must be repeatable. Values that are `held`
/// are kept for nothing; none of them where it is empty.
std::vector<bool> repeatedOperations(const ForwardGraph &graph, double price,
                                     const std::vector<bool> &held = {});

} // namespace trainc::planning
