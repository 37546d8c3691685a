// SPDX-License-Identifier: Apache-2.0
//
// `profile`: what the steps of the plan take on this machine, measured in training steps whose rate
// is 0. As a table, as JSON, which trainc-simulate reads, and as a trace, which Perfetto shows.
#include "runtime/commands/commands.h"
#include "runtime/commands/costliest.h"
#include "runtime/data/made_up_batch.h"
#include "runtime/files/output_file.h"
#include "runtime/observe/trace_file.h"
#include "runtime/plan/read_plan.h"
#include "runtime/ranks/stage_layout.h"
#include "runtime/step/step_times.h"
#include "runtime/step/step_trace.h"
#include "runtime/step/update_scalars.h"

#include <cinttypes>
#include <cmath>
#include <nlohmann/json.hpp>

namespace trainc {
namespace {

using nlohmann::ordered_json;

constexpr int profile_version = 1; // of the file
constexpr int64_t warm_up_steps = 2;

void set_scalars(run &run, int64_t step, int64_t batches) {
  for (const hyperparameter &value : run.prog.hyperparameters)
    run.target.set_scalar(value.offset, value.default_value);
  set_update_scalars(run.target, run.prog,
                     {/*learning_rate=*/0, step, batches, /*clip_norm=*/INFINITY,
                      /*clip_value=*/INFINITY, /*loss_limit=*/INFINITY, run.options.loss_scale});
}

// A device with two places for batches gets it into both.
void make_up_batches(run &run, const loader &data) {
  for (int i = 0; i < 2; ++i) {
    for (int64_t number = 0; number < std::ssize(run.prog.inputs); ++number)
      if (const input_place &input = run.prog.inputs[number]; !data.fills(input))
        make_up(input, static_cast<uint64_t>(number), run.target.batch_place(input.tensor));
    run.target.send_batch();
    run.target.submit_batch();
  }
}

// Means of the times that a step does it, and how often that is.
ordered_json measured(const char *name, const measured_seconds &of, int64_t steps) {
  const auto times = static_cast<double>(of.times);
  return {{"action", name},
          {"times", times / static_cast<double>(steps)},
          {"seconds", of.working / times},
          {"waiting", of.waiting / times}};
}

ordered_json report_of(const step_times &times, const stage_layout &layout, int rank) {
  const measured_seconds &whole = times.whole_steps();
  ordered_json actions = ordered_json::array(), functions = ordered_json::array();
  measured_seconds rest = whole; // what is of no action
  for (const auto &[key, spent] : times.actions()) {
    actions.push_back(measured(name_of(key.kind), spent, whole.times));
    if (key.chunk >= 0)
      actions.back()["chunk"] = key.chunk;
    if (key.boundary >= 0)
      actions.back()["boundary"] = key.boundary;
    rest.working -= spent.working;
    rest.waiting -= spent.waiting;
  }
  actions.push_back(measured("rest", rest, whole.times));
  for (const auto &[name, function] : times.functions()) {
    ordered_json steps = ordered_json::array();
    double total = 0;
    for (double seconds : function.steps) {
      steps.push_back({{"seconds", seconds / static_cast<double>(function.times)}});
      total += seconds / static_cast<double>(function.times);
    }
    functions.push_back(
        {{"entry", name},
         {"times", static_cast<double>(function.times) / static_cast<double>(whole.times)},
         {"seconds", total},
         {"steps", std::move(steps)}});
  }
  ordered_json report = {{"rank", rank},
                         {"stage", layout.stage},
                         {"replica", layout.replica},
                         {"actions", std::move(actions)},
                         {"entries", std::move(functions)}};
  const exchange_times &of = times.exchanges();
  const auto steps = static_cast<double>(whole.times);
  if (of.end > 0)
    report["exchange"] = {{"begin", of.begin / steps},
                          {"end", of.end / steps},
                          {"exposed", of.exposed / steps},
                          {"adding", of.adding / steps},
                          {"overlapped", of.adding > 0 ? of.beside / of.adding : 0}};
  return report;
}

void add_words(ordered_json &step, const planned_entry &entry, const planned_step &planned) {
  const planned_kernel &kernel = entry.kernel_of(planned);
  step["step"] = entry.words_of(planned);
  step["kernel"] = kernel.text;
  step["flops"] = kernel.flops;
  step["bytes"] = double(kernel.bytes);
}

// Adds the words of each step, its kernel, operations and bytes, where they are known.
void add_plan(ordered_json &report, const plan &plan) {
  for (ordered_json &entry : report["entries"]) {
    const planned_entry *known = plan.find(entry["entry"].get<std::string>());
    for (size_t i = 0; known && i < std::min(entry["steps"].size(), known->steps.size()); ++i)
      add_words(entry["steps"][i], *known, known->steps[i]);
  }
}

void print_actions(const ordered_json &report, double step_seconds) {
  printf("\nstage %d, rank %d\n%-24s %6s %14s %10s %14s\n", report["stage"].get<int>(),
         report["rank"].get<int>(), "action", "times", "seconds", "of a step", "waiting");
  for (const ordered_json &action : report["actions"]) {
    auto name = action["action"].get<std::string>();
    for (const char *what : {"boundary", "chunk"}) // of a message the first says both
      if (action.contains(what)) {
        name += " " + std::to_string(action[what].get<int>());
        break;
      }
    const double times = action["times"], seconds = action["seconds"];
    printf("%-24s %6g %14.9f %8.2f %% %14.9f\n", name.c_str(), times, seconds,
           100 * times * seconds / step_seconds, action["waiting"].get<double>());
  }
}

void print_exchange(const ordered_json &of) {
  printf(
      "exchange of gradients: from %.9f to %.9f seconds of the step, exposed %.9f; additions take "
      "%.9f, of which %.1f %% are done before the backward pass ends\n",
      of["begin"].get<double>(), of["end"].get<double>(), of["exposed"].get<double>(),
      of["adding"].get<double>(), 100 * of["overlapped"].get<double>());
}

void print_entries(const ordered_json &report, double step_seconds) {
  for (const ordered_json &entry : report["entries"]) {
    const double times = entry["times"], seconds = entry["seconds"];
    printf("\n%s: %s, %.9f seconds, %g times a step: %.2f %%\n",
           entry["entry"].get<std::string>().c_str(),
           counted(static_cast<int64_t>(entry["steps"].size()), "step").c_str(), seconds, times,
           100 * times * seconds / step_seconds);
    int number = 0;
    for (const ordered_json &step : entry["steps"])
      printf("  %5d %14.9f %8.2f %%  %s\n", number++, step["seconds"].get<double>(),
             seconds > 0 ? 100 * step["seconds"].get<double>() / seconds : 0,
             step.value("step", std::string()).c_str());
  }
}

class profiler {
public:
  explicit profiler(run &run)
      : run_(run), layout_(run.prog, run.ranks.rank(), run.ranks.size()),
        data_(run.open_available_data()), trace_(run.ranks) {
    const int64_t micro_batches =
        run.prog.stages ? run.prog.stages->micro_batches : run.options.micro_batches;
    run.target.allocate(memory_use::training, micro_batches,
                        batch_feed::bytes(run.prog, run.target));
    run.load_initial_parameters();
    feed_.emplace(run.prog, run.target, data_);
    step_.emplace(run, *feed_, micro_batches, run.options.seed, run.options.mean_per_batch);
    make_up_batches(run, data_);
    run.print_table({}, run.options.micro_batches);
  }

