// SPDX-License-Identifier: Apache-2.0
//
// What the plan beside the trainer says of each step of the entry functions: its words, what it
// computes, its operations and the bytes it moves, the memory alive.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace trainc {

// What is not known is empty or below 0.
struct planned_step {
  std::string words;              // the line of plan/steps.txt, without its number
  std::string kernel;             // of the words, without what is computed
  std::vector<std::string> nodes; // all that it computes, the one that names it first
  double flops = -1, bytes = -1;
  int64_t alive = -1; // bytes of activations and stash that the function needs then
};

// Of a node's name, which "gradient of " and "recomputed " stand before.
size_t length_of_prefix(const std::string &node);
// The path of the module that it is in; empty: none.
std::string module_of(const std::string &node);

// By the function's name and the step's number.
using planned_steps = std::map<std::string, std::vector<planned_step>>;

// Words alone. Nothing where there is no file.
planned_steps read_step_words(const std::string &path);
// Words of the folder's steps.txt and, where asked for, all details. `warn` hears of what could not
// be used.
planned_steps read_planned_steps(const std::string &folder, bool has_details,
                                 const std::function<void(const std::string &)> &warn);
// What made a node of the model: its operator, and its line of Python, `model.py:35`, or nothing.
struct node_origin {
  std::string operation, source;
};
// By the names that steps have for the nodes. Nothing where the folder's nodes.json does not say.
std::map<std::string, node_origin> read_origins(const std::string &folder);
// Adds what nodes.json, kernels.json and memory.json of the folder say. Returns which of them could
// not be used.
std::vector<std::string> add_details(planned_steps &functions, const std::string &folder);

} // namespace trainc
