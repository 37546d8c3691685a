// SPDX-License-Identifier: Apache-2.0
//
// What messages about too much memory say.
#include "dialects/kernel/kernel.h"
#include "passes/plan_tables.h"
#include "runtime/byte_text.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <algorithm>
#include <map>

namespace trainc {

constexpr size_t kNamed = 5; // largest tensors that a message names

/// The smallest of tensors that share bytes: a parameter, not the flat tensor that holds it among
/// others.
static std::vector<planned_tensor> withoutOverlaps(std::vector<planned_tensor> tensors) {
  llvm::stable_sort(
      tensors, [](const planned_tensor &a, const planned_tensor &b) { return a.bytes < b.bytes; });
  std::map<std::pair<std::string, int64_t>, int64_t> taken; // arena and first byte: the end
  std::vector<planned_tensor> apart;
  for (planned_tensor &tensor : tensors) {
    auto next = taken.lower_bound({tensor.arena, tensor.offset + tensor.bytes});
    if (next != taken.begin() && std::prev(next)->first.first == tensor.arena &&
        std::prev(next)->second > tensor.offset)
      continue;
    taken[{tensor.arena, tensor.offset}] = tensor.offset + tensor.bytes;
    apart.push_back(std::move(tensor));
  }
  return apart;
}

/// The largest tensors that exist at one time, those in one place once: of activations, whose
/// places change hands, the ones alive at the peak of the entry function that needs most.
static std::vector<planned_tensor> largestAtOneTime(const plan &described, bool activationsAlone) {
  std::vector<planned_tensor> lasting, atPeak;
  int64_t most = 0;
  const std::string activations = kernel::stringifyArena(kernel::Arena::activations).str();
  for (const planned_entry &entry : described.entries) {
    std::vector<planned_tensor> alive;
    for (const planned_tensor &tensor : entry.tensors)
      if (tensor.arena == activations && tensor.is_at_peak)
        alive.push_back(tensor);
      else if (tensor.arena != activations && !activationsAlone)
        lasting.push_back(tensor);
    std::vector<planned_tensor> apart = withoutOverlaps(std::move(alive));
    int64_t bytes = 0;
    for (const planned_tensor &tensor : apart)
      bytes += tensor.bytes;
    if (bytes > most) {
      most = bytes;
      atPeak = std::move(apart);
    }
  }
  std::vector<planned_tensor> distinct = withoutOverlaps(std::move(lasting));
  llvm::append_range(distinct, atPeak);
  llvm::stable_sort(
      distinct, [](const planned_tensor &a, const planned_tensor &b) { return a.bytes > b.bytes; });
  distinct.resize(std::min(distinct.size(), kNamed));
  return distinct;
}

std::string memoryNeeds(const plan &described, bool activationsAlone) {
  std::vector<std::string> arenas, tensors;
  for (const planned_arena &arena : described.memory.arenas)
    if (arena.bytes > 0)
      arenas.push_back(arena.name + " " + byte_text(arena.bytes));
  if (described.memory.in_run && described.memory.in_run->accumulators > 0)
    arenas.push_back("sums over micro-batches " + byte_text(described.memory.in_run->accumulators));
  for (const planned_tensor &tensor : largestAtOneTime(described, activationsAlone))
    tensors.push_back("'" + tensor.name + "' (" + byte_text(tensor.bytes) + ", " + tensor.arena +
                      ")");
  return llvm::join(arenas, ", ") + "; the largest " +
         (activationsAlone ? "activations at the peak" : "tensors") + " are " +
         llvm::join(tensors, ", ");
}

} // namespace trainc
