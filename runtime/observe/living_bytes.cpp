// SPDX-License-Identifier: Apache-2.0
//
// Follows the function through twice as many points as it has steps: before and at each of them.
#include "runtime/observe/living_bytes.h"

#include <algorithm>
#include <map>

namespace trainc {
namespace {

using nlohmann::json;

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

living_bytes living_bytes_of(const json &entry, const char *arena) {
  constexpr size_t most_steps = 1 << 24; // of a plan that is not damaged
  const size_t steps = std::min(entry.at("steps").get<size_t>(), most_steps);
  std::vector<std::vector<change>> changes(2 * steps + 1);
  for (const json &tensor : entry.at("tensors")) {
    if (tensor.at("arena") != arena)
      continue;
    const auto first = tensor.at("first_step").get<size_t>();
    const size_t begin = tensor.at("argument").get<bool>() ? 0 : 2 * first + 1;
    const size_t end = 2 * tensor.at("last_step").get<size_t>() + 2;
    const change here = {tensor.at("offset").get<int64_t>(), tensor.at("bytes").get<int64_t>(), 1};
    if (begin >= changes.size())
      continue;
    changes[begin].push_back(here);
    if (end < changes.size())
      changes[end].push_back({here.offset, here.bytes, -1});
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

} // namespace trainc