  // The reports of all ranks, on the first.
  ordered_json measure() {
    step_times times(run_.target, traces() ? &trace_ : nullptr);
    run_.target.observe(&times);
    step_->observe(&times);
    feed_->record(traces() ? &trace_ : nullptr);
    for (int64_t i = 0; i < warm_up_steps + run_.options.measured_steps; ++i) {
      if (i == warm_up_steps) {
        times.forget();
        if (traces()) {
          trace_.make_room(warm_up_steps, run_.options.measured_steps);
          trace_.start();
        }
      }
      take_step(i + 1, times);
    }
    run_.target.observe(nullptr);
    step_->observe(nullptr);
    feed_->record(nullptr);
    seconds_ = times.whole_steps().working + times.whole_steps().waiting;
    seconds_ /= static_cast<double>(times.whole_steps().times);
    ordered_json reports = ordered_json::array();
    if (wants_details()) { // the activations are not needed any more
      product_rate_ = run_.target.product_rate();
      copy_rate_ = run_.target.copy_rate();
    }
    const std::string own = report_of(times, layout_, run_.ranks.rank()).dump();
    for (int rank = 0; rank < run_.ranks.size(); ++rank) {
      std::string text = run_.ranks.broadcast(own, rank);
      if (run_.is_first())
        reports.push_back(ordered_json::parse(text));
    }
    return reports;
  }

