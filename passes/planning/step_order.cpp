// SPDX-License-Identifier: Apache-2.0
//
// List scheduling by freed bytes (step_order.h).
#include "passes/planning/step_order.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace trainc::planning {
namespace {

class Scheduler {
public:
  Scheduler(const std::vector<Step> &steps, const std::vector<int64_t> &bytes,
            const std::vector<bool> &kept)
      : steps(steps), bytes(bytes), kept(kept), writer(bytes.size(), -1) {
    for (size_t s = 0; s < steps.size(); ++s)
      for (int t : steps[s].writes)
        writer[t] = int(s);
  }

  std::vector<std::vector<int>> readers() const {
    std::vector<std::vector<int>> result(bytes.size());
    for (size_t s = 0; s < steps.size(); ++s)
      for (int t : distinct(steps[s].reads))
        result[t].push_back(int(s));
    return result;
  }

  std::vector<int> greedy() const {
    std::vector<std::vector<int>> users(steps.size()), readersOf = readers();
    std::vector<int> waiting(steps.size(), 0), unread(bytes.size(), 0);
    for (size_t s = 0; s < steps.size(); ++s)
      for (int source : sources(int(s))) {
        users[source].push_back(int(s));
        ++waiting[s];
      }
    for (size_t t = 0; t < bytes.size(); ++t)
      unread[t] = int(readersOf[t].size());
    std::set<int> ready;
    for (size_t s = 0; s < steps.size(); ++s)
      if (waiting[s] == 0)
        ready.insert(int(s));
    std::vector<int> order;
    while (!ready.empty()) {
      int chosen = *ready.begin();
      int looked = 0;
      for (int s : ready) {
        if (++looked > 64) // enough to see the layer at hand; keeps the pass linear
          break;
        if (growth(s, unread) <= 0) {
          chosen = s;
          break;
        }
      }
      ready.erase(chosen);
      order.push_back(chosen);
      for (int t : distinct(steps[chosen].reads))
        --unread[t];
      for (int user : users[chosen])
        if (--waiting[user] == 0)
          ready.insert(user);
    }
    return order;
  }

private:
  static std::vector<int> distinct(std::vector<int> list) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
    return list;
  }

  std::vector<int> sources(int s) const {
    std::vector<int> list = steps[s].after;
    for (int t : steps[s].reads)
      if (writer[t] >= 0)
        list.push_back(writer[t]);
    return distinct(std::move(list));
  }

  int64_t growth(int s, const std::vector<int> &unread) const {
    int64_t change = 0;
    for (int t : steps[s].writes)
      change += bytes[t];
    for (int t : distinct(steps[s].reads))
      if (unread[t] == 1 && writer[t] >= 0 && !kept[t])
        change -= bytes[t];
    return change;
  }

  const std::vector<Step> &steps;
  const std::vector<int64_t> &bytes;
  const std::vector<bool> &kept;
  std::vector<int> writer;
};

} // namespace

int64_t peakBytes(const std::vector<Step> &steps, const std::vector<int64_t> &bytes,
                  const std::vector<bool> &kept, const std::vector<int> &order) {
  std::vector<int> last(bytes.size(), -1);
  std::vector<bool> written(bytes.size(), false);
  for (size_t i = 0; i < order.size(); ++i) {
    for (int t : steps[order[i]].reads)
      last[t] = int(i);
    for (int t : steps[order[i]].writes) {
      last[t] = std::max(last[t], int(i));
      written[t] = true;
    }
  }
  std::vector<int64_t> freed(order.size(), 0);
  for (size_t t = 0; t < bytes.size(); ++t)
    if (written[t] && !kept[t])
      freed[last[t]] += bytes[t];
  int64_t live = 0, peak = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    for (int t : steps[order[i]].writes)
      live += bytes[t];
    peak = std::max(peak, live);
    live -= freed[i];
  }
  return peak;
}

std::vector<int> orderSteps(const std::vector<Step> &steps, const std::vector<int64_t> &bytes,
                            const std::vector<bool> &kept) {
  Scheduler scheduler(steps, bytes, kept);
  std::vector<int> greedy = scheduler.greedy(), program(steps.size());
  std::iota(program.begin(), program.end(), 0);
  if (greedy.size() < steps.size())
    return greedy; // a cycle
  // Program order may break `after`: then only the greedy order is left.
  for (size_t s = 0; s < steps.size(); ++s)
    for (int source : steps[s].after)
      if (source > int(s))
        return greedy;
  if (peakBytes(steps, bytes, kept, program) <= peakBytes(steps, bytes, kept, greedy))
    return program;
  return greedy;
}

} // namespace trainc::planning
