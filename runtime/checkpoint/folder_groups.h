// SPDX-License-Identifier: Apache-2.0
//
// Which ranks see one and the same folder. Hosts may share a file system, or each has a disk of its
// own, and under the same path another folder.
#pragma once

#include "runtime/ranks/communicator.h"

#include <string>
#include <vector>

namespace trainc {

class folder_groups {
public:
  // All ranks see one folder.
  explicit folder_groups(const communicator &ranks);
  // By looking: a rank of each host makes a file in the folder, or in the nearest one above it that
  // is there, and looks for those of the others. Nothing stays. Collective; throws `failure`
  // (exit_disk) where such a file cannot be made.
  folder_groups(communicator &ranks, const std::string &folder);

  // Of each rank the lowest one that sees its folder, which keeps the folder for all of them.
  int keeper_of(int rank) const { return keeper_of_[static_cast<size_t>(rank)]; }
  int keeper() const { return keeper_of(self_); }
  bool keeps() const { return keeper() == self_; }
  // Ascending: the first is the first rank of all.
  std::vector<int> keepers() const;
  std::vector<int> members_of(int keeper) const;
  std::vector<int> members() const { return members_of(keeper()); } // of this rank's
  bool is_one() const { return keepers().size() == 1; }

private:
  int self_;
  std::vector<int> keeper_of_;
};

// The lowest rank of each host, ascending. Collective.
std::vector<int> first_ranks_of_hosts(communicator &ranks);

} // namespace trainc
