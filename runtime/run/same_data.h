// SPDX-License-Identifier: Apache-2.0
//
// Whether a run that goes on still sees the samples that it began with, in the same order.
#pragma once

#include "runtime/data/loader.h"
#include "runtime/options/run_configuration.h"

#include <string>
#include <vector>

namespace trainc {

// Compares the data of a run, for training or for validation, with those that its configuration
// names. Throws `failure` (exit_data) that names the first difference. Returns the paths of files
// that are the same by size and sampled contents, and have been written since.
enum class data_use { training, validation };
std::vector<std::string> check_same_data(const run_configuration &kept, data_use use,
                                         const std::vector<data_identity> &data);

// Which samples are trained on, and in which order, is the run's: throws `failure` (exit_usage)
// where that would change.
void check_same_choice(const sample_choice &before, const sample_choice &now);
sample_choice choice_of(const trainer_options &options);

} // namespace trainc
