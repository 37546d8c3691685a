// SPDX-License-Identifier: Apache-2.0
//
// `docker --cpus 2` and the limits of Kubernetes are a quota of a control group: so many
// microseconds of processor time in each period. In a container the group is often mounted as the
// root, so that the path in /proc/self/cgroup is not there: the folders above it are looked at,
// too.
#include "runtime/process/processor_quota.h"

#include <fstream>
#include <sstream>

namespace trainc {

static double smaller(double quota, double other) {
  return quota == 0 || (other > 0 && other < quota) ? other : quota;
}

// Version 2: `max 100000`, or `150000 100000`.
static double quota_of_group(const std::string &folder) {
  double quota = 0, period = 0;
  std::ifstream file(folder + "/cpu.max");
  return file >> quota >> period && quota > 0 && period > 0 ? quota / period : 0;
}

// Version 1: two files, the quota -1 where there is none.
static double quota_of_group_1(const std::string &folder) {
  double quota = 0, period = 0;
  std::ifstream quotas(folder + "/cpu.cfs_quota_us"), periods(folder + "/cpu.cfs_period_us");
  return quotas >> quota && periods >> period && quota > 0 && period > 0 ? quota / period : 0;
}

double processor_quota(const std::string &root) {
  double result = 0;
  std::ifstream groups(root + "/proc/self/cgroup"); // `3:cpu,cpuacct:/docker/1f`, or `0::/user`
  for (std::string line; std::getline(groups, line);) {
    std::istringstream parts(line);
    std::string number, controllers, path;
    if (!std::getline(parts, number, ':') || !std::getline(parts, controllers, ':') ||
        !std::getline(parts, path))
      continue;
    const bool is_second = controllers.empty();
    if (!is_second && ("," + controllers + ",").find(",cpu,") == std::string::npos)
      continue;
    for (const std::string &mounted :
         {std::string("/sys/fs/cgroup"), "/sys/fs/cgroup/" + controllers,
          std::string("/sys/fs/cgroup/cpu")})
      for (std::string at = path;; at = at.substr(0, at.rfind('/'))) {
        const std::string folder = root + mounted + at;
        result = smaller(result, is_second ? quota_of_group(folder) : quota_of_group_1(folder));
        if (at.find('/') == std::string::npos)
          break;
      }
  }
  return result;
}

} // namespace trainc
