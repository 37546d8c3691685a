// SPDX-License-Identifier: Apache-2.0
//
// Infinities below zero alone are not a fault yet: masks have them. The first tensor that has some
// is named besides, since a logarithm of zero looks the same.
#include "runtime/step/finite_watch.h"

#include "runtime/files/data_types.h"
#include "runtime/observe/step_plan.h"
#include "runtime/words.h"

#include <algorithm>
#include <cinttypes>
#include <cstring>

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

// The computations that one step fused; nothing where the plan does not say.
std::vector<std::string> finite_watch::nodes_of(int step) const {
  const std::string folder = run_.folder + "/plan";
  planned_steps plan = read_step_words(folder + "/steps.txt");
  add_details(plan, folder);
  const std::vector<planned_step> &steps = plan[function_];
  return step >= 0 && static_cast<size_t>(step) < steps.size()
             ? steps[static_cast<size_t>(step)].nodes
             : std::vector<std::string>();
}

// `step` is the one that made it; below 0: it was there before.
void finite_watch::look_at(const planned_tensor &tensor, int step) {
  if (!found_.empty() || is_integer(tensor.type) || tensor.type == data_type::boolean)
    return;
  const int64_t elements = tensor.elements();
  const tensor_statistics has = taker_.of(
      tensor.type, read(tensor.arena, tensor.offset, elements * bytes_of(tensor.type)), elements);
  if (has.nans == 0 && has.infinities == has.negative_infinities) {
    if (has.infinities > 0 && masked_.empty())
      masked_ = tensor.name;
    if (const double largest = std::max(has.largest, -has.least); largest > largest_) {
      largest_ = largest;
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
  if (has.infinities > 0)
    found_ += format_text("%s %" PRId64 " infinite", has.nans > 0 ? " and" : "", has.infinities);
  found_ += format_text(" of %" PRId64 " elements", elements);
  if (const std::vector<std::string> nodes = nodes_of(step); nodes.size() > 1)
    found_ += ", where " + first_of(nodes) + " are computed";
  if (!of_largest_.empty())
    found_ += format_text("; the largest number before it is %.3g, in '%s'", largest_,
                          of_largest_.c_str());
  if (!masked_.empty())
    found_ += "; '" + masked_ + "' has -infinity before, as masks do";
}

} // namespace trainc
