// SPDX-License-Identifier: Apache-2.0
//
// The limit is on what the plan allocates for one rank: the arenas and the tables of constants.
// What libraries and the batches in flight take besides is not planned.
#include "compiler/memory_limit.h"
#include "runtime/byte_text.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace trainc {

LogicalResult checkMemoryLimit(const plan &described, int64_t limit, const std::string &model,
                               Report &report) {
  const int64_t bytes = described.memory.bytes();
  if (bytes <= limit)
    return success();
  return report.error(
      ExitCode::overLimit, model,
      "a rank of the trainer needs " + byte_text(bytes) + ", more than the limit of " +
          byte_text(limit) + ": " + memoryNeeds(described),
      "a smaller --dim, --recompute or --memory-budget, or a larger --limit-memory");
}

LogicalResult checkMemoryLimit(const planned_stages &stages, int64_t limit,
                               const std::string &model, Report &report) {
  auto stage = max_element(stages.stages, [](const planned_stage &a, const planned_stage &b) {
    return a.memory.bytes() < b.memory.bytes();
  });
  const rank_memory *largest = &stage->memory;
  if (largest->bytes() <= limit)
    return success();
  std::vector<std::string> parts;
  for (auto [name, bytes] : {std::pair<StringRef, int64_t>("parameters", largest->parameters),
                             {"gradients", largest->gradients},
                             {"sums over micro-batches", largest->accumulators},
                             {"optimizer_state", largest->state},
                             {"activations", largest->activations},
                             {"the stash of micro-batches", largest->stash},
                             {"places for messages", largest->messages},
                             {"workspace", largest->workspace},
                             {"constants", largest->constants}})
    if (bytes > 0)
      parts.push_back((name + " " + byte_text(bytes)).str());
  return report.error(ExitCode::overLimit, model,
                      "a rank of stage " + std::to_string(stage - stages.stages.begin()) +
                          " needs " + byte_text(largest->bytes()) + ", more than the limit of " +
                          byte_text(limit) + ": " + join(parts, ", "),
                      "more --stages, --recompute, --schedule 1f1b, a smaller --dim, or a larger "
                      "--limit-memory");
}

} // namespace trainc
