// SPDX-License-Identifier: Apache-2.0
//
// Follows the function through twice as many points as it has steps: before and at each of them.
#include "runtime/observe/living_bytes.h"

#include <map>

namespace trainc {
namespace {

struct change {
  int64_t offset, bytes;
  int by; // tensors
};

class covered_bytes {
public:
  void change_by(const change &of) {
    move(of.offset, of.by);
    move(of.offset + of.bytes, -of.by);
  }
  int64_t count() const {
    int64_t bytes = 0, begin = 0;
    int depth = 0;
    for (const auto &[offset, by] : edges_) {
      if (depth > 0)
        bytes += offset - begin;
      begin = offset;
      depth += by;
    }
    return bytes;
  }

private:
  void move(int64_t offset, int by) {
    if ((edges_[offset] += by) == 0)
      edges_.erase(offset);
  }

  std::map<int64_t, int> edges_; // how many tensors more lie from an offset on
};

} // namespace

living_bytes living_bytes_of(const planned_entry &entry, const std::string &arena) {
  std::vector<std::vector<change>> changes(2 * entry.steps.size() + 1);
  for (const planned_tensor &tensor : entry.tensors) {
    if (tensor.arena != arena)
      continue;
    const size_t begin = tensor.is_argument ? 0 : 2 * static_cast<size_t>(tensor.first) + 1;
    const size_t end = 2 * static_cast<size_t>(tensor.last) + 2;
    changes[begin].push_back({tensor.offset, tensor.bytes, 1});
    if (end < changes.size())
      changes[end].push_back({tensor.offset, tensor.bytes, -1});
  }
  living_bytes living;
  covered_bytes covered;
  for (size_t point = 0; point < changes.size(); ++point) {
    for (const change &each : changes[point])
      covered.change_by(each);
    (point % 2 == 0 ? living.between : living.at).push_back(covered.count());
  }
  return living;
}

std::vector<int64_t> needed_bytes_of(const planned_entry &entry) {
  std::vector<int64_t> needed(entry.steps.size());
  for (const char *arena : {"activations", "stash"}) {
    const living_bytes living = living_bytes_of(entry, arena);
    for (size_t i = 0; i < needed.size(); ++i)
      needed[i] += living.at[i];
  }
  return needed;
}

} // namespace trainc
