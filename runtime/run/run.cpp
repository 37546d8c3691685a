// SPDX-License-Identifier: Apache-2.0
//
// What the commands share: what a program is made for, its parameters, warnings. Its data are in
// run_data.cpp, the table that is printed in run_table.cpp.
#include "runtime/run/run.h"

#include "runtime/files/own_files.h"
#include "runtime/files/safetensors.h"
#include "runtime/run/checkpoint_choice.h"

#include <cinttypes>
#include <cmath>
#include <unistd.h>

namespace trainc {

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
    safetensors_index index = read_safetensors_index(file);
    for (const tensor_view &tensor : kept_parameter_tensors(prog, places()))
      read_tensor(file, index, tensor, target);
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

} // namespace trainc
