// SPDX-License-Identifier: Apache-2.0
//
// What an evaluation tells, by name: its order, and how files and options call it.
#pragma once

#include "runtime/program.h"

#include <string>
#include <vector>

namespace trainc {

// The loss, of a cross entropy the perplexity, then the program's metrics: "loss", "accuracy".
std::vector<const char *> names_of_results(const program &program);

// A member of the log's lines and of a checkpoint's manifest: "held_out_accuracy", and as JSON
// text with its quotes.
constexpr const char *held_out_prefix = "held_out_";
std::string held_out_member(const char *result);

// What --keep-best compares by: "none", "loss", "held-out-loss", "held-out-accuracy", ...
std::vector<std::string> names_of_metrics(const program &program);

} // namespace trainc
