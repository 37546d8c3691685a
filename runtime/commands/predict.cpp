// SPDX-License-Identifier: Apache-2.0
//
// `predict`: the model's outputs for every sample of the data, once each. Batches
// go through the compiled evaluation; the last one is filled up with its last
// sample, whose further outputs are dropped. Outputs are written where they belong
// in the file as they come, so that they need not fit in memory.
#include "runtime/commands/commands.h"
#include "runtime/commands/evaluation.h"
#include "runtime/files/data_types.h"
#include "runtime/files/output_file.h"
#include "runtime/files/safetensors.h"

#include <algorithm>
#include <cinttypes>
#include <cstring>

namespace trainc {
namespace {

// An output in the file: `bytes` of it for each sample, or all of it at once.
struct stored_output {
  const tensor_place *tensor;
  int64_t offset;
  int64_t sample_bytes;
};

// Outputs whose first axis counts samples are put together; any other one belongs to
// its batch, so there can be one batch only.
std::vector<tensor_view> describe_outputs(const run &run, int64_t samples, int64_t batch) {
  std::vector<tensor_view> views;
  problem_list problems;
  for (const tensor_place &output : run.prog.outputs) {
    tensor_view view = view_of(output, output.name, nullptr);
    if (samples != batch) {
      if (output.rank == 0 || output.shape[0] != batch) {
        problems.add(
            format_text("predict: output '%s' has the shape %s, no row for each of the %" PRId64
                        " samples of a batch; the data has %" PRId64
                        "\n  try: data of exactly one batch, or trainc with another --dim",
                        output.name, shape_text(shape_of(output)).c_str(), batch, samples));
        continue;
      }
      view.bytes = view.bytes / batch * samples;
      view.shape[0] = samples;
    }
    views.push_back(std::move(view));
  }
  problems.throw_if_any(exit_data);
  return views;
}

void write_batch(run &run, output_file &file, const std::vector<stored_output> &outputs,
                 int64_t first, int64_t count) {
  for (const stored_output &output : outputs) {
    const char *data = run.places()[output.tensor->arena] + output.tensor->offset;
    int64_t target = output.offset + first * output.sample_bytes;
    in_transfers(count * output.sample_bytes, [&](int64_t begin, int64_t bytes) {
      file.write_at(target + begin, run.target.read(data + begin, bytes), bytes);
    });
  }
}

void check_request(const run &run) {
  if (run.ranks.size() > 1)
    throw failure(exit_usage, format_text("predict: started as %d ranks, but it runs as one\n"
                                          "  try: the command without mpirun",
                                          run.ranks.size()));
  if (run.prog.outputs.empty())
    throw failure(exit_usage,
                  "predict: the program has no output besides the loss\n  try: evaluate, "
                  "which prints the loss; or a program that trainc made without "
                  "--no-predictions");
}

} // namespace

int predict(run &run) {
  check_request(run);
  loader data = run.open_prediction_data();
  int64_t samples = data.samples(data_part::all), batch = data.samples_per_batch();
  int64_t batches = data.batches(data_part::all);
  std::vector<tensor_view> views = describe_outputs(run, samples, batch);
  run.target.allocate(memory_use::forward, 1, batch_feed::bytes(run.prog, run.target));
  std::string parameters = run.load_chosen_parameters();
  run.target.round_parameters();

  std::string path = run.options.output;
  std::string header = safetensors_header(views, {{"parameters", parameters}});
  std::vector<stored_output> outputs;
  auto offset = static_cast<int64_t>(header.size());
  for (size_t i = 0; i < views.size(); ++i) {
    // For exactly one batch all of an output of any shape is written at once.
    outputs.push_back({&run.prog.outputs[i], offset,
                       samples == batch ? views[i].bytes : views[i].bytes / samples});
    offset += views[i].bytes;
  }
  output_file file(path);
  file.write(header);
  batch_feed feed(run.prog, run.target, data);
  for (int64_t i = 0; i < batches; ++i) {
    feed.submit(data_part::all, i, i + 1 < batches ? i + 1 : -1);
    evaluate_batch(run.target, run.prog);
    int64_t first = i * batch;
    write_batch(run, file, outputs, first, samples == batch ? 1 : std::min(batch, samples - first));
  }
  file.publish();
  printf("parameters  %s\nsamples     %" PRId64 "\noutputs     %s\n", parameters.c_str(), samples,
         path.c_str());
  return exit_success;
}

} // namespace trainc
