// SPDX-License-Identifier: Apache-2.0
//
// Steps of a model without ranks, files of data or a schedule.
#include "runtime/library/instance.h"

#include "runtime/data/index_range.h"
#include "runtime/failure.h"
#include "runtime/library/own_team.h"
#include "runtime/process/cpu_check.h"
#include "runtime/step/update_scalars.h"
#include "runtime/switches.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace trainc {
namespace {

constexpr const char *learning_rate_name = "learning_rate", *clip_norm_name = "clip_norm",
                     *clip_value_name = "clip_value", *loss_scale_name = "loss_scale",
                     *step_name = "step", *skipped_name = "skipped_steps";

memory_use use_of(const program &program, const instance_options &options) {
  return options.forward_only || !program.forward_backward ? memory_use::forward
                                                           : memory_use::training;
}

// Before anything is made of them.
const program &checked(const program &program, const instance_options &options) {
  std::string missing;
  if (!cpu_supports(program.march, &missing))
    throw failure(exit_machine, std::string("this library was built for ") + program.march +
                                    "; this CPU lacks " + missing +
                                    "\n  try: trainc --march x86-64-v3");
  if (options.micro_batches < 1 || options.micro_batches > 1 << 20)
    throw failure(exit_usage, format_text("micro_batches is %lld\n  try: a number from 1 on",
                                          static_cast<long long>(options.micro_batches)));
  if (options.threads < 0)
    throw failure(exit_usage, "threads is negative\n  try: 0, for all cores, or a number of them");
  if (reinterpret_cast<uintptr_t>(options.host.memory) % 64 != 0)
    throw failure(exit_usage, "memory does not begin at a multiple of 64 bytes\n  try: "
                              "aligned_alloc(64, BYTES)");
  if (program.target == std::string_view("cpu") && (options.host.device || options.host.stream))
    throw failure(exit_usage, "device and stream are of a library for a GPU; this one is for the "
                              "CPU\n  try: 0 for both, or trainc --target cuda");
  const auto has_weight = [](const loss_part &part) { return part.weight.name != nullptr; };
  if (options.micro_batches > 1 && !options.mean_per_batch &&
      std::ranges::any_of(program.loss_parts, has_weight))
    throw failure(exit_usage, "the loss has parts that are divided by what counts in the whole "
                              "step, which nobody knows before its last micro-batch\n  try: "
                              "mean_per_batch, or one micro-batch");
  return program;
}

} // namespace

library_instance::library_instance(const program &program, const instance_options &options)
    : program_(checked(program, options)), options_(options), ranks_(communicator::alone()),
      target_([&]() -> device {
        defaults_.threads = options.threads;
        return device(program, defaults_, ranks_, /*computes=*/true, &options.host);
      }()),
      kept_(target_, program, options.micro_batches),
      losses_(static_cast<size_t>(options.micro_batches)), learning_rate_(defaults_.learning_rate),
      clip_norm_(defaults_.clip_norm), clip_value_(defaults_.clip_value),
      hyperparameters_(program.hyperparameters.size()) {
  threads_ = own_team::current_threads();
  target_.allocate(use_of(program, options), options.micro_batches);
  if (program.loss_scale_offset >= 0)
    position_.scale = {defaults_.loss_scale};
  collect_tensors();
  if (!options.no_files)
    load_initial_parameters();
}

int64_t library_instance::memory_bytes(const program &program, const instance_options &options) {
  trainer_options defaults;
  communicator alone = communicator::alone();
  host_program host = options.host;
  host.memory = nullptr;
  device target(checked(program, options), defaults, alone, /*computes=*/true, &host);
  return target.memory_bytes(use_of(program, options), options.micro_batches);
}

// ---- work

void library_instance::check_trains(const char *what) const {
  if (use_of(program_, options_) == memory_use::forward)
    throw failure(exit_usage,
                  std::string(what) + ": the instance is for the forward pass alone" +
                      (program_.forward_backward ? "\n  try: without forward_only"
                                                 : "\n  try: trainc without --forward-only"));
}

void library_instance::check_set(bool with_labels) const {
  if (!has_parameters_)
    throw failure(exit_usage,
                  "parameters: none were written, and a minimal library has no file of "
                  "them\n  try: write_all of the parameters first; or no_files, for zeros");
  std::string missing;
  for (size_t i = 0; i < inputs_.size(); ++i)
    if (!is_set_[i] && (with_labels || !inputs_[i]->is_label))
      missing += (missing.empty() ? "'" : ", '") + std::string(inputs_[i]->tensor.name) + "'";
  if (!missing.empty())
    throw failure(exit_usage, "input " + missing +
                                  ": was never set\n  try: set_input, or writing "
                                  "to its data");
}

