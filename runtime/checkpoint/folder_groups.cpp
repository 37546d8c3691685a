// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/folder_groups.h"

#include "runtime/files/file_operations.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <numeric>
#include <unistd.h>

namespace trainc {
namespace {

// A file that tells other hosts of this one, for the life of the object.
class mark_of_host {
public:
  mark_of_host() = default;
  ~mark_of_host() {
    if (!path_.empty())
      real_file_operations().remove_file(path_.c_str());
  }
  mark_of_host(const mark_of_host &) = delete;
  mark_of_host &operator=(const mark_of_host &) = delete;

  const std::string &path() const { return path_; }
  void make(const std::string &path) {
    file_operations &files = real_file_operations();
    const int file = files.create(path.c_str());
    if (file < 0 || files.close(file) != 0)
      throw failure(exit_disk,
                    path + ": cannot be written: " + strerror(errno) +
                        "\n  try: to make its folder writable on this host, or for a new "
                        "run --run DIR where every host may write");
    path_ = path;
  }

private:
  std::string path_;
};

} // namespace

std::vector<int> first_ranks_of_hosts(communicator &ranks) {
  std::vector<int> first(static_cast<size_t>(ranks.size()));
  const int own = ranks.first_on_host();
  ranks.gather(&own, sizeof own, first.data());
  std::sort(first.begin(), first.end());
  first.erase(std::unique(first.begin(), first.end()), first.end());
  return first;
}

folder_groups::folder_groups(const communicator &ranks)
    : self_(ranks.rank()), keeper_of_(static_cast<size_t>(ranks.size()), 0) {}

folder_groups::folder_groups(communicator &ranks, const std::string &folder)
    : folder_groups(ranks) {
  const std::vector<int> hosts = first_ranks_of_hosts(ranks);
  if (hosts.size() == 1)
    return;
  const bool is_first = self_ == ranks.first_on_host();
  // Of this job: one that a kill left does not stand for a host.
  const std::string job = ranks.broadcast(format_text("%s-%d", host_name().c_str(), getpid()));
  mark_of_host mark;
  ranks.together([&] {
    if (is_first)
      mark.make(existing_part(folder) + format_text("/.host-of-rank-%d-", self_) + job);
  });
  std::vector<char> sees(hosts.size()), all(hosts.size() * keeper_of_.size());
  for (size_t i = 0; i < hosts.size(); ++i)
    sees[i] = exists(ranks.broadcast(mark.path(), hosts[i]));
  ranks.gather(sees.data(), static_cast<int64_t>(sees.size()), all.data());
  auto sees_mark = [&](size_t host, size_t of) {
    return all[static_cast<size_t>(hosts[host]) * hosts.size() + of] != 0;
  };
  std::vector<int> keeper_of_host(keeper_of_.size());
  std::iota(keeper_of_host.begin(), keeper_of_host.end(), 0);
  for (size_t host = 0; host < hosts.size(); ++host)
    for (size_t other = 0; other < host; ++other)
      if (sees_mark(host, other) && sees_mark(other, host)) {
        keeper_of_host[static_cast<size_t>(hosts[host])] = hosts[other];
        break;
      }
  const int own = keeper_of_host[static_cast<size_t>(ranks.first_on_host())];
  ranks.gather(&own, sizeof own, keeper_of_.data());
}

std::vector<int> folder_groups::keepers() const {
  std::vector<int> all;
  for (size_t rank = 0; rank < keeper_of_.size(); ++rank)
    if (keeper_of_[rank] == static_cast<int>(rank))
      all.push_back(static_cast<int>(rank));
  return all;
}

std::vector<int> folder_groups::members_of(int keeper) const {
  std::vector<int> all;
  for (size_t rank = 0; rank < keeper_of_.size(); ++rank)
    if (keeper_of_[rank] == keeper)
      all.push_back(static_cast<int>(rank));
  return all;
}

} // namespace trainc
