// SPDX-License-Identifier: Apache-2.0
//
// `info`: what the compiler built.
#include "runtime/commands/commands.h"
#include "runtime/plan/read_plan.h"
#include "runtime/run/program_memory.h"
#include "runtime/step/memory_rows.h"

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

namespace trainc {
namespace {

// What a rank of each stage has at the phases of a training step, with as many ranks as there are
// stages on one host. Calls row(stage, phase, bytes by name).
template <typename Row> void for_each_planned_phase(const run &run, const Row &row) {
  const int stages = run.prog.stages ? run.prog.stages->stages : 1;
  const int64_t batches = run.prog.stages ? run.prog.stages->micro_batches : 1;
  const auto functions = function_memories(read_plan(run.folder));
  const std::vector<rank_memory> planned = memory_of_ranks(
      memory_needs_of(run.prog), {1, stages, batches, sharing_of(run.prog, shard_kind::none)});
  for (int stage = 0; stage < stages; ++stage) {
    const memory_matrix matrix = planned_matrix(run.prog, stage, functions);
    for (int i = 0; i < memory_phase_count; ++i)
      if (const phase_memory &phase = matrix[static_cast<size_t>(i)]; phase.activations >= 0)
        row(stage, static_cast<memory_phase>(i),
            memory_row(planned[static_cast<size_t>(stage)], phase));
  }
}

void print_phases(const run &run) {
  for_each_planned_phase(run, [](int stage, memory_phase phase, const named_bytes &row) {
    printf("stage-%d memory (MiB) | %s\n", stage, memory_text(phase, row).c_str());
  });
}

nlohmann::ordered_json phases_as_json(const run &run) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for_each_planned_phase(run, [&](int stage, memory_phase phase, const named_bytes &row) {
    nlohmann::ordered_json &object = all.emplace_back();
    object["stage"] = stage;
    object["phase"] = name_of(phase);
    for (const auto &[name, bytes] : row)
      object[name] = bytes;
  });
  return all;
}

} // namespace

int info(run &run) {
  if (run.options.memory_phases && !run.prog.update)
    throw failure(exit_usage, "option --memory-phases: the program does not train");
  if (!run.is_first())
    return exit_success;
  if (run.options.memory_phases && !run.options.json) {
    print_phases(run);
    return exit_success;
  }
  auto rows = describe(run.prog);
  if (run.options.json) {
    nlohmann::ordered_json object;
    std::string current;
    for (auto &[name, value] : rows) {
      current = name.empty() ? current : name;
      object[current].push_back(value);
    }
    object["kernels"] = run.prog.kernel_list;
    if (run.options.memory_phases)
      object["memory_phases"] = phases_as_json(run);
    printf("%s\n", object.dump().c_str());
    return exit_success;
  }
  for (auto &[name, value] : rows)
    printf("%-22s %s\n", name.c_str(), value.c_str());
  printf("\nkernels\n%s", run.prog.kernel_list);
  return exit_success;
}

} // namespace trainc