void library_instance::check_inputs(bool with_labels) {
  check_set(with_labels);
  for (const input_place *input : inputs_) {
    if (input->index_bound == 0)
      continue;
    const char *place = target_.places()[input->tensor.arena] + input->tensor.offset;
    const int64_t size = bytes_of(input->tensor.type);
    in_transfers(byte_count(input->tensor), [&](int64_t begin, int64_t bytes) {
      const char *values = target_.read(place + begin, bytes);
      const int64_t found = first_outside(*input, values, bytes / size);
      if (found == bytes / size)
        return;
      const long long element = begin / size + found;
      throw failure(exit_data,
                    std::string("input '") + input->tensor.name + "': " +
                        outside_text(*input, values, found, format_text("element %lld", element)) +
                        "\n  try: other data");
    });
  }
}

instance_step library_instance::take_step() {
  check_trains("step");
  if (options_.micro_batches != 1)
    throw failure(exit_usage, "step: the instance has several micro-batches a step\n  try: "
                              "forward_backward for each, then update");
  check_settings();
  check_inputs(/*with_labels=*/true); // before what there was is forgotten
  done_ = 0;
  pass();
  return update();
}

double library_instance::forward_backward() {
  check_trains("forward_backward");
  if (is_complete())
    throw failure(exit_usage, format_text("forward_backward: the step has its %lld micro-batches"
                                          "\n  try: update, or discard",
                                          static_cast<long long>(done_)));
  check_inputs(/*with_labels=*/true);
  return pass();
}

void library_instance::round_parameters() {
  if (has_lent_parameters_)
    target_.note_parameters_written();
  target_.round_parameters();
}

double library_instance::pass() {
  round_parameters();
  if (done_ == 0)
    scale_ = position_.scale.factor;
  if (program_.loss_scale_offset >= 0)
    target_.set_scalar(program_.loss_scale_offset, scale_);
  const bool is_alone = options_.micro_batches == 1 && !program_.loss_parts.empty();
  const bool is_mean = options_.mean_per_batch || is_alone;
  set_batch_state(target_, program_, /*is_faulty=*/false, is_mean);
  const double scale = is_mean ? 1 : static_cast<double>(options_.micro_batches); // of a sum
  for (const loss_part &part : program_.loss_parts)
    if (part.scale_offset >= 0)
      target_.set_scalar(part.scale_offset, scale);
  set_random_key(target_, program_, options_.seed, position_.step + 1, done_);
  target_.run(entry::forward_backward);
  kept_.keep_losses(done_);
  target_.finish();
  if (const std::string problem = kept_.index_problem(done_); !problem.empty())
    throw failure(exit_data, problem); // what was added before stays
  target_.sum_gradients(done_);
  target_.finish();
  const weighed_mean loss = kept_.loss(done_);
  losses_[static_cast<size_t>(done_++)] = loss;
  return loss.mean;
}

instance_step library_instance::update() {
  check_trains("update");
  if (!is_complete())
    throw failure(exit_usage, format_text("update: the step has %lld of its %lld micro-batches\n"
                                          "  try: forward_backward first, or other micro_batches",
                                          static_cast<long long>(done_),
                                          static_cast<long long>(options_.micro_batches)));
  check_settings();
  for (int64_t i = 0; i < std::ssize(program_.hyperparameters); ++i)
    target_.set_scalar(program_.hyperparameters[i].offset, value_of(i));
  const int64_t updates = position_.step - position_.skipped_steps + 1;
  set_update_scalars(target_, program_,
                     {learning_rate_, updates, options_.micro_batches, clip_norm_, clip_value_,
                      /*loss_limit=*/INFINITY, scale_});
  target_.run(entry::update);
  kept_.keep_norm();
  target_.finish();
  instance_step result = {0, kept_.norm(), std::isfinite(kept_.norm())};
  double weight = 0;
  for (const weighed_mean &loss : losses_) {
    result.loss += loss.part();
    weight += loss.weight;
  }
  result.loss /= weight;
  done_ = 0;
  ++position_.step;
  position_.batches_taken += options_.micro_batches;
  position_.skipped_steps += result.applied ? 0 : 1;
  position_.loss = result.loss;
  if (result.applied)
    position_.losses.add(result.loss);
  if (std::isfinite(result.loss))
    position_.scale.note(result.applied, defaults_.scale_rules);
  return result;
}

