// SPDX-License-Identifier: Apache-2.0
//
// Which rank updates which elements, and keeps the optimizer's state of them alone: of a step in
// stages those whose gradients its stage has; with --shard optimizer the replicas of a stage share
// these out.
#pragma once

#include "runtime/cuda/rank_group.h"
#include "runtime/program.h"
#include "runtime/ranks/communicator.h"
#include "runtime/ranks/stage_layout.h"

#include <vector>

namespace trainc {

struct update_share {
  static constexpr int every_replica = -1;

  element_range range;
  int stage, replica; // whose it is
};

class update_shares {
public:
  // Every rank has all.
  update_shares() = default;
  // All ranks together have each element of parameters and buffers once, or once in each replica.
  update_shares(const program &program, const stage_layout &layout, bool among_replicas);
  // The same of what replicas have shared out, ascending.
  update_shares(const program &program, const stage_layout &layout,
                const std::vector<update_share> &shares);

  // Whether ranks of this program share anything out.
  static bool are_there(const program &program, int ranks, bool among_replicas);

  bool is_whole() const { return all_.empty(); }
  const std::vector<update_share> &all() const { return all_; } // ascending
  range_list own() const {
    return is_whole() ? range_list{&every_element, 1}
                      : range_list{own_.data(), static_cast<int64_t>(own_.size())};
  }
  bool is_own(const update_share &share) const {
    return share.stage == layout_.stage &&
           (share.replica == update_share::every_replica || share.replica == layout_.replica);
  }
  int rank_of(const update_share &share) const {
    return layout_.rank_of(share.replica == update_share::every_replica ? 0 : share.replica,
                           share.stage);
  }
  // That of an element; null where it is nobody's.
  const update_share *of(int64_t element) const;
  // Of the optimizer's states, in bytes of their arena.
  std::vector<element_range> state_bytes(const program &program) const;
  // Queues that each rank gets what others have updated. Within a stage first: its replicas may
  // have parts of what other stages are sent.
  void send_updated(char *parameters, data_type type, const rank_group &replicas,
                    const rank_group &stages) const;

private:
  void find_own();
  stage_layout layout_;
  std::vector<update_share> all_;
  std::vector<element_range> own_;
};

} // namespace trainc
