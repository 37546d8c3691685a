// SPDX-License-Identifier: Apache-2.0
//
// The names of an output folder: what the model's file calls its nodes, values and weights, and
// what plans, IR and the emitted source call them. From plan/nodes.json, parameters.json and
// memory.json.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace trainc::inspect {

struct NodeNames {
  std::string node, operation;     // of the file
  std::string name;                // of plans; empty: it made no operation
  std::vector<std::string> values; // of the file
};

struct ParameterNames {
  std::string title;               // of plans
  std::vector<std::string> others; // of the file, of weights that are tied to it too
};

struct NamedStep {
  std::string entry;
  int number;
  std::vector<std::string> computes; // titles: `h.0.ln_1`, `gradient of h.0.ln_1`
};

struct NamedTensor {
  std::string entry, arena, name;
  int64_t offset, bytes;
  int first, last; // steps
};

struct ProgramNames {
  std::vector<NodeNames> nodes;
  std::vector<ParameterNames> parameters;
  std::vector<NamedStep> steps;
  std::vector<NamedTensor> tensors;
};

/// Throws `failure` (exit_data) with what is wrong of the folder's files.
ProgramNames readProgramNames(const std::string &folder);

/// What a title or tensor's name is about: `h.0.ln_1` of `gradient of recomputed h.0.ln_1`.
std::string subjectOf(const std::string &title);

} // namespace trainc::inspect
