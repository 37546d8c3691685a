// SPDX-License-Identifier: Apache-2.0
//
// Set-up that the commands share.
#include "runtime/run/run.h"

#include "runtime/checkpoint/quantized_weights.h"
#include "runtime/files/data_types.h"
#include "runtime/files/own_files.h"
#include "runtime/files/safetensors.h"
#include "runtime/ranks/stage_layout.h"
#include "runtime/run/agreement.h"
#include "runtime/run/checkpoint_choice.h"
#include "runtime/run/program_memory.h"

#include <cinttypes>
#include <cmath>
#include <unistd.h>

namespace trainc {
namespace {

std::string grouped(int64_t value) {
  std::string digits = std::to_string(value);
  for (auto i = static_cast<int64_t>(digits.size()) - 3; i > 0; i -= 3)
    digits.insert(static_cast<size_t>(i), 1, ',');
  return digits;
}

} // namespace

run::run(const program &program, const trainer_table &table, const trainer_options &options,
         communicator &ranks, watchdog &watch)
    : prog(program), table(table), options(options), folder(own_folder()), ranks(ranks),
      watch(watch), target(program, options, ranks, options.command->bit & computing_commands) {}

// What needs all gradients of a step at once.
static void check_update_in_backward(const run &run) {
  if (!run.prog.updates_in_backward)
    return;
  auto refuse = [](const std::string &what, const char *advice) {
    throw failure(exit_usage, what +
                                  ": the program updates parameters in the backward pass, where no "
                                  "step has all gradients\n  try: " +
                                  advice + "; or trainc without --update-in-backward");
  };
  const trainer_options &options = run.options;
  if (run.ranks.size() > 1)
    refuse(format_text("%d ranks", run.ranks.size()), "one rank");
  if (options.micro_batches > 1)
    refuse("option --micro-batches", "--micro-batches 1");
  if (options.clip_norm > 0 && std::isfinite(options.clip_norm))
    refuse("option --clip-norm", "--clip-value, which bounds each number");
  if (options.command->bit & command_gradients)
    refuse("gradients", "a program without it for this command");
}

void run::check_layout() const {
  ranks.together([&] {
    const bool wants_shards = options.shard == shard_kind::gradients;
    if (wants_shards && !prog.shards_gradients)
      throw failure(exit_usage, "option --shard: gradients are shared out by programs that were "
                                "compiled for it\n  try: trainc --shard gradients; or --shard "
                                "optimizer");
    if (!wants_shards && prog.shards_gradients)
      throw failure(exit_usage, "option --shard: the program was compiled for gradients of which "
                                "no rank keeps all\n  try: the command without it; or trainc "
                                "--shard none");
    const bool is_fixed = prog.shards_gradients || prog.stages; // by the compiler
    if (is_fixed && options.exchange != exchange_kind::automatic)
      throw failure(exit_usage, "option --exchange: the program has its own times to exchange "
                                "gradients, of stages or of shards\n  try: the command without it");
    if (options.exchange == exchange_kind::overlapped && prog.buckets.empty())
      throw failure(exit_usage, "option --exchange: the program does not say when gradients are "
                                "complete\n  try: --exchange behind");
    check_update_in_backward(*this);
    const int stages = prog.stages ? prog.stages->stages : 1;
    if (ranks.size() % stages != 0)
      throw failure(exit_usage,
                    format_text("the program has %d stages, which %d rank%s cannot share"
                                "\n  try: mpirun -n %d, or a multiple of that",
                                stages, ranks.size(), ranks.size() == 1 ? "" : "s", stages));
    if (prog.stages && options.given.count("micro-batches") &&
        options.micro_batches != prog.stages->micro_batches)
      throw failure(exit_usage,
                    format_text("option --micro-batches: the program's stages take %" PRId64
                                " a step\n  try: trainc --stages %d --micro-batches %" PRId64
                                ", or another number of ranks",
                                prog.stages->micro_batches, stages, options.micro_batches));
  });
}

// A file that the compiler wrote with the trainer.
static void check_is_there(const std::string &path) {
  if (access(path.c_str(), F_OK) != 0)
    throw failure(exit_checkpoint,
                  path + ": is missing; the compiler wrote it with the trainer\n  try: copy the "
                         "trainer with its whole folder, or compile it again");
}

void run::map_frozen_weights() {
  ranks.together([&] {
    if (prog.frozen_count == 0)
      return;
    const std::string path = own_file(folder, own_parameters);
    check_is_there(path);
    frozen_.emplace(prog, path, options.frozen_data);
    target.set_frozen_weights(frozen_->base());
  });
}

void run::load_initial_parameters() {
  map_frozen_weights();
  ranks.together([&] {
    std::string path = own_file(folder, own_parameters);
    check_is_there(path);
    input_file file(path, exit_checkpoint);
    safetensors_index index = read_safetensors_index(file, exit_checkpoint);
    for (const tensor_view &tensor : kept_parameter_tensors(prog, places()))
      read_tensor(file, index, tensor, target, exit_checkpoint);
  });
}

std::string run::load_chosen_parameters() {
  ranks.together([&] {
    if (options.average && !keeps_average(prog))
      throw failure(exit_usage, "option --ema: the program keeps no moving average of its "
                                "parameters\n  try: trainc --ema, and to train with it");
  });
  const std::string &which = options.checkpoint;
  if (which == "initial") {
    if (options.given.count("run") && !options.given.count("checkpoint"))
      ranks.together([] {
        throw failure(exit_usage, "option --run: this program has its own parameters; a checkpoint "
                                  "is one of the program that trains\n  try: that program, or "
                                  "trainc --forward-only of the model that its export wrote");
      });
    load_initial_parameters();
    return "initial parameters";
  }
  map_frozen_weights();
  std::string path;
  ranks.together([&] {
    if (is_first())
      path = chosen_checkpoint(*this);
  });
  path = ranks.broadcast(path);
  ranks.together([&] {
    const checkpoint_info info = read_manifest(path);
    if (std::string change = change_of_graph(info.computed, prog); !change.empty())
      warn(path + ": is of a run that computes something else: now " + change);
    // Before the first update the average is that of nothing.
    const bool averages = options.average && info.step > info.skipped_steps;
    check_frozen_weights(info, prog, places());
    load_tensors(
        info, averages ? averaged_tensors(prog, places()) : kept_parameter_tensors(prog, places()),
        target);
  });
  return path;
}

// Of these files, read as the options say.
static data_request request_of(const trainer_options &options, const std::vector<std::string> &data,
                               const std::vector<std::string> &tokens) {
  data_request request;
  request.data = data;
  request.constants = options.constant;
  request.tokens = tokens;
  request.token_type = options.token_type;
  request.label_shift = options.label_shift;
  return request;
}

data_request run::request_of_data(bool shuffle, uint64_t seed, bool partial_batches) const {
  data_request request = request_of(options, options.data, options.tokens);
  request.partial_batches = partial_batches;
  request.holdout = options.holdout;
  if (options.command->bit & command_train) {
    request.training_batches = options.overfit;
    request.rest = options.rest;
    std::string why; // none: the option's row has looked
    augmentation::parse(options.augment, request.changes, why);
  }
  request.shuffle = shuffle;
  request.seed = seed;
  return request;
}

std::string run::not_finite_data(const data_request &request, data_part part, int64_t first,
                                 int64_t count) const {
  std::string found;
  try {
    loader data(prog, request);
    for (int64_t i = 0; i < count && found.empty(); ++i)
      found = data.not_finite_in(part, first + i);
  } catch (const std::exception &) { // it says why, and must not be another reason
  }
  return found;
}

std::optional<loader> run::open_validation_data() {
  if (options.validation_data.empty() && options.validation_tokens.empty())
    return std::nullopt;
  data_request request = request_of(options, options.validation_data, options.validation_tokens);
  request.partial_batches = true;
  return open(request);
}

loader run::open_prediction_data() {
  data_request request = request_of(options, options.data, options.tokens);
  request.for_prediction = true;
  return open(request);
}

loader run::open_available_data() {
  data_request request = request_of(options, options.data, options.tokens);
  request.may_lack_data = true;
  return open(request);
}

loader run::open(const data_request &request) {
  std::optional<loader> result;
  ranks.together([&] { result.emplace(prog, request); });
  refuse_differences(ranks, properties_of_data(result->identities()), exit_data);
  for (const std::string &note : result->notes())
    if (is_first())
      fprintf(stderr, "%s\n", note.c_str());
  ranks.together([&] {
    result->check_values(ranks.rank(), ranks.size());
    if (options.check_data) {
      // Each host its own files.
      result->check_contents(ranks.rank_on_host(), ranks.ranks_on_host());
      result->check_finite(ranks.rank_on_host(), ranks.ranks_on_host());
    }
  });
  return std::move(*result);
}

void run::warn(const std::string &text) const {
  if (!is_first())
    return;
  fprintf(stderr, "warning: %s\n", without_controls(text, /*keeps_lines=*/true).c_str());
  if (hear_)
    hear_(text);
  else
    unheard_.push_back(text);
}

void run::warn_here(const std::string &text) const {
  if (is_first())
    return warn(text);
  const bool is_elsewhere = ranks.ranks_on_host() < ranks.size();
  fprintf(stderr, "warning: %s%s\n",
          is_elsewhere ? (rank_name(ranks.rank(), getpid()) + ": ").c_str() : "",
          without_controls(text, /*keeps_lines=*/true).c_str());
}

void run::hear_warnings(std::function<void(const std::string &)> hear) {
  hear_ = std::move(hear);
  if (!hear_)
    return;
  for (const std::string &text : unheard_)
    hear_(text);
  unheard_.clear();
}

std::vector<std::pair<std::string, std::string>> describe(const program &program) {
  std::vector<std::pair<std::string, std::string>> rows;
  auto tensor_text = [](const tensor_place &tensor) {
    return std::string(tensor.name) + " " + name_of(tensor.type) + " " +
           shape_text(tensor.shape, static_cast<size_t>(tensor.rank));
  };
  rows.emplace_back("model", program.model_name);
  rows.emplace_back("compiled by", std::string("trainc ") + program.compiler_version);
  rows.emplace_back("target", std::string(program.target) + ", " + program.march);
  rows.emplace_back("precision", program.precision);
  if (program.update) {
    rows.emplace_back("loss", program.loss_name);
    rows.emplace_back("optimizer", program.optimizer_name);
    std::string of_groups;
    for (const hyperparameter &value : program.hyperparameters)
      if (value.follows)
        of_groups += (of_groups.empty() ? "--" : ", --") + option_name(value);
    if (!of_groups.empty())
      rows.emplace_back("groups have", of_groups);
  }
  int64_t counts[3] = {}; // by role
  for (const parameter_place &parameter : program.parameters) {
    const tensor_place &tensor = parameter.tensor;
    const quantized_weight *form = quantized_form(program, tensor.name);
    if (!is_part_of_quantized(program, tensor.name))
      counts[static_cast<int>(parameter.role)] +=
          form ? form->layout.outer * form->layout.length * form->layout.inner
               : element_count(tensor);
  }
  auto [trained, frozen, buffers] = counts;
  rows.emplace_back("parameters", grouped(trained) + " trained" +
                                      (frozen ? ", " + grouped(frozen) + " frozen" : "") +
                                      (buffers ? ", " + grouped(buffers) + " in buffers" : ""));
  for (int64_t i = 0; i < std::ssize(program.inputs); ++i)
    rows.emplace_back(i ? "" : "inputs", tensor_text(program.inputs[i].tensor));
  for (int64_t i = 0; i < std::ssize(program.outputs); ++i)
    rows.emplace_back(i ? "" : "outputs", tensor_text(program.outputs[i]));
  int64_t total = 0;
  for (int kind = 0; kind < arena_count; ++kind) {
    int64_t bytes = program.arena_bytes[kind], bound = program.arena_lower_bound[kind];
    total += bytes;
    std::string text = format_text("%-16s %12s bytes", name_of(static_cast<arena_kind>(kind)),
                                   grouped(bytes).c_str());
    if (bound > 0)
      text += format_text("  %.3f of the lower bound",
                          static_cast<double>(bytes) / static_cast<double>(bound));
    rows.emplace_back(kind ? "" : "arenas", text);
  }
  if (program.frozen_bytes > 0)
    rows.emplace_back("", format_text("%-16s %12s bytes  mapped, once a host",
                                      name_of(arena_kind::frozen),
                                      grouped(program.frozen_bytes).c_str()));
  rows.emplace_back("", format_text("%-16s %12s bytes", "together",
                                    grouped(total + program.frozen_bytes).c_str()));
  for (int i = 0; program.stages && i < std::ssize(program.stages->chunks); ++i) {
    const chunk_program &own = program.stages->chunks[static_cast<size_t>(i)];
    const bool is_stage = std::ssize(program.stages->chunks) == program.stages->stages;
    rows.emplace_back(i > 0      ? ""
                      : is_stage ? "stages"
                                 : "chunks",
                      format_text("%d: activations %s, stash %d x %s bytes", i,
                                  grouped(own.activation_bytes).c_str(), own.slots,
                                  grouped(own.slot_bytes).c_str()));
  }
  return rows;
}

// "; 2 replicas of 2 stages (1f1b, 8 micro-batches): 0 1 | 2 3"
static std::string describe_layout(const program &program, int ranks) {
  const stage_layout layout(program, 0, ranks);
  std::string text =
      format_text("; %d replica%s of %d stages (%s, %" PRId64 " micro-batches):", layout.replicas,
                  layout.replicas == 1 ? "" : "s", layout.stages, program.stages->schedule,
                  program.stages->micro_batches);
  for (int rank = 0; rank < ranks; ++rank)
    text += (rank > 0 && rank % layout.stages == 0 ? " | " : " ") + std::to_string(rank);
  return text;
}

static std::vector<rank_memory> memory_with(const run &run, int64_t micro_batches,
                                            accumulation accumulated) {
  const stage_layout layout(run.prog, 0, run.ranks.size());
  const bool shares_memory = run.ranks.size() == 1 || run.target.shares_memory();
  return memory_of_ranks(memory_needs_of(run.prog, shares_memory),
                         {layout.replicas, run.ranks.ranks_on_host(),
                          run.prog.stages ? run.prog.stages->micro_batches : micro_batches,
                          sharing_of(run.prog, run.options.shard, shares_memory), shares_memory,
                          accumulated});
}

std::vector<rank_memory> run::planned_memory(int64_t micro_batches) const {
  return memory_with(*this, micro_batches, options.accumulated);
}

// "1,024 bytes of gradients; 512 with --accumulation running", where that is a part of the rank's
// memory that counts.
static std::string describe_accumulators(const run &run, int64_t micro_batches, int64_t bytes) {
  std::string text = grouped(bytes) + " bytes of gradients" +
                     (run.prog.shards_gradients ? ", the arena's share too" : "");
  const rank_memory now = run.planned_memory(micro_batches)[0],
                    running = memory_with(run, micro_batches, accumulation::running)[0];
  constexpr double least_share = 0.05;
  if (static_cast<double>(now.bytes() - running.bytes()) >=
      least_share * static_cast<double>(now.bytes()))
    text += "; " + grouped(running.accumulators) + " with --accumulation running";
  return text;
}

// "stage 0: parameters 1,024, activations 2,048; together 3,072 bytes", without what is none.
static std::string describe_memory(const rank_memory &memory) {
  std::string text;
  for (auto [name, bytes] : {std::pair("parameters", memory.parameters),
                             {"frozen", memory.frozen},
                             {"gradients", memory.gradients},
                             {"accumulators", memory.accumulators},
                             {"optimizer_state", memory.state},
                             {"activations", memory.activations},
                             {"stash", memory.stash},
                             {"messages", memory.messages},
                             {"workspace", memory.workspace},
                             {"constants", memory.constants}})
    if (bytes > 0)
      text += (text.empty() ? "" : ", ") + std::string(name) + " " + grouped(bytes);
  return text + "; together " + grouped(memory.bytes()) + " bytes";
}

// A rank of each stage, planned; libraries and batches that are read ahead come on top.
static void add_memory_rows(const run &run, int64_t micro_batches,
                            std::vector<std::pair<std::string, std::string>> &rows) {
  const pipeline *stages = run.prog.stages;
  const std::vector<rank_memory> all = run.planned_memory(micro_batches);
  for (size_t i = 0; i < all.size(); ++i)
    rows.emplace_back(i > 0 ? "" : "a rank holds",
                      (stages ? format_text("stage %zu: ", i) : "") + describe_memory(all[i]));
}

// Of which it is not known how many samples or labels it is of, as of a loss of the model's own.
static bool is_opaque(const program &prog) {
  const bool has_opaque_part = std::ranges::any_of(prog.loss_parts, [](const loss_part &part) {
    return !part.weight.name && !part.is_sum && !part.sample_losses.name;
  });
  return prog.update && !prog.loss_weight.name && !prog.sample_losses.name &&
         (prog.loss_parts.empty() || has_opaque_part);
}

void run::print_table(const std::vector<std::pair<std::string, std::string>> &more,
                      int64_t micro_batches) const {
  if (!is_first())
    return;
  auto rows = describe(prog);
  rows.insert(rows.end(), more.begin(), more.end());
  const bool trains = options.command->bit & (command_train | command_gradients | command_profile);
  const bool in_stages = prog.stages && trains;
  rows.emplace_back("ranks", std::to_string(ranks.size()) +
                                 (in_stages ? describe_layout(prog, ranks.size()) : ""));
  const int64_t parts = micro_batches * ranks.size() / (prog.stages ? prog.stages->stages : 1);
  if (trains && parts > 1 && is_opaque(prog))
    rows.emplace_back("loss of a step",
                      format_text("the mean of what the model computes of %" PRId64
                                  " micro-batches, which all weigh the same",
                                  parts));
  rows.emplace_back("device", target.description());
  if (int64_t bytes = target.accumulator_bytes())
    rows.emplace_back("accumulation", describe_accumulators(*this, micro_batches, bytes));
  if (trains)
    add_memory_rows(*this, micro_batches, rows);
  for (auto &[name, value] : table.values(options, [&](const option_row &option) {
         return options.verbose || table.is_changed(option, options);
       }))
    rows.emplace_back("--" + name, value.empty() ? "-" : value);
  if (!options.verbose)
    rows.emplace_back("other options", "the defaults, which --verbose shows");
  for (auto &[name, value] : rows)
    printf("%-22s %s\n", without_controls(name).c_str(), without_controls(value).c_str());
  fflush(stdout);
}

} // namespace trainc