double library_instance::evaluate() {
  if (done_ > 0)
    throw failure(exit_usage, format_text("evaluate: %lld micro-batches of a step wait for their "
                                          "update\n  try: update, or discard",
                                          static_cast<long long>(done_)));
  check_inputs(/*with_labels=*/false);
  round_parameters();
  evaluate_batch(target_, program_);
  return program_.loss.name ? mean_of(target_, program_.loss, 1) : NAN;
}

weighed_mean library_instance::metric(std::string_view name) {
  std::string known;
  for (const metric_place &of : program_.metrics) {
    if (name == of.values.name)
      return {mean_of(target_, of.values, element_count(of.values)),
              of.weight.name ? mean_of(target_, of.weight, 1) : 1};
    known += (known.empty() ? "" : ", ") + std::string(of.values.name);
  }
  throw failure(exit_usage, "metric '" + std::string(name) + "': the program has " +
                                (known.empty() ? "none" : "these: " + known) +
                                "\n  try: the name of one of them");
}

// ---- settings

double *library_instance::setting(std::string_view name) {
  if (name == learning_rate_name)
    return &learning_rate_;
  if (name == clip_norm_name)
    return &clip_norm_;
  if (name == clip_value_name)
    return &clip_value_;
  if (name == loss_scale_name && program_.loss_scale_offset >= 0)
    return &position_.scale.factor;
  return nullptr;
}

static std::string unknown_setting(const program &program, std::string_view name) {
  std::string known = std::string(learning_rate_name) + ", " + clip_norm_name + ", " +
                      clip_value_name + ", " + step_name + ", " + skipped_name +
                      (program.loss_scale_offset >= 0 ? ", loss_scale" : "");
  for (const hyperparameter &value : program.hyperparameters)
    known += std::string(", ") + value.name;
  return "setting '" + std::string(name) + "': is not among " + known + "\n  try: one of these";
}

void library_instance::set(std::string_view name, double value) {
  const auto refuse = [&](const char *wanted) {
    throw failure(exit_usage, format_text("setting '%s': is %g\n  try: %s",
                                          std::string(name).c_str(), value, wanted));
  };
  if (name == step_name ||
      name == skipped_name) { // what a caller who keeps the state keeps besides
    if (!(value >= 0 && value <= 1e15 && value == std::floor(value)))
      refuse("a whole number from 0 on");
    if (name == skipped_name ? value > static_cast<double>(position_.step)
                             : value < static_cast<double>(position_.skipped_steps))
      refuse("step first, and no more skipped_steps than steps");
    (name == step_name ? position_.step : position_.skipped_steps) = static_cast<int64_t>(value);
    return;
  }
  if (double *own = setting(name)) {
    const bool may_be_infinite = own == &clip_norm_ || own == &clip_value_;
    const bool is_scale = own == &position_.scale.factor;
    if (!(value >= 0) || (is_scale && value == 0) || (std::isinf(value) && !may_be_infinite))
      refuse(is_scale ? "a finite number above 0" : "a finite number from 0 on");
    *own = value;
    return;
  }
  for (int64_t i = 0; i < std::ssize(program_.hyperparameters); ++i) {
    const hyperparameter &of = program_.hyperparameters[i];
    if (name != of.name)
      continue;
    const bool is_below = of.may_be_limit ? value <= of.limit : value < of.limit;
    if (!(value >= of.least) || !is_below || !std::isfinite(value))
      refuse(format_text("a number from %g on, %s %g", of.least,
                         of.may_be_limit ? "at most" : "below", of.limit)
                 .c_str());
    hyperparameters_[static_cast<size_t>(i)] = value;
    return;
  }
  throw failure(exit_usage, unknown_setting(program_, name));
}

void library_instance::check_settings() const {
  check_switches(
      program_, [&](int64_t i) { return value_of(i); },
      [&](int64_t i) { return std::string("'") + program_.hyperparameters[i].name + "'"; },
      [](const std::string &text) { throw failure(exit_usage, "setting " + text); });
}

double library_instance::value_of(int64_t hyperparameter) const {
  const auto rate = [&](const std::optional<double> &own) { return own.value_or(learning_rate_); };
  return hyperparameter_value(program_, hyperparameters_, hyperparameter, rate);
}

double library_instance::get(std::string_view name) const {
  if (name == step_name || name == skipped_name)
    return static_cast<double>(name == step_name ? position_.step : position_.skipped_steps);
  if (const double *own = const_cast<library_instance *>(this)->setting(name))
    return *own;
  for (int64_t i = 0; i < std::ssize(program_.hyperparameters); ++i)
    if (name == program_.hyperparameters[i].name)
      return value_of(i);
  throw failure(exit_usage, unknown_setting(program_, name));
}

} // namespace trainc
