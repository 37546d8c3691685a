// SPDX-License-Identifier: Apache-2.0
//
// Some ranks of a job, which talk to each other through NCCL.
#pragma once

#include "runtime/files/data_types.h"
#include "runtime/ranks/communicator.h"

#include <cuda_runtime.h>
#include <nccl.h>

#include <vector>

namespace trainc {

ncclDataType_t nccl_type(data_type type); // f32 or f64

// Throws `failure` (exit_machine) with NCCL's reason.
void check_nccl(ncclResult_t status, const char *operation);

class rank_group {
public:
  rank_group() = default; // of this rank alone
  ~rank_group();          // waits for the other members: of a job that fails comes `abandon` first
  rank_group(const rank_group &) = delete;
  rank_group &operator=(const rank_group &) = delete;

  // Collective over all ranks of the job, members (ascending, by their numbers in the job) or not;
  // on the device chosen before. Of one member, and for those that are none, nothing happens.
  // Throws `failure` (exit_machine).
  void join(communicator &ranks, const std::vector<int> &members);

  ncclComm_t get() const { return group_; } // null: alone
  // Throws `failure` if NCCL met an error in what was queued: work that waits for a rank which is
  // gone never ends.
  void check() const;
  // Leaves the others, also those that wait; queued work ends.
  void abandon();

private:
  ncclComm_t group_ = nullptr;
};

} // namespace trainc
