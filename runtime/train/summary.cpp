// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/summary.h"
#include "runtime/byte_text.h"

#include "runtime/files/run_files.h"
#include "runtime/process/host_memory.h"
#include "runtime/process/signals.h"
#include "runtime/train/held_out_watch.h"

#include <cinttypes>
#include <cstdio>

namespace trainc {
namespace {

// Of shorter runs the machine is not measured: its first steps are most of them.
constexpr double measured_from_seconds = 2;

constexpr const char *ended_by_failure = "failed";

run_summary times_of(const run &run, const run_end &end) {
  auto spent = [&](activity what) { return run.watch.seconds_of(what); };
  run_summary summary = {end.steps,
                         end.skipped,
                         end.seconds,
                         peak_resident_bytes(),
                         spent(activity::computing) - end.data,
                         end.data,
                         spent(activity::exchanging) - end.exchanging,
                         spent(activity::evaluating) + end.exchanging,
                         spent(activity::saving)};
  const double in_steps = summary.seconds - summary.evaluating - summary.saving;
  summary.rate = run.prog.micro_batch_flops * static_cast<double>(end.batches_per_step) *
                 static_cast<double>(end.steps) / run.ranks.size() / in_steps;
  return summary;
}

// What the steps reach, and after the work of the run what the machine would. On a machine that is
// busier after the run than it was in the steps the product may be slower than they were: then it
// says nothing.
void show_rate(run &run, run_output &output, const run_summary &summary, int64_t last_step) {
  const double in_steps = summary.seconds - summary.evaluating - summary.saving;
  printf("%.3g GFLOP/s a rank in the steps", summary.rate * 1e-9);
  const double most = in_steps < measured_from_seconds ? 0 : run.target.product_rate();
  if (most > 0 && most >= summary.rate) {
    printf(", %.3f of the %.3g that a large matrix product reaches with its threads",
           summary.rate / most, most * 1e-9);
    output.log->write_machine(most, summary.rate / most);
    output.events.write_share(last_step, summary.rate / most);
  }
  printf("\n");
}

} // namespace

int summarize(run &run, const run_plan &plan, run_output &output, const run_end &end) {
  const bool is_whole = end.last_step >= plan.last;
  const bool is_stopped = end.requests != no_request && !is_whole;
  const bool is_signalled = end.requests & stop_request;
  int code = is_stopped ? exit_stopped : exit_success;
  if (!run.is_first())
    return code;
  run_summary summary = times_of(run, end);
  if (is_stopped)
    summary.ended = is_signalled ? "preempted" : "max-time";
  else if (!is_whole)
    summary.ended = "patience";
  if (end.skipped > 0 && end.skipped == plan.first + end.steps && !run.options.dry_run) {
    code = exit_diverged;
    summary.ended = ended_by_failure;
    summary.reason = "every step of the run was skipped: nothing was trained";
    run.warn(summary.reason);
  }
  const bool lacks_lines = output.log->error() != 0;
  summary.exit_code = lacks_lines ? exit_disk : code;
  output.log->write_summary(summary);
  if (is_stopped)
    printf("stopped by %s at step %" PRId64 " of %" PRId64 "; %s\n",
           is_signalled ? "a signal" : "--max-time", end.last_step, plan.last,
           end.saves ? "--resume latest goes on" : "without a checkpoint");
  else if (!is_whole)
    printf("ended at step %" PRId64 " of %" PRId64 ": %s\n", end.last_step, plan.last,
           text_of_patience(run.options, end.best).c_str());
  printf("%s in %.1f s: computing %.1f, data %.1f, exchanging gradients %.1f, evaluating %.1f, "
         "checkpoints %.1f\n",
         counted(summary.steps, "step").c_str(), summary.seconds, summary.computing, summary.data,
         summary.exchanging, summary.evaluating, summary.saving);
  if (summary.rate > 0)
    show_rate(run, output, summary, end.last_step);
  if (end.skipped > 0)
    printf("skipped, their loss or gradient not finite or a spike: %s of the run\n",
           counted(end.skipped, "step").c_str());
  if (end.loss_scale > 0)
    printf("scale of the loss: %g\n", end.loss_scale);
  printf("peak resident memory: %s\n", byte_text(summary.peak_resident_bytes).c_str());
  if (run.options.dry_run)
    printf("a dry run: nothing is kept of it\n");
  if (const std::string problem = output.events.take_problem(); !problem.empty())
    run.warn(problem);
  if (output.log->error() != 0) {
    run.warn(log_of(plan.choice.folder) + ": some lines of the log could not be written");
    code = exit_disk;
  }
  return code;
}

void log_failure(const run &run, run_output &output, const run_end &end, const failure &error) {
  if (!run.is_first() || !output.log)
    return;
  run_summary summary = times_of(run, end);
  summary.ended = ended_by_failure;
  summary.exit_code = error.code;
  summary.reason = error.message.empty() ? "another rank has said why"
                                         : error.message.substr(0, error.message.find('\n'));
  output.log->write_summary(summary);
}

} // namespace trainc
