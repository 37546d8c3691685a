// SPDX-License-Identifier: Apache-2.0
//
// `export`: the trained model as ONNX, and what PyTorch loads.
#pragma once

#include "runtime/options/options.h"
#include "runtime/program.h"

#include <string>
#include <vector>

namespace trainc {

// A file that a command writes, and the option that names it.
struct result_file {
  std::string path;
  const char *option;
};

// Throws `failure` (exit_usage) where the options ask for none, or for two under one name.
std::vector<result_file> results_of_export(const program &program, const trainer_options &options);

} // namespace trainc
