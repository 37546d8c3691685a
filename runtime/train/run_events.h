// SPDX-License-Identifier: Apache-2.0
//
// What a run says to TensorBoard while it trains: the numbers of its log, its memory, samples of
// text and its configuration. Of the first rank. Nothing that goes wrong here ends a run.
#pragma once

#include "runtime/observe/event_file.h"
#include "runtime/run/step_log.h"
#include "runtime/train/run_plan.h"

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace trainc {

class run_events {
public:
  // Cuts what is there to the steps that were taken, and begins a file unless --no-tensorboard is
  // given. Before that, nothing is written. `results`: those of evaluations; `batches`: of a step.
  // Takes all memory.
  void begin(const run &run, const run_plan &plan, const std::vector<named_number> &results,
             int64_t batches);

  void write(const step_record &record, int64_t skipped_steps);
  // What this rank has at a phase of the step: bytes by name.
  void write_memory(int64_t step, const std::string &phase,
                    std::span<const std::pair<const char *, int64_t>> bytes);
  // What is made up for at the start of a run that goes on may be there.
  void write_held_out(int64_t step, const std::vector<named_number> &results);
  void write_norms(int64_t step, std::span<const group_norm> norms);
  // Where an element is finite.
  void write_histogram(int64_t step, const std::string &tag, const tensor_statistics &of);
  void write_sample(int64_t step, const std::string &text);
  // Of the last step: what it reached of the speed of a large matrix product.
  void write_share(int64_t step, double share);
  void look();
  // What went wrong, once; else empty, and nothing is allocated.
  std::string take_problem();

private:
  void describe_run(const run &run);
  // Writes an event of the step, to which `add` adds what it says.
  template <typename Add> void put(int64_t step, const Add &add) {
    if (!file_)
      return;
    file_->record().begin(wall_seconds(), step);
    add(file_->record());
    file_->write();
  }
  bool is_there(int64_t step, const std::string &tag) const;

  std::optional<event_file> file_;
  int64_t first_step_ = 0;               // after which the file begins
  std::vector<std::string> there_;       // tags of that step, in files of before
  std::vector<std::string> result_tags_; // of evaluations
  std::string sample_;                   // as it is shown
  double operations_ = 0;                // floating-point ones of a step and rank
  std::string problem_;
  bool is_problem_said_ = false;
};

} // namespace trainc
