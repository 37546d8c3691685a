// SPDX-License-Identifier: Apache-2.0
//
// `evaluate` and `gradients`: numbers about data, without changing parameters.
#include "runtime/checkpoint/number_class.h"
#include "runtime/commands/commands.h"
#include "runtime/commands/evaluation.h"
#include "runtime/files/output_file.h"
#include "runtime/files/safetensors.h"
#include "runtime/options/run_configuration.h"
#include "runtime/ranks/stage_layout.h"
#include "runtime/run/run_choice.h"
#include "runtime/run/step_log.h"
#include "runtime/step/gradient_step.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

namespace trainc {
namespace {

// Brings a piece of summed gradients to the mean.
void scale(data_type type, char *piece, int64_t bytes, double weight) {
  auto divide = [&](auto *values, auto factor) {
    for (int64_t i = 0; i < bytes / static_cast<int64_t>(sizeof *values); ++i)
      values[i] *= factor;
  };
  if (type == data_type::f64)
    divide(reinterpret_cast<double *>(piece), 1.0 / weight);
  else
    divide(reinterpret_cast<float *>(piece), 1.0f / static_cast<float>(weight));
}

// Writes gradients that are sums over batches of this weight together as means. Returns how many
// tensors have numbers that are not finite.
size_t write_gradients(const std::string &path, const std::vector<tensor_view> &tensors,
                       double weight, arena_access &access,
                       const std::map<std::string, std::string> &metadata) {
  size_t unsound = 0;
  output_file file(path);
  file.write(safetensors_header(tensors, metadata));
  std::vector<char> mean;
  for (const tensor_view &tensor : tensors) {
    bool is_finite = true;
    in_transfers(tensor.bytes, [&](int64_t begin, int64_t bytes) {
      const char *sum = access.read(tensor.data + begin, bytes);
      mean.assign(sum, sum + bytes);
      if (weight != 1)
        scale(tensor.type, mean.data(), bytes, weight);
      is_finite &= !holds(number_class::not_finite, tensor.type, mean.data(), bytes);
      file.write(mean.data(), bytes);
    });
    unsound += is_finite ? 0 : 1;
  }
  file.publish();
  return unsound;
}

// What a run was trained on says less of it than what it held out.
void warn_of_trained_part(const run &run, const loader &data) {
  const std::string configuration = configuration_to_read(run.prog, run.options);
  if (configuration.empty())
    return;
  const run_configuration kept = read_configuration(configuration);
  double holdout = 0;
  if (!kept.data || !read_value(kept.option("holdout"), {0, 1}, holdout).empty() || holdout == 0 ||
      (run.options.holdout > 0 && run.options.holdout <= holdout))
    return;
  for (const data_identity &file : data.identities())
    for (const data_identity &own : *kept.data)
      if (file.input == own.input && file.bytes == own.bytes && file.digest == own.digest)
        return run.warn(
            format_text("%s: held out %g of these data; samples are evaluated too that it was "
                        "trained on\n  try: --holdout %g",
                        configuration.c_str(), holdout, holdout));
}

} // namespace

int evaluate(run &run) {
  const data_request request = run.request_of_data(/*shuffle=*/false, 0, /*partial_batches=*/true);
  loader data = run.open(request);
  data_part part = run.options.holdout > 0 ? data_part::held_out : data_part::all;
  int64_t batches = 0;
  run.ranks.together([&] { batches = data.batches(part); });
  bool limited = run.options.batches > 0;
  if (limited)
    batches = std::min(batches, run.options.batches);
  run.target.allocate(memory_use::forward, 1, batch_feed::bytes(run.prog, run.target));
  std::string parameters = run.load_chosen_parameters();
  run.ranks.together([&] {
    try {
      if (run.is_first())
        warn_of_trained_part(run, data);
    } catch (const failure &error) { // a configuration that is damaged hinders no evaluation
      run.warn(error.message);
    }
  });
  batch_feed feed(run.prog, run.target, data);
  evaluation evaluated(run, data, feed);
  int code = run.watch.supervise([&] {
    evaluated(part, batches);
    return exit_success;
  });
  if (code != exit_success || !run.is_first())
    return code;

  int64_t samples = std::min(batches * data.samples_per_batch(), data.samples(part));
  char number[32];
  if (const std::string lack = evaluated.lack_of_labels(); !lack.empty())
    run.warn("no valid labels: " + lack +
             " of these samples, so there is no mean\n  try: data with labels that count");
  else if (!std::isfinite(evaluated.results()[0].value)) {
    const std::string found = run.not_finite_data(request, part, 0, batches);
    run.warn("the loss of these data is not finite" +
             (found.empty() ? "\n  try: --checkpoint of an earlier step"
                            : ": " + found + "\n  try: data without NaN and infinities"));
    code = exit_diverged;
  }
  if (run.options.json) {
    nlohmann::ordered_json line;
    for (const named_number &result : evaluated.results())
      line[result.name] = result.value;
    line.update({{"batches", batches}, {"samples", samples}, {"parameters", parameters}});
    printf("%s\n", line.dump().c_str());
    return code;
  }
  printf("parameters  %s\nsamples     %" PRId64 " in %s\n", parameters.c_str(), samples,
         counted(batches, "batch").c_str());
  for (const named_number &result : evaluated.results()) {
    std::string name = result.name;
    std::replace(name.begin(), name.end(), '_', ' ');
    printf("%-10s  %s\n", name.c_str(), json_number(number, result.value));
  }
  if (int64_t rest = data.left_out(part); rest > 0 && !limited)
    printf("%s\n", left_out_text(rest, /*of_each_epoch=*/false).c_str());
  return code;
}

int gradients(run &run) {
  run.check_layout();
  std::string path = run.options.output;
  loader data = run.open(run.request_of_data(/*shuffle=*/false, 0, /*partial_batches=*/false));
  int64_t micro_batches = run.options.micro_batches, first = run.options.batch;
  const stage_layout layout(run.prog, run.ranks.rank(), run.ranks.size());
  const int64_t count = micro_batches * layout.replicas;
  run.ranks.together([&] {
    if (int64_t batches = data.batches(data_part::all); first + count > batches)
      throw failure(exit_data, format_text("batches %" PRId64 " to %" PRId64
                                           " are asked for; the data has %" PRId64,
                                           first, first + count - 1, batches));
  });
  run.target.allocate(memory_use::training, micro_batches, batch_feed::bytes(run.prog, run.target));
  std::string parameters = run.load_chosen_parameters();
  batch_feed feed(run.prog, run.target, data);
  gradient_step step(run, feed, micro_batches, run.options.seed, run.options.mean_per_batch);
  step_result result;
  int code = run.watch.supervise([&] {
    result = step(data_part::all, first, run.options.step);
    return exit_success;
  });
  if (code != exit_success)
    return code;
  run.ranks.together([&] {
    if (!run.is_first())
      return;
    char loss[32];
    json_number(loss, result.loss);
    std::vector<tensor_view> tensors;
    for (const parameter_place &parameter : run.prog.parameters) {
      if (parameter.role == parameter_role::trained)
        tensors.push_back(view_of(parameter.tensor, parameter.tensor.name,
                                  run.places()[arena_kind::gradients] + parameter.tensor.offset));
    }
    const bool is_scaled = run.prog.loss_scale_offset >= 0;
    const size_t unsound = write_gradients(
        path, tensors, result.weight * (is_scaled ? run.options.loss_scale : 1), run.target,
        {{"loss", loss}, {"parameters", parameters}, {content_entry, content_gradients}});
    const std::string parameter_text = counted(static_cast<int64_t>(tensors.size()), "parameter");
    printf("loss %s\ngradients of %s: %s\n", loss, parameter_text.c_str(), path.c_str());
    if (unsound > 0 || !std::isfinite(result.loss))
      throw failure(exit_diverged,
                    format_text("%s: was written; the loss is %g, and of %s %zu ha%s gradients "
                                "that are not finite\n  try: data without NaN, and with labels "
                                "that count%s",
                                path.c_str(), result.loss, parameter_text.c_str(), unsound,
                                unsound == 1 ? "s" : "ve",
                                is_scaled ? "; or a lower --loss-scale" : ""));
  });
  return exit_success;
}

} // namespace trainc
