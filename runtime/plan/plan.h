// SPDX-License-Identifier: Apache-2.0
//
// All decisions of trainc about one program, as plain data. plan/plan.json has the same members:
// each struct lists its own in `members`. The compiler fills the structs. The trainer and the tools
// read them (read_plan.h), and print all text about a plan from them. Steps, kernels and tensors
// are numbers in the lists of their entry function; chunks, boundaries and stages in those of the
// stages. docs/plans.md describes the document.
#pragma once

#include "runtime/ranks/rank_memory.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace trainc {

// The version in every document. It grows when an older reader could misread a newer one.
constexpr int plan_version = 2;

// Which program: as the configuration of a run says it. Empty: not known.
struct planned_program {
  std::string model, fingerprint, graph, objective, optimizer, precision;

  template <typename Visit> void members(Visit &visit) {
    visit("model", model, "fingerprint", fingerprint, "graph", graph, "objective", objective,
          "optimizer", optimizer, "precision", precision);
  }
};

struct planned_arena {
  std::string name;
  int64_t bytes = 0, lower_bound = 0;

  template <typename Visit> void members(Visit &visit) {
    visit("arena", name, "bytes", bytes, "lower_bound", lower_bound);
  }
};

// Memory of one rank when all ranks are on one host. Programs without stages have it alone.
struct planned_rank {
  int ranks = 0;
  int64_t micro_batches = 0;
  std::string shard; // of the trainer's or trainc's option
  int64_t bytes = 0;

  template <typename Visit> void members(Visit &visit) {
    visit("ranks_on_host", ranks, "micro_batches", micro_batches, "shard", shard, "bytes", bytes);
  }
};

struct planned_memory {
  std::vector<planned_arena> arenas;
  std::vector<planned_rank> of_ranks; // some numbers of ranks and micro-batches; none of stages
  // Of a rank, where somebody said how the trainer will be started; none of stages.
  std::optional<rank_memory> in_run;

  int64_t arena_bytes() const {
    int64_t sum = 0;
    for (const planned_arena &arena : arenas)
      sum += arena.bytes;
    return sum;
  }
  // Of a rank: what it holds in that run, else all arenas.
  int64_t bytes() const { return in_run ? in_run->bytes() : arena_bytes(); }

  template <typename Visit> void members(Visit &visit) {
    visit("arenas", arenas);
    visit.sum("bytes", arena_bytes());
    visit.maybe("in_run", in_run);
    visit("of_ranks", of_ranks);
  }
};

struct planned_tensor {
  std::string name, arena;
  int64_t offset = 0, bytes = 0; // in its arena
  int first = 0, last = 0;       // steps that it is alive in
  std::string type;              // of its elements, `f32`
  std::vector<int64_t> shape;
  int64_t row_pitch = 0;    // elements from one row to the next; 0: they follow one another
  bool is_argument = false; // of the function; else the step `first` makes it
  bool is_at_peak = false;  // an activation that is alive when most of them are
  std::vector<int> used_by; // steps that read or write it

  template <typename Visit> void members(Visit &visit) {
    visit("tensor", name, "arena", arena, "offset", offset, "bytes", bytes, "first_step", first,
          "last_step", last, "type", type, "shape", shape, "argument", is_argument, "at_peak",
          is_at_peak, "used_by", used_by);
    visit.maybe("row_pitch", row_pitch);
  }
};

// Equal steps of an entry function.
struct planned_kernel {
  std::string form;    // of a kernel; `library` for a function of the runtime
  std::string text;    // what it is: `matmul 64 x 32 x 32`, or its name
  std::string sources; // nodes that it comes from
  double flops = 0;    // of one
  int64_t bytes = 0;   // read and written by one
  int count = 0;

  std::string whole_text() const { return sources.empty() ? text : text + "  [" + sources + "]"; }

  template <typename Visit> void members(Visit &visit) {
    visit("form", form, "kernel", text);
    visit.maybe("sources", sources);
    visit("times", count, "flops_each", flops, "bytes_each", bytes);
  }
};

struct planned_step {
  int kernel = 0;
  std::vector<std::string> computes; // titles, `gradient of h.0.ln_1`; the first names the step

  std::string title() const { return computes.empty() ? "" : computes.front(); }

  template <typename Visit> void members(Visit &visit) {
    visit("kernel", kernel, "computes", computes);
  }
};

struct planned_entry {
  std::string name; // of the function
  int peak = -1;    // the step with most activation bytes alive; -1: none has any
  double flops = 0;
  int64_t bytes = 0;
  int64_t least_bytes = 0;             // where caches hold every tensor between its uses
  std::vector<planned_kernel> kernels; // those that move most bytes first
  std::vector<planned_step> steps;
  std::vector<planned_tensor> tensors; // by arena, offset and time

  const planned_kernel &kernel_of(const planned_step &step) const {
    return kernels[static_cast<size_t>(step.kernel)];
  }
  // A step in a list of steps: its kernel, and in a column of its own the node.
  std::string words_of(const planned_step &step) const {
    constexpr size_t width = 44;
    std::string words = kernel_of(step).text;
    words.resize(std::max(words.size(), width), ' ');
    return words + " " + step.title();
  }

