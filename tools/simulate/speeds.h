// SPDX-License-Identifier: Apache-2.0
//
// How fast a cluster is: links within a host and between hosts, and what a rank computes with. By
// name, or from a JSON file.
#pragma once

#include <string>

namespace trainc::simulate {

/// Of one rank, in one direction.
struct Link {
  std::string name;
  double bytesPerSecond = 0, latency = 0; // seconds
};

struct Network {
  Link within, between; // of a host, hosts
  int ranksPerHost = 1;

  const Link &linkOf(int rank, int other) const {
    return rank / ranksPerHost == other / ranksPerHost ? within : between;
  }
};

/// For the roofline: a kernel takes what its arithmetic or its bytes take, and its start.
struct Device {
  std::string name;
  double flopsPerSecond = 0, bytesPerSecond = 0, secondsPerKernel = 0;

  double secondsOf(double flops, double bytes) const;
};

/// `nvlink+400G`, `shared-memory`, or a file. Throws `failure`: exit_usage for a name, exit_data
/// for a file.
Network networkOf(const std::string &text);
/// `h100`, or the device of a file.
Device deviceOf(const std::string &text);

} // namespace trainc::simulate
