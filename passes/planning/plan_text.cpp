// SPDX-License-Identifier: Apache-2.0
//
// Tables of columns: sorted as the plan is, so that two plans can be compared line by line.
#include "passes/planning/plan_text.h"
#include "passes/planning/stage_plan.h"
#include "runtime/byte_text.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>

namespace trainc {

namespace {

/// Adds what printf would print; names, which may be long, are added as they are.
[[gnu::format(printf, 2, 3)]] void print(std::string &text, const char *format, ...) {
  char line[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  text += line;
}

/// For printf, of any int64_t.
long long number(int64_t value) { return value; }

/// A line for each number of ranks and of micro-batches, a column for each kind of sharing.
void printRanks(const std::vector<planned_rank> &ranks, std::string &text) {
  auto areTogether = [&](const planned_rank &row) {
    return row.ranks == ranks[0].ranks && row.micro_batches == ranks[0].micro_batches;
  };
  const auto kinds = size_t(std::count_if(ranks.begin(), ranks.end(), areTogether));
  text += "\nbytes of a rank\nranks of a host  micro-batches";
  for (size_t i = 0; i < kinds; ++i)
    print(text, "  %20s", ("--shard " + ranks[i].shard).c_str());
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (i % kinds == 0)
      print(text, "\n%15d  %13lld", ranks[i].ranks, number(ranks[i].micro_batches));
    print(text, "  %20lld", number(ranks[i].bytes));
  }
  text += "\n";
}

} // namespace

std::string summaryText(const plan &plan) {
  std::string text = plan.program.model;
  if (plan.stages)
    text += ": trains with " + plan.program.optimizer + " in " + plan.program.precision;
  text += "\n\n";
  for (const planned_arena &arena : plan.memory.arenas)
    if (arena.bytes > 0)
      print(text, "%-16s %10s\n", arena.name.c_str(), byte_text(arena.bytes).c_str());
  text += "\n";
  for (const planned_entry &entry : plan.entries)
    print(text, "%s: %zu steps\n", entry.name.c_str(), entry.steps.size());
  return text + "\nplan.json beside this file has the whole plan, for programs. For people, where "
                "OUTPUT is "
                "the folder of plan/:\n\n"
                "  trainc-inspect OUTPUT             an overview\n"
                "  trainc-inspect OUTPUT memory      every tensor, and what ranks hold\n"
                "  trainc-inspect OUTPUT kernels     what each kernel costs\n"
                "  trainc-inspect OUTPUT steps       the entry functions step by step\n"
                "  trainc-inspect OUTPUT parameters  what is trained, and why\n"
                "  trainc-inspect OUTPUT recompute   what is computed again\n"
                "  trainc-inspect OUTPUT schedule    the stages of a step that is cut\n"
                "  trainc-inspect OUTPUT where NAME  a node, value, parameter or module\n";
}

std::string arenasText(const planned_memory &memory) {
  std::string text;
  if (!memory.arenas.empty())
    text += "arena                    bytes     lower bound  ratio\n";
  for (const planned_arena &arena : memory.arenas)
    print(text, "%-16s %13lld %15lld  %.3f\n", arena.name.c_str(), number(arena.bytes),
          number(arena.lower_bound),
          arena.lower_bound > 0 ? double(arena.bytes) / double(arena.lower_bound) : 1);
  if (!memory.of_ranks.empty())
    printRanks(memory.of_ranks, text);
  if (memory.in_run)
    print(text,
          "\nbytes of a rank in the run that it is planned for: %lld, %lld of them sums over "
          "micro-batches\n",
          number(memory.in_run->bytes()), number(memory.in_run->accumulators));
  return text;
}

std::string memoryText(const plan &plan) {
  std::string text = arenasText(plan.memory);
  for (const planned_entry &entry : plan.entries) {
    text += "\n" + titleOf(entry) +
            "\n  arena                   offset         bytes  first   last    tensor\n";
    for (const planned_tensor &tensor : entry.tensors) {
      print(text, "  %-16s %13lld %13lld %6d %6d  %c ", tensor.arena.c_str(), number(tensor.offset),
            number(tensor.bytes), tensor.first, tensor.last, tensor.is_at_peak ? '*' : ' ');
      text += tensor.name + "\n";
    }
  }
  return text;
}

std::string titleOf(const planned_entry &entry) {
  return entry.name + ": " + std::to_string(entry.steps.size()) + " steps" +
         (entry.peak < 0 ? ""
                         : ", most activation bytes alive at step " + std::to_string(entry.peak) +
                               " (marked *)");
}

std::string kernelsText(const std::vector<planned_entry> &entries) {
  std::string text;
  for (const planned_entry &entry : entries) {
    text += (text.empty() ? "" : "\n") + entry.name;
    print(text,
          ": %zu steps, %.0f flops, %lld bytes; with each tensor written once and read once: "
          "%lld bytes\n",
          entry.steps.size(), entry.flops, number(entry.bytes), number(entry.least_bytes));
    text += "   times    flops each    bytes each   flops in all   bytes in all  form       step\n";
    for (const planned_kernel &kernel : entry.kernels) {
      print(text, "%8d  %12.0f  %12lld  %13.0f  %13lld  %-9s  ", kernel.count, kernel.flops,
            number(kernel.bytes), kernel.count * kernel.flops, number(kernel.count * kernel.bytes),
            kernel.form.c_str());
      text += kernel.whole_text() + "\n";
    }
  }
  return text;
}

std::string stepsText(const std::vector<planned_entry> &entries) {
  std::string text;
  for (const planned_entry &entry : entries) {
    text += entry.name + ": " + std::to_string(entry.steps.size()) + " steps\n";
    for (size_t i = 0; i < entry.steps.size(); ++i) {
      print(text, "  %5zu  ", i);
      text += entry.words_of(entry.steps[i]) + "\n";
    }
    text += "\n";
  }
  return text;
}

std::string registersText(const register_table &table) {
  std::string text;
  size_t width = sizeof "kernel" - 1;
  for (const kernel_registers &each : table.kernels)
    width = std::max(width, each.kernel.size());
  auto add = [&](const std::string &kernel) {
    text += kernel + std::string(width - kernel.size(), ' ');
  };
  add("kernel");
  text += "  architecture  registers  spill stores  spill loads  shared bytes\n";
  for (const kernel_registers &each : table.kernels) {
    add(each.kernel);
    print(text, "  %-12s  %9lld  %12lld  %11lld  %12lld\n", each.architecture.c_str(),
          number(each.registers), number(each.spill_stores), number(each.spill_loads),
          number(each.shared_bytes));
  }
  return text;
}

std::string recomputeText(const planned_recompute &plan) {
  std::string text = "rule: " + plan.rule + "\n\n";
  text += "                            keeping all         planned  ratio\n";
  print(text, "all arenas, bytes       %15lld %15lld  %.3f\n", number(plan.kept_bytes),
        number(plan.bytes), double(plan.bytes) / double(plan.kept_bytes));
  print(text, "time of a step, predicted                         %.3f\n", plan.time);
  print(text, "flops of a step                                   %.3f\n", plan.flops);
  double flops = 0;
  int64_t moved = 0, kept = 0;
  for (const recomputed_step &step : plan.steps) {
    flops += step.flops;
    moved += step.bytes;
  }
  for (const kept_tensor &tensor : plan.kept)
    kept += tensor.bytes;
  print(text, "\nrecomputed for the backward pass: %zu steps, %.0f flops, %lld bytes moved\n",
        plan.steps.size(), flops, number(moved));
  if (plan.in_stages)
    text += "(in functions of stages: besides what the rule repeats, what costs little or follows "
            "from the inputs alone,\n which they neither keep nor send; docs/stages.md)\n";
  if (!plan.steps.empty())
    text += "           flops    bytes moved  tensors\n";
  for (const recomputed_step &step : plan.steps) {
    print(text, "%16.0f %14lld  ", step.flops, number(step.bytes));
    text += step.tensors + "\n";
  }
  if (plan.in_stages)
    return text + "\nkept for the backward pass: what stages keep and send is in their schedule\n";
  print(text, "\nkept for the backward pass: %zu tensors, %lld bytes\n", plan.kept.size(),
        number(kept));
  if (!plan.kept.empty())
    text += "         bytes  first   last  tensor\n";
  for (const kept_tensor &tensor : plan.kept) {
    print(text, "%14lld %6d %6d  ", number(tensor.bytes), tensor.first, tensor.last);
    text += tensor.name + "\n";
  }
  return text;
}

namespace {

void listTensors(const char *direction, int from, int to,
                 const std::vector<crossing_bytes> &tensors, std::string &text) {
  for (const crossing_bytes &tensor : tensors) {
    print(text, "%2d -> %-2d  %-8s  %12lld  ", from, to, direction, number(tensor.bytes));
    text += tensor.name + "\n";
  }
}

void printChunks(const planned_stages &plan, const planning::Schedule &schedule,
                 const planning::StepTimes &times, std::string &text) {
  text += "         flops  bytes moved   parameters        bytes  activations  bytes a slot  slots"
          "        stash  share of time    idle\n";
  double total = 0;
  for (const planned_chunk &chunk : plan.chunks)
    total += chunk.forward_time + chunk.backward_time;
  for (size_t i = 0; i < plan.chunks.size(); ++i) {
    const planned_chunk &chunk = plan.chunks[i];
    const auto stage = size_t(schedule.pipeline.stageOf(int(i)));
    print(text,
          "%5zu  %12.0f  %11lld  %11lld  %11lld  %11lld  %12lld  %5d  %11lld  %13.3f  %4.1f %%\n",
          i, chunk.flops, number(chunk.bytes), number(chunk.parameters),
          number(chunk.parameter_bytes), number(chunk.activation_bytes), number(chunk.slot_bytes),
          chunk.slots, number(chunk.slot_bytes * chunk.slots),
          (chunk.forward_time + chunk.backward_time) / total,
          100 * (1 - times.computing[stage] / times.seconds));
  }
}

/// What a rank of each stage holds, and with more replicas on the host.
void printMemory(const planned_stages &plan, const planning::Schedule &schedule,
                 std::string &text) {
  text +=
      "\nstage   parameters    gradients  accumulators        state  activations        stash   "
      "  messages    workspace    constants   bytes of a rank\n";
  for (size_t i = 0; i < plan.stages.size(); ++i) {
    const rank_memory &rank = plan.stages[i].memory;
    print(text,
          "%5zu  %11lld  %11lld  %12lld  %11lld  %11lld  %11lld  %11lld  %11lld  %11lld  "
          "%16lld\n",
          i, number(rank.parameters), number(rank.gradients), number(rank.accumulators),
          number(rank.state), number(rank.activations), number(rank.stash), number(rank.messages),
          number(rank.workspace), number(rank.constants), number(rank.bytes()));
  }
  constexpr int replicas[] = {1, 2, 4, 8};
  text += "\nreplicas on a host";
  for (int count : replicas)
    print(text, "  %14d", count);
  text += "\n";
  for (size_t stage = 0; stage < plan.stages.size(); ++stage) {
    print(text, "stage %-12zu", stage);
    for (int count : replicas)
      print(text, "  %14lld", number(memoryOfRanks(plan, schedule, count)[stage].bytes()));
    text += "\n";
  }
}

} // namespace

std::string stagesText(const planned_stages &plan) {
  std::string text, fault;
  const planning::Schedule schedule = planning::scheduleOf(plan, fault);
  if (!fault.empty())
    return fault + "\n";
  print(text, "%zu stages, schedule %s, %d micro-batches a step and replica\n", plan.stages.size(),
        plan.schedule.c_str(), plan.micro_batches);
  const bool isInterleaved = plan.chunks_per_stage > 1;
  if (isInterleaved)
    print(text, "%d chunks a stage: chunk c is on stage c modulo %zu\n", plan.chunks_per_stage,
          plan.stages.size());
  for (size_t i = 0; i < plan.cuts.size(); ++i) {
    print(text, "cut %zu | %zu behind ", i, i + 1);
    text += plan.cuts[i] + "\n";
  }
  text += isInterleaved ? "\nchunk" : "\nstage";
  const planning::StepTimes times = planning::predictedTimes(plan, schedule);
  printChunks(plan, schedule, times, text);
  printMemory(plan, schedule, text);
  text += isInterleaved ? "\nchunks" : "\nstages";
  text += "    pass             bytes  tensor\n";
  for (const planned_boundary &boundary : plan.boundaries) {
    listTensors("forward", boundary.from, boundary.to, boundary.activations, text);
    listTensors("backward", boundary.to, boundary.from, boundary.gradients, text);
  }
  print(text, "\nidle, if messages and the update took no time: %.1f %%\n", 100 * times.bubble);
  constexpr double columns = 32; // each three characters wide
  return text + planning::gridOf(schedule, times, times.seconds / columns);
}

} // namespace trainc