  template <typename Visit> void members(Visit &visit) {
    visit("entry", name);
    visit.maybe("peak_step", peak);
    visit("flops", flops, "bytes", bytes, "least_bytes", least_bytes, "kernels", kernels, "steps",
          steps, "tensors", tensors);
  }
};

// A node of the model's file.
struct planned_node {
  std::string label, operation;    // as messages call it
  std::string name;                // in IR, plans and source; empty: it made no operation
  std::string source;              // its line of Python, `model.py:35`; empty: not known
  std::vector<std::string> values; // ONNX names of what it makes

  template <typename Visit> void members(Visit &visit) {
    visit("node", label, "operator", operation);
    visit.maybe("name", name, "source", source);
    visit("values", values);
  }
};

struct tied_name {
  std::string name;
  bool is_transposed = false;

  template <typename Visit> void members(Visit &visit) {
    visit("name", name, "transposed", is_transposed);
  }
};

struct planned_parameter {
  std::string name, module_name; // of the file and of plans
  std::vector<int64_t> shape;
  std::string reason;
  std::string group; // empty: none
  std::string role;  // trained, frozen or buffer; empty: the program does not hold it
  bool decays = false;
  std::vector<tied_name> tied;

  template <typename Visit> void members(Visit &visit) {
    visit("name", name, "module_name", module_name, "shape", shape, "reason", reason);
    visit.maybe("group", group, "role", role);
    visit("decays", decays, "tied", tied);
  }
};

// What does not apply is -1. Of a message the slot is its place at the receiver.
struct planned_action {
  std::string kind;
  int chunk = -1, micro_batch = -1, boundary = -1, peer = -1, slot = -1;

  template <typename Visit> void members(Visit &visit) {
    visit("action", kind);
    visit.maybe("chunk", chunk, "micro_batch", micro_batch, "boundary", boundary, "peer", peer,
                "slot", slot);
  }
};

// Gradients that the replicas of a stage add at once, of a program that shards them.
struct planned_bucket {
  std::string function;
  int64_t bytes = 0;
  double behind = 0; // the share of the function's predicted time after which it is whole

  template <typename Visit> void members(Visit &visit) {
    visit("function", function, "bytes", bytes, "behind", behind);
  }
};

// What a chunk computes for a micro-batch and what a rank of its stage holds for it.
struct planned_chunk {
  // Entry functions; a step in one piece has no forward one, and where the backward function has
  // the weight gradients there is none for them.
  std::string forward, backward, weight_gradient;
  double flops = 0;
  int64_t bytes = 0;                          // moved
  double forward_time = 0, backward_time = 0; // as bytes of traffic, weight gradients included
  // Of backward_time, the part of the steps that no gradient of another chunk waits for.
  double weight_gradient_share = 0;
  int64_t parameters = 0; // those that several chunks use are the first one's
  int64_t parameter_bytes = 0, gradient_bytes = 0, state_bytes = 0;
  int64_t activation_bytes = 0, slot_bytes = 0;
  int slots = 0;
  std::vector<planned_bucket> buckets; // in the order of the functions and their steps

  template <typename Visit> void members(Visit &visit) {
    visit.maybe("forward", forward);
    visit("backward", backward);
    visit.maybe("weight_gradient", weight_gradient);
    visit("flops", flops, "bytes_moved", bytes, "forward_time", forward_time, "backward_time",
          backward_time, "weight_gradient_share", weight_gradient_share, "parameters", parameters,
          "parameter_bytes", parameter_bytes, "gradient_bytes", gradient_bytes, "state_bytes",
          state_bytes, "activation_bytes", activation_bytes, "slot_bytes", slot_bytes, "slots",
          slots, "buckets", buckets);
  }
};

struct crossing_bytes {
  std::string name; // of the tensor
  int64_t bytes = 0;

  template <typename Visit> void members(Visit &visit) { visit("tensor", name, "bytes", bytes); }
};

// What chunk `from` sends chunk `to`, which comes after it, and what comes back.
struct planned_boundary {
  int from = 0, to = 0;
  std::vector<crossing_bytes> activations, gradients;
  int activation_places = 0, gradient_places = 0; // for messages, at the receiver

  template <typename Visit> void members(Visit &visit) {
    visit("from", from, "to", to, "activations", activations, "gradients", gradients,
          "activation_places", activation_places, "gradient_places", gradient_places);
  }
};

struct planned_stage {
  std::vector<planned_action> actions;
  rank_memory memory; // of a rank of one replica

  template <typename Visit> void members(Visit &visit) {
    visit("actions", actions, "memory", memory);
  }
};

// One chunk where the step is in one piece.
struct planned_stages {
  std::string schedule, target;
  int micro_batches = 1, chunks_per_stage = 1;
  std::vector<std::string> cuts;  // nodes
  sharing shared = sharing::none; // what ranks of a host share in any run
  bool updates_in_parts = false;  // so that a trainer may share the optimizer's state
  memory_needs arenas;            // without what each stage has for itself
  std::vector<planned_chunk> chunks;
  std::vector<planned_boundary> boundaries;
  std::vector<planned_stage> stages;

