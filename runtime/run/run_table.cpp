// SPDX-License-Identifier: Apache-2.0
//
// The table that a command begins with: the model, the ranks, their memory and the options.
#include "runtime/checkpoint/quantized_weights.h"
#include "runtime/files/data_types.h"
#include "runtime/ranks/stage_layout.h"
#include "runtime/run/program_memory.h"
#include "runtime/run/run.h"

#include <algorithm>
#include <cinttypes>

namespace trainc {
namespace {

std::string grouped(int64_t value) {
  std::string digits = std::to_string(value);
  for (auto i = static_cast<int64_t>(digits.size()) - 3; i > 0; i -= 3)
    digits.insert(static_cast<size_t>(i), 1, ',');
  return digits;
}

} // namespace

table_rows describe(const program &program) {
  table_rows rows;
  auto tensor_text = [](const tensor_place &tensor) {
    return std::string(tensor.name) + " " + name_of(tensor.type) + " " +
           shape_text(shape_of(tensor));
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
static void add_memory_rows(const run &run, int64_t micro_batches, table_rows &rows) {
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

void run::print_table(const table_rows &more, int64_t micro_batches) const {
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
