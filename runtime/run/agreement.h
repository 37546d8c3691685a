// SPDX-License-Identifier: Apache-2.0
//
// What the ranks of a job must have in common. A launcher may start each with a program and a
// command line of its own; ranks that differ would train apart, or wait for each other for ever.
#pragma once

#include "runtime/data/loader.h"
#include "runtime/options/trainer_table.h"
#include "runtime/ranks/communicator.h"

#include <string>
#include <vector>

namespace trainc {

// A property of a rank: equal where its value is, wherever it comes from.
struct rank_property {
  std::string name, value;
  std::string origin; // for messages, such as a path; may be empty
};

// The program by its build, the command, and every option that is not a rank's own.
std::vector<rank_property> properties_of_start(const program &program, const trainer_table &table,
                                               const trainer_options &options);
// The data by their contents: hosts may keep them in different places.
std::vector<rank_property> properties_of_data(const std::vector<data_identity> &data);

// Compares with the first rank. Throws `failure` with this code, whose message names the lowest
// rank that differs and all that does. Collective.
void refuse_differences(communicator &ranks, const std::vector<rank_property> &mine,
                        exit_code code);

} // namespace trainc