  bool is_cut() const { return chunks.size() > 1; }

  template <typename Visit> void members(Visit &visit) {
    visit("schedule", schedule, "target", target, "micro_batches", micro_batches,
          "chunks_per_stage", chunks_per_stage, "cuts", cuts, "shared", shared, "updates_in_parts",
          updates_in_parts, "arenas", arenas, "chunks", chunks, "boundaries", boundaries, "stages",
          stages);
  }
};

struct recomputed_step {
  std::string tensors; // that it makes again
  double flops = 0;
  int64_t bytes = 0; // read and written

  template <typename Visit> void members(Visit &visit) {
    visit("tensors", tensors, "flops", flops, "bytes_moved", bytes);
  }
};

struct kept_tensor {
  std::string name;
  int64_t bytes = 0;
  int first = 0, last = 0; // steps that it is alive in

  template <typename Visit> void members(Visit &visit) {
    visit("tensor", name, "bytes", bytes, "first_step", first, "last_step", last);
  }
};

struct planned_recompute {
  std::string rule;           // none, light, full, or the budget
  bool in_stages = false;     // their functions repeat besides what they neither keep nor send
  int64_t bytes = 0;          // planned, of all arenas
  int64_t kept_bytes = 0;     // where nothing were recomputed
  double time = 1, flops = 1; // of a step, predicted, as multiples of those where nothing were
  std::vector<recomputed_step> steps; // in program order
  std::vector<kept_tensor> kept;      // activations that the backward pass reads, the largest first

  template <typename Visit> void members(Visit &visit) {
    visit("rule", rule, "in_stages", in_stages, "bytes", bytes, "bytes_keeping_all", kept_bytes,
          "predicted_time", time, "flops", flops, "computed_again", steps, "kept", kept);
  }
};

// What nvcc gave a kernel: plan/registers.json, which is written once the program is compiled.
struct kernel_registers {
  std::string kernel, architecture;
  int64_t registers = 0, spill_stores = 0, spill_loads = 0, shared_bytes = 0;

  template <typename Visit> void members(Visit &visit) {
    visit("kernel", kernel, "architecture", architecture, "registers", registers, "spill_stores",
          spill_stores, "spill_loads", spill_loads, "shared_bytes", shared_bytes);
  }
};

struct register_table {
  std::vector<kernel_registers> kernels; // on each architecture

  template <typename Visit> void members(Visit &visit) { visit("kernels", kernels); }
};

// Where the emitted source has the parts of a plan: plan/source_map.json. Lines count from 1; 0:
// none.
struct source_lines {
  int first = 0, last = 0;

  template <typename Visit> void members(Visit &visit) { visit("first", first, "last", last); }
};

struct mapped_kernel {
  std::string name;   // of the function
  int line = 0;       // that names it
  source_lines lines; // with its comment, and what it runs on a device

  template <typename Visit> void members(Visit &visit) {
    visit("function", name, "line", line, "lines", lines);
  }
};

struct mapped_step {
  source_lines lines; // its call
  int kernel = -1;    // number of a mapped kernel; -1: a function of the runtime

  template <typename Visit> void members(Visit &visit) {
    visit("lines", lines);
    visit.maybe("kernel", kernel);
  }
};

// By the numbers of steps and tensors in the plan.
struct mapped_entry {
  std::string name;
  std::vector<mapped_step> steps;
  std::vector<int> tensors; // lines of their places

  template <typename Visit> void members(Visit &visit) {
    visit("entry", name, "steps", steps, "tensors", tensors);
  }
};

struct source_map {
  std::string step_file, kernel_file, memory_file; // below the output folder
  std::vector<mapped_kernel> kernels;
  std::vector<mapped_entry> entries;

  // Null: the source has no such function.
  const mapped_entry *find(const std::string &entry) const {
    for (const mapped_entry &each : entries)
      if (each.name == entry)
        return &each;
    return nullptr;
  }

  template <typename Visit> void members(Visit &visit) {
    visit("steps", step_file, "kernels", kernel_file, "memory", memory_file, "functions", kernels,
          "entries", entries);
  }
};

struct plan {
  planned_program program;
  planned_memory memory;
  std::vector<planned_entry> entries;
  std::vector<planned_node> nodes; // in the order of the graph; what no result needs is left out
  std::vector<planned_parameter> parameters;
  std::vector<std::string> parameter_table; // lines: every decision, with its reason
  std::optional<planned_stages> stages;     // of a program that trains, as the next
  std::optional<planned_recompute> recompute;

  // Null: it has none.
  const planned_entry *find(const std::string &entry) const {
    for (const planned_entry &each : entries)
      if (each.name == entry)
        return &each;
    return nullptr;
  }

  template <typename Visit> void members(Visit &visit) {
    visit("program", program, "memory", memory, "entries", entries, "nodes", nodes, "parameters",
          parameters, "parameter_table", parameter_table);
    visit.maybe("stages", stages, "recompute", recompute);
  }
};

} // namespace trainc
