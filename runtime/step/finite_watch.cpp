// SPDX-License-Identifier: Apache-2.0
//
// Infinities below zero alone are no fault yet: masks have them. The first tensor that has some is
// named besides, since a logarithm of zero looks the same.
#include "runtime/step/finite_watch.h"

#include "runtime/files/data_types.h"
#include "runtime/words.h"

#include <cinttypes>
#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

namespace trainc {

void finite_watch::entered(const char *name, const planned_function *function) {
  function_ = name;
  if (!function || strcmp(name, "forward_backward") != 0)
    return;
  for (const planned_tensor &tensor : function->arguments)
    if (tensor.arena == arena_kind::parameters || tensor.arena == arena_kind::activations)
      look_at(tensor, -1);
}

void finite_watch::made(int step, const std::vector<planned_tensor> &tensors) {
  for (const planned_tensor &tensor : tensors)
    look_at(tensor, step);
}

// The computations that one step fused, in their order; nothing where the plan does not say.
std::vector<std::string> finite_watch::nodes_of(int step) const {
  if (step < 0)
    return {};
  std::ifstream file(run_.folder + "/plan/nodes.json");
  const auto plan = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  try {
    for (const auto &entry : plan.at("entries"))
      if (entry.at("entry") == function_)
        return entry.at("computes").at(static_cast<size_t>(step));
  } catch (const nlohmann::json::exception &) { // of another version
  }
  return {};
}

finite_watch::counts finite_watch::count(const planned_tensor &tensor) {
  const int64_t elements = tensor.elements();
  const char *data = read(tensor.arena, tensor.offset, elements * bytes_of(tensor.type));
  counts result = {};
  for (int64_t i = 0; i < elements; ++i) {
    const double value = number_at(tensor.type, data + i * bytes_of(tensor.type));
    if (std::isnan(value))
      ++result.nans;
    else if (std::isinf(value))
      ++(value > 0 ? result.above : result.below);
    else
      result.largest = std::max(result.largest, std::abs(value));
  }
  return result;
}

// `step` is the one that made it; below 0: it was there before.
void finite_watch::look_at(const planned_tensor &tensor, int step) {
  if (!found_.empty() || is_integer(tensor.type) || tensor.type == data_type::boolean)
    return;
  const counts has = count(tensor);
  if (has.nans + has.above == 0) {
    if (has.below > 0 && masked_.empty())
      masked_ = tensor.name;
    if (has.largest > largest_) {
      largest_ = has.largest;
      of_largest_ = tensor.name;
    }
    return;
  }
  found_ = "'" + tensor.name + "'";
  if (micro_batch_ > 0)
    found_ += format_text(" of micro-batch %" PRId64, micro_batch_ + 1);
  found_ += " has";
  if (has.nans > 0)
    found_ += format_text(" %" PRId64 " NaN", has.nans);
  if (has.above + has.below > 0)
    found_ +=
        format_text("%s %" PRId64 " infinite", has.nans > 0 ? " and" : "", has.above + has.below);
  found_ += format_text(" of %" PRId64 " elements", tensor.elements());
  if (const std::vector<std::string> nodes = nodes_of(step); nodes.size() > 1)
    found_ += ", where " + first_of(nodes) + " are computed";
  if (!of_largest_.empty())
    found_ += format_text("; the largest number before it is %.3g, in '%s'", largest_,
                          of_largest_.c_str());
  if (!masked_.empty())
    found_ += "; '" + masked_ + "' has -infinity before, as masks do";
}

} // namespace trainc
