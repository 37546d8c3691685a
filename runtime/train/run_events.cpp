// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/run_events.h"

#include "runtime/files/run_files.h"
#include "runtime/process/host_memory.h"

#include <algorithm>
#include <cstring>
#include <set>

namespace trainc {
namespace {

constexpr const char *configuration_tag = "configuration", *sample_tag = "sample";

constexpr size_t bytes_of_scalars = 2048; // the numbers of a step, and more
constexpr size_t bytes_of_result = 64;    // and a tag
constexpr size_t shown_of_sample = 32768; // bytes: a page that a browser shows at once

// A row of a Markdown table, its value as code.
std::string table_row(const std::string &name, const std::string &value) {
  std::string code = without_controls(value);
  std::replace(code.begin(), code.end(), '`', '\'');
  return "| " + name + " | " + (code.empty() ? "" : "`" + code + "`") + " |\n";
}

std::string configuration_text(const run &run) {
  std::string text = "| what | value |\n|---|---|\n";
  for (const auto &[name, value] : describe(run.prog))
    text += table_row(name, value);
  text += table_row("ranks", std::to_string(run.ranks.size()));
  text += table_row("device", run.target.description());
  for (const auto &[name, value] : run.table.values(run.options))
    text += table_row("--" + name, value);
  return text;
}

// What people compare runs by.
table_rows hyperparameters_of(const run &run) {
  table_rows values = {{"optimizer", run.prog.optimizer_name}, {"loss", run.prog.loss_name}};
  std::set<std::string> names = {"learning-rate", "schedule",   "warmup-steps", "micro-batches",
                                 "clip-norm",     "clip-value", "seed"};
  for (const hyperparameter &value : run.prog.hyperparameters)
    names.insert(option_name(value));
  for (const auto &[name, value] : run.table.values(run.options))
    if (names.count(name) && !value.empty())
      values.emplace_back(name, value);
  values.emplace_back("ranks", std::to_string(run.ranks.size()));
  return values;
}

// Most bytes of a sample as it is shown: it may be all lines' ends, or no UTF-8 at all.
constexpr char indentation[] = "\n    ";
size_t most_shown(const trainer_options &options) {
  if (options.sample_every == 0)
    return 0;
  const size_t whole = options.prompt.size() + static_cast<size_t>(options.length) + 1;
  return std::min(whole, shown_of_sample) * strlen(indentation) + strlen(indentation);
}

} // namespace

void run_events::begin(const run &run, const run_plan &plan,
                       const std::vector<named_number> &results, int64_t batches) {
  const std::string folder = events_of(plan.choice.folder);
  first_step_ = plan.first;
  operations_ = run.prog.micro_batch_flops * static_cast<double>(batches) / run.ranks.size();
  size_t largest = bytes_of_scalars;
  for (const named_number &result : results) {
    result_tags_.push_back(std::string("held_out/") + result.name);
    largest += result_tags_.back().size() + bytes_of_result;
  }
  sample_.reserve(most_shown(run.options));
  try {
    there_ = cut_events(folder, plan.first > 0 ? plan.first : -1);
    if (run.options.no_tensorboard)
      return;
    if (run.options.histograms_every > 0)
      largest += most_histogram_bytes;
    file_.emplace(folder, largest + sample_.capacity());
    if (plan.first > 0) {
      file_->record().begin_steps(wall_seconds(), plan.first + 1);
      file_->write();
    }
    describe_run(run);
  } catch (const failure &error) {
    file_.reset();
    problem_ = error.message + "; training goes on without event files for TensorBoard";
  }
}

void run_events::describe_run(const run &run) {
  if (is_there(first_step_, configuration_tag))
    return;
  put(first_step_, [&](event_record &record) {
    record.text(configuration_tag, configuration_text(run));
    record.hyperparameters(hyperparameters_of(run));
  });
}

bool run_events::is_there(int64_t step, const std::string &tag) const {
  return step == first_step_ && std::find(there_.begin(), there_.end(), tag) != there_.end();
}

void run_events::write(const step_record &step, int64_t skipped_steps) {
  put(step.step, [&](event_record &record) {
    record.scalar("train/loss", step.loss);
    record.scalar("train/gradient_norm", step.gradient_norm);
    record.scalar("train/learning_rate", step.learning_rate);
    record.scalar("train/skipped_steps", static_cast<double>(skipped_steps));
    if (step.loss_scale > 0)
      record.scalar("train/loss_scale", step.loss_scale);
    record.scalar("speed/milliseconds", step.milliseconds);
    record.scalar("speed/samples_per_second", step.samples_per_second);
    if (step.tokens_per_second > 0)
      record.scalar("speed/tokens_per_second", step.tokens_per_second);
    if (operations_ > 0)
      record.scalar("speed/gflops_per_rank", operations_ / step.milliseconds * 1e-6);
    if (const exchange_times &of = step.exchange; of.end > 0) {
      record.scalar("exchange/begin", of.begin);
      record.scalar("exchange/end", of.end);
      record.scalar("exchange/exposed", of.exposed);
    }
    record.scalar("memory/resident_bytes", static_cast<double>(resident_bytes()));
  });
}

// What does not change from phase to phase is in the table at the start of the run.
void run_events::write_memory(int64_t step, const std::string &phase,
                              std::span<const std::pair<const char *, int64_t>> bytes) {
  put(step, [&](event_record &record) {
    for (const char *changing : {"activations", "stash", "resident", "device_used", "device_free"})
      for (const auto &[name, value] : bytes)
        if (value > 0 && strcmp(name, changing) == 0)
          record.scalar(("memory_" + phase + "/" + name).c_str(), static_cast<double>(value));
  });
}

void run_events::write_held_out(int64_t step, const std::vector<named_number> &results) {
  if (!file_ || is_there(step, result_tags_[0]))
    return;
  put(step, [&](event_record &record) {
    for (size_t i = 0; i < results.size(); ++i)
      record.scalar(result_tags_[i].c_str(), results[i].value);
  });
}

void run_events::write_norms(int64_t step, std::span<const group_norm> norms) {
  put(step, [&](event_record &record) {
    for (const group_norm &of : norms)
      record.scalar(("gradient_norm/" + of.group).c_str(), of.norm);
  });
}

void run_events::write_histogram(int64_t step, const std::string &tag,
                                 const tensor_statistics &of) {
  if (of.finite() > 0)
    put(step, [&](event_record &record) { record.histogram(tag.c_str(), of); });
}

// As a block of code: TensorBoard takes texts for Markdown. Control characters would end it.
void run_events::write_sample(int64_t step, const std::string &text) {
  if (!file_ || is_there(step, sample_tag))
    return;
  sample_ = indentation;
  for (const char byte : std::string_view(text).substr(0, shown_of_sample)) {
    const bool is_control = static_cast<unsigned char>(byte) < ' ' && byte != '\t';
    if (byte == '\n')
      sample_ += indentation;
    else
      sample_ += is_control ? ' ' : byte;
  }
  put(step, [&](event_record &record) { record.text(sample_tag, sample_); });
}

void run_events::write_share(int64_t step, double share) {
  put(step, [&](event_record &record) { record.scalar("speed/share_of_product", share); });
}

void run_events::look() {
  if (file_)
    file_->look();
}

std::string run_events::take_problem() {
  if (is_problem_said_ || (problem_.empty() && (!file_ || file_->error() == 0)))
    return "";
  is_problem_said_ = true;
  if (problem_.empty())
    problem_ = file_->path() + ": an event could not be written: " + strerror(file_->error()) +
               "; training goes on";
  return problem_;
}

} // namespace trainc
