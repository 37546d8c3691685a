// SPDX-License-Identifier: Apache-2.0
//
// The machine-readable log: one JSON object per line, written at once, so that
// a reader or a crash never sees half a line that a later one continues.
#pragma once

#include "runtime/checkpoint/checkpoint_policy.h"
#include "runtime/files/appended_file.h"
#include "runtime/files/file_operations.h"
#include "runtime/files/json_number.h"
#include "runtime/process/last_words.h"
#include "runtime/ranks/exchange_times.h"

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace trainc {

struct group_norm {
  std::string group; // of parameters
  double norm;       // of the gradient
};

struct step_record {
  int64_t step;
  double loss, gradient_norm, learning_rate, milliseconds;
  double samples_per_second;
  double tokens_per_second;     // 0: the data are not tokens
  bool skipped = false;         // loss or gradient was not finite: nothing was updated
  exchange_times exchange = {}; // of this rank, since the step began
  std::span<const group_norm> group_norms = {};
  double loss_scale = 0; // of the step; 0: there is none
};

struct run_summary {
  int64_t steps, skipped_steps;
  double seconds;
  int64_t peak_resident_bytes;
  double computing = 0, data = 0, exchanging = 0, evaluating = 0, saving = 0; // of the seconds
  const char *ended = "done"; // or "preempted", "max-time", "patience", "failed"
  double rate = 0; // floating-point operations per second and rank in the steps; 0: not known
  int exit_code = 0;
  std::string reason = {}; // of a failure
};

// The log at `path` and what it was kept as where it was damaged, as far as they are there.
std::vector<std::string> files_of_log(const std::string &path);

// A log that has lines is that of a run, which no other may replace. So warnings wait for its first
// line, and a start that fails before leaves the file empty. While it is open it has the last words
// of the process: an end that has no summary has a line too.
class step_log final : private last_words {
public:
  // An empty path: no log. `resumed_step` above 0 keeps the lines up to that step;
  // otherwise the file begins anew. Its name is durable then. A file that has anything but lines as
  // they are written here is kept besides, under another name. Throws `failure` (exit_disk).
  step_log(const std::string &path, int64_t resumed_step,
           file_operations &files = real_file_operations());
  ~step_log();
  step_log(const step_log &) = delete;
  step_log &operator=(const step_log &) = delete;

  // What lines of evaluations will have; takes their memory.
  void expect(const std::vector<named_number> &results);

  void write(const step_record &record);
  // What a rank has at a phase of the step: bytes by name.
  void write_memory(int64_t step, int rank, const char *phase,
                    std::span<const std::pair<const char *, int64_t>> bytes);
  // As expected. Of a step whose evaluation is made up for the line may be there.
  void write_held_out(int64_t step, const std::vector<named_number> &results);
  void write_warning(int64_t step, const std::string &text);
  // The end: once, and not where the last words have said it.
  void write_summary(const run_summary &summary);
  // Behind the summary: operations per second of a large matrix product, and the steps' over these.
  void write_machine(double product_rate, double share);
  // Whether the file was removed, which then is an error as below.
  void look() { file_.look(); }
  // What a damaged file is kept as; empty: it was none.
  const std::string &damaged() const { return damaged_; }
  // Of the lines that were there up to the resumed step; 0: none has a step.
  int64_t last_step() const { return last_step_; }
  // An errno, where a line could not be written; the log goes on without it.
  int error() const { return file_.error(); }

private:
  void cut(const std::string &path, int64_t last, file_operations &files);
  void put(const char *line, int length, const step_record &record);
  void put(const char *line, int length);
  void put(const std::string &line) { put(line.data(), static_cast<int>(line.size())); }
  void say(int code, const char *why) override;
  bool take_end();

  appended_file file_{"\n"};
  std::atomic<bool> has_lines_ = false; // for the last words, of another thread
  std::string waiting_;                 // lines, for the first one
  int64_t last_step_ = 0, last_evaluated_ = 0;
  std::string damaged_;
  std::vector<std::string> held_out_members_;
  std::vector<char> held_out_line_;
};

} // namespace trainc
