// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/rank_group.h"

#include "runtime/process/signs_of_life.h"

#include <algorithm>
#include <cstring>

namespace trainc {

ncclDataType_t nccl_type(data_type type) {
  return type == data_type::f64 ? ncclFloat64 : ncclFloat32;
}

void check_nccl(ncclResult_t status, const char *operation) {
  if (status != ncclSuccess)
    throw failure(exit_machine,
                  format_text("%s: NCCL reports: %s\n  try: NCCL_DEBUG=WARN in the environment, "
                              "which shows why",
                              operation, ncclGetErrorString(status)));
}

void rank_group::join(communicator &ranks, const std::vector<int> &members) {
  if (members.size() < 2)
    return;
  const auto own = std::find(members.begin(), members.end(), ranks.rank());
  ncclUniqueId id = {};
  ranks.together([&] {
    if (own == members.begin())
      check_nccl(ncclGetUniqueId(&id), "NCCL cannot start");
  });
  std::string bytes =
      ranks.broadcast(std::string(id.internal, sizeof id.internal), members.front());
  memcpy(id.internal, bytes.data(), sizeof id.internal);
  ranks.together([&] {
    if (own == members.end())
      return;
    waiting_for_ranks wait;
    check_nccl(ncclCommInitRank(&group_, static_cast<int>(members.size()), id,
                                static_cast<int>(own - members.begin())),
               "NCCL cannot start");
  });
}

rank_group::~rank_group() {
  if (group_)
    ncclCommDestroy(group_);
}

void rank_group::check() const {
  if (!group_)
    return;
  ncclResult_t state = ncclSuccess;
  check_nccl(ncclCommGetAsyncError(group_, &state), "messages between ranks");
  check_nccl(state, "messages between ranks");
}

void rank_group::abandon() {
  if (group_)
    ncclCommAbort(group_);
  group_ = nullptr;
}

} // namespace trainc
