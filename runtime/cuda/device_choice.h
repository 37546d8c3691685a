// SPDX-License-Identifier: Apache-2.0
//
// Which device a rank computes on, and whether it can.
#pragma once

#include "runtime/ranks/communicator.h"

#include <optional>
#include <string>

namespace trainc {

struct chosen_device {
  int index = 0;
  std::string name; // "NVIDIA H200"
};

// The device with this rank's number among the ranks of its host, or the only one that
// it sees; in a program that is not ours the one that is asked for. Made current.
// Collective. Throws `failure` (exit_machine) where there is none, the driver is older
// than the toolkit, ranks would share a device, or the device is of an architecture
// that the program was not built for; (exit_usage) where there is none of the number asked for.
chosen_device choose_device(communicator &ranks, std::optional<int> asked = std::nullopt);

} // namespace trainc
