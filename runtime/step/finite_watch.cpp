// SPDX-License-Identifier: Apache-2.0
//
// Infinities below zero alone may be a mask's, and are not a fault then. A model says -infinity, or
// selects or adds it, for a mask; what a logarithm or a division makes of finite numbers is not a
// mask, and neither is a gradient.
#include "runtime/step/finite_watch.h"

#include "runtime/files/data_types.h"
#include "runtime/plan/titles.h"
#include "runtime/words.h"

#include <algorithm>
#include <cinttypes>
#include <cstring>
#include <span>
#include <string_view>

namespace trainc {
namespace {

constexpr std::string_view logarithms[] = {"Log", "ReduceLogSum"},
                           divisions[] = {"Div", "Reciprocal", "Sqrt"}, selections[] = {"Where"},
                           exponentials[] = {"Exp", "Cosh", "Sinh"},
                           powers[] = {"Pow", "ReduceL2"}; // whose gradients are divisions

// Numbers above it have squares that f32 does not hold: operations are infinite because of them.
constexpr double grown = 1e18;

bool is_one_of(std::span<const std::string_view> all, const std::string &operation) {
  return std::find(all.begin(), all.end(), operation) != all.end();
}

bool is_below_zero(const tensor_statistics &has) {
  return has.nans == 0 && has.infinities == has.negative_infinities;
}

} // namespace

finite_watch::finite_watch(run &run) : plan_observer(run), taker_(most_elements()) {
  for (const planned_node &node : plan_.nodes)
    if (!node.name.empty())
      nodes_[node.name] = &node;
}

void finite_watch::entered(const char *name, const planned_function *function) {
  function_ = name;
  if (!function || strcmp(name, "forward_backward") != 0)
    return;
  for (const placed_tensor &tensor : function->arguments)
    if (tensor.arena == arena_kind::parameters || tensor.arena == arena_kind::activations)
      look_at(tensor, -1);
}

void finite_watch::made(int step, const std::vector<placed_tensor> &tensors) {
  for (const placed_tensor &tensor : tensors)
    look_at(tensor, step);
}

std::string finite_watch::computation::text() const {
  if (of.operation.empty())
    return "'" + name + "'";
  return "'" + name + "' (" + of.operation + (of.source.empty() ? "" : ", " + of.source) + ")";
}

// What one step fused; nothing where the plan does not say.
finite_watch::computations finite_watch::computed_in(int step) const {
  computations all;
  const planned_entry *of = plan_.find(function_);
  if (step < 0 || !of || static_cast<size_t>(step) >= of->steps.size())
    return all;
  for (const std::string &title : of->steps[static_cast<size_t>(step)].computes) {
    const auto known = nodes_.find(name_in(title));
    all.push_back({title, known == nodes_.end() ? planned_node() : *known->second});
  }
  return all;
}

// Whether -infinity there may come from a mask. What is selected beside a logarithm in the same
// step hides which of them made it; a division may have got it from a mask, unless it is alone and
// none came before.
bool finite_watch::may_be_mask(const std::string &tensor, const computations &computed) const {
  if (is_gradient(tensor))
    return false;
  if (has_one_of(computed, logarithms))
    return has_one_of(computed, selections);
  return computed.size() != 1 || !has_one_of(computed, divisions) || !masked_.empty();
}

bool finite_watch::has_one_of(const computations &computed,
                              std::span<const std::string_view> operators) {
  return std::any_of(computed.begin(), computed.end(), [&](const computation &each) {
    return is_one_of(operators, each.of.operation);
  });
}

std::string finite_watch::text_of(const computations &computed) {
  if (computed.empty() || (computed.size() == 1 && computed.front().of.operation.empty()))
    return "";
  std::vector<std::string> words;
  for (const computation &each : computed)
    words.push_back(each.text());
  return ", where " + first_words_of(words) +
         (words.size() == 1 ? " is computed" : " are computed");
}

std::string finite_watch::advice_on(const std::string &tensor, const computations &computed) const {
  // What is infinite already is not so because of a division after it.
  const bool is_of_division = !has_grown_ && !has_one_of(computed, exponentials);
  for (const computation &each : computed)
    if (is_one_of(logarithms, each.of.operation) ||
        (is_of_division && is_one_of(divisions, each.of.operation)) ||
        (is_of_division && is_gradient(each.name) && is_one_of(powers, each.of.operation)))
      return "an input of " + computation{name_in(each.name), each.of}.text() +
             " that keeps away from 0, such as by an epsilon";
  for (const computation &each : computed)
    if (each.name == tensor && !each.of.operation.empty())
      return "smaller numbers in " + each.text() +
             ": a lower --learning-rate, --clip-norm 1, or data of a smaller scale";
  return "";
}

// `step` is the one that made it; below 0: it was there before.
void finite_watch::look_at(const placed_tensor &tensor, int step) {
  if (!found_.empty() || is_integer(tensor.type) || tensor.type == data_type::boolean)
    return;
  const int64_t elements = tensor.elements();
  const tensor_statistics has = taker_.of(tensor.type, read(tensor), elements);
  if (has.nans == 0 && has.infinities == 0)
    return note(tensor.name, has);
  const computations computed = computed_in(step);
  if (!is_below_zero(has) || !may_be_mask(tensor.name, computed))
    return find(tensor, has, computed);
  if (masked_.empty())
    masked_ = "'" + tensor.name + "' has -infinity before it" + text_of(computed);
  note(tensor.name, has);
}

void finite_watch::note(const std::string &tensor, const tensor_statistics &has) {
  has_grown_ |= has.largest > grown;
  if (const double largest = std::max(has.largest, -has.least); largest > largest_) {
    largest_ = largest;
    of_largest_ = tensor;
  }
}

void finite_watch::find(const placed_tensor &tensor, const tensor_statistics &has,
                        const computations &computed) {
  found_ = "'" + tensor.name + "'";
  if (micro_batch_ > 0)
    found_ += format_text(" of micro-batch %" PRId64, micro_batch_ + 1);
  found_ += " has";
  if (has.nans > 0)
    found_ += format_text(" %" PRId64 " NaN", has.nans);
  if (has.infinities > 0)
    found_ += format_text("%s %" PRId64 " %s", has.nans > 0 ? " and" : "", has.infinities,
                          is_below_zero(has) ? "-infinity" : "infinite");
  found_ += format_text(" of %" PRId64 " elements", tensor.elements()) + text_of(computed);
  if (!of_largest_.empty())
    found_ += format_text("; the largest number before it is %.3g, in '%s'", largest_,
                          of_largest_.c_str());
  if (!masked_.empty())
    found_ += "; " + masked_ + ", as a mask may";
  advice_ = advice_on(tensor.name, computed);
}

} // namespace trainc
