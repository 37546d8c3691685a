// SPDX-License-Identifier: Apache-2.0
//
// The options of a run that goes on, and of a file of options (--config).
#pragma once

#include "runtime/options/trainer_table.h"
#include "runtime/program.h"

#include <string>
#include <vector>

namespace trainc {

// Fills options that the command line leaves open with those of the file `configuration`
// (--config FILE, or what a resumed run has). Returns what the command line changes:
// "--learning-rate 0.5, was 0.001". Throws `failure` (exit_usage) with every problem.
std::vector<std::string> restore_options(const program &program, const std::string &configuration,
                                         const trainer_table &table, trainer_options &options);

// Refuses, as `failure` (exit_usage), a file of options (--config) that says otherwise than the
// run which goes on, where the command line says neither. Returns what is said of others.
std::vector<std::string> check_agrees(const program &program, const std::string &file,
                                      const std::string &configuration, const trainer_table &table,
                                      const trainer_options &options);

// The options that `configuration` says, defaults for others.
trainer_options kept_options(const program &program, const std::string &configuration,
                             const trainer_table &table);

} // namespace trainc
