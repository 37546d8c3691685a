// SPDX-License-Identifier: Apache-2.0
//
// What was planned, as tables: the text and the JSON of `plan/` are printed from them, and limits
// are compared with them.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "runtime/ranks/rank_memory.h"
#include <cstdint>
#include <string>
#include <vector>

namespace trainc {

struct PlannedArena {
  std::string name;
  int64_t bytes, lowerBound;
};

struct PlannedTensor {
  std::string name, arena;
  int64_t offset, bytes; // in its arena
  int first, last;       // steps that it is alive in
  std::string type;      // of its elements, `f32`
  std::vector<int64_t> shape;
  bool isArgument;       // of the function; else the step `first` makes it
  bool isAtPeak = false; // an activation that is alive when most of them are
};

struct PlannedEntry {
  std::string name;
  int steps = 0;
  int peak = -1;                      // the step with most activation bytes alive; -1: none has any
  std::vector<PlannedTensor> tensors; // by arena, offset and time
};

/// What a rank of a step in one piece holds, the ranks being on one host.
struct PlannedRank {
  int ranks;
  int64_t microBatches;
  std::string shard; // of the trainer's or trainc's option
  int64_t bytes;
};

struct MemoryTable {
  std::vector<PlannedArena> arenas;
  std::vector<PlannedRank> ofRanks; // for some numbers of ranks and micro-batches; none of stages
  std::vector<PlannedEntry> entries;
  /// What a rank holds, where somebody said how the trainer will be started; none for stages.
  std::optional<rank_memory> inRun;

  int64_t arenaBytes() const;
  /// What a rank holds in that run, else all arenas.
  int64_t bytes() const { return inRun ? inRun->bytes() : arenaBytes(); }
};

/// How the trainer will be started, as far as a rank's memory depends on it.
void setPlannedRun(mlir::ModuleOp module, const rank_layout &run);
/// Nothing where nobody said it.
std::optional<rank_layout> plannedRun(mlir::ModuleOp module);

/// The table of a module after plan-memory.
MemoryTable describeMemory(mlir::ModuleOp module);

/// Equal steps of an entry function.
struct ListedKernel {
  std::string form; // of a kernel; `library` for a function of the runtime
  std::string text; // what it is, and the nodes that it comes from
  double flops;     // of one
  int64_t bytes;    // read and written by one
  int count = 0;
};

struct ListedEntry {
  std::string name;
  int steps = 0;
  double flops = 0;
  int64_t bytes = 0;
  int64_t leastBytes = 0; // where caches hold every tensor between its uses
  std::vector<ListedKernel> kernels;
};

/// What a rank needs and what holds it up, for messages: each arena, and the five largest tensors
/// that exist at one time, or activations among them.
std::string memoryNeeds(const MemoryTable &plan, bool activationsAlone = false);

struct RecomputedStep {
  std::string tensors; // that it makes again
  double flops;
  int64_t bytes; // read and written
};

struct KeptTensor {
  std::string name;
  int64_t bytes;
  int first, last; // steps that it is alive in
};

struct RecomputeTable {
  std::string rule;      // none, light, full, or the budget
  bool inStages = false; // the functions of stages repeat besides what they neither keep nor send
  int64_t bytes, keptBytes;   // planned, of all arenas; where nothing were recomputed
  double time = 1, flops = 1; // of a step, predicted, as multiples of those where nothing were
  std::vector<RecomputedStep> steps; // in program order
  std::vector<KeptTensor> kept;      // activations that the backward pass reads, the largest first
};

/// The table of a module after plan-memory.
RecomputeTable describeRecompute(mlir::ModuleOp module);

/// The kernels of a module after lower-to-kernels.
std::vector<ListedEntry> describeKernels(mlir::ModuleOp module);

} // namespace trainc