  bool traces() const { return !run_.options.trace.empty(); }
  bool wants_details() const { return traces() || !run_.options.output.empty(); }

  void show(ordered_json &reports) {
    plan_ = read_plan(run_.folder, [&](const std::string &text) { run_.warn(text); });
    printf("\nstep: %.9f seconds, mean of %" PRId64 " behind %" PRId64 "\n", seconds_,
           run_.options.measured_steps, warm_up_steps);
    for (ordered_json &report : reports) {
      add_plan(report, plan_);
      if (report["replica"].get<int>() > 0)
        continue;
      print_actions(report, seconds_);
      if (report.contains("exchange"))
        print_exchange(report["exchange"]);
      print_entries(report, seconds_);
    }
    if (traces())
      print_costliest(reports, plan_, seconds_, {product_rate_, copy_rate_});
  }

  // Collective.
  void write_trace() {
    std::optional<trace_file> file;
    trace_.gather(run_.prog, [&](rank_trace trace) {
      if (!file)
        file.emplace(run_.options.trace, plan_, product_rate_);
      file->add(std::move(trace));
    });
    if (!file) // of another rank
      return;
    file->publish();
    printf("\ntrace: %s\n", run_.options.trace.c_str());
  }

  void write(ordered_json reports) const {
    const program &program = run_.prog;
    ordered_json document = {{"version", profile_version},
                             {"model", program.model_name},
                             {"fingerprint", format_text("%016" PRIx64, program.fingerprint)},
                             {"graph", program.graph_digest},
                             {"target", program.target},
                             {"device", run_.target.description()},
                             {"shard", run_.options.shard == shard_kind::optimizer   ? "optimizer"
                                       : run_.options.shard == shard_kind::gradients ? "gradients"
                                                                                     : "none"},
                             {"stages", layout_.stages},
                             {"replicas", layout_.replicas},
                             {"micro_batches", step_->batches_per_step() / layout_.replicas},
                             {"steps", run_.options.measured_steps},
                             {"seconds", seconds_},
                             {"ranks", std::move(reports)}};
    if (product_rate_ > 0)
      document["product_rate"] = product_rate_;
    if (copy_rate_ > 0)
      document["copy_rate"] = copy_rate_;
    replace_file(run_.options.output,
                 document.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n");
    printf("\nprofile: %s\n", run_.options.output.c_str());
  }

private:
  void take_step(int64_t number, step_times &times) {
    run_.watch.begin_step(number);
    times.begin_step(number);
    set_scalars(run_, number, step_->batches_per_step());
    step_->with_update(data_part::all, (number - 1) * step_->batches_per_step(), number);
    times.end_step();
  }

  run &run_;
  stage_layout layout_;
  loader data_;
  std::optional<batch_feed> feed_;
  std::optional<gradient_step> step_;
  double seconds_ = 0; // of a step
  step_trace trace_;
  plan plan_; // on the first rank, once it is shown
  double product_rate_ = 0, copy_rate_ = 0;
};

} // namespace

int profile(run &run) {
  run.check_layout();
  profiler profiler(run);
  ordered_json reports;
  int code = run.watch.supervise([&] {
    reports = profiler.measure();
    return exit_success;
  });
  if (code == exit_success)
    run.ranks.together([&] {
      if (run.is_first())
        profiler.show(reports);
    });
  if (code == exit_success && profiler.traces())
    run.ranks.together([&] { profiler.write_trace(); });
  if (code == exit_success && !run.options.output.empty())
    run.ranks.together([&] {
      if (run.is_first())
        profiler.write(std::move(reports));
    });
  return code;
}

} // namespace trainc
