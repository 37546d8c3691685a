// SPDX-License-Identifier: Apache-2.0
//
// The limit is on what the plan allocates for one rank: the arenas and the tables of constants.
// What libraries and the batches in flight take besides is not planned.
#include "compiler/memory_limit.h"
#include "dialects/kernel/kernel.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include <algorithm>
#include <map>

using namespace llvm;

namespace trainc {

namespace {

constexpr size_t kShown = 5; // largest tensors that the message names

struct Unit {
  const char *name;
  double bytes;
};
constexpr Unit kUnits[] = {
    {"TiB", 0x1p40}, {"GiB", 0x1p30}, {"MiB", 0x1p20}, {"KiB", 0x1p10}, {"TB", 1e12},
    {"GB", 1e9},     {"MB", 1e6},     {"KB", 1e3},     {"kB", 1e3},     {"B", 1},
};

std::string readable(int64_t bytes) {
  std::string text;
  raw_string_ostream out(text);
  for (const Unit &unit : ArrayRef(kUnits).take_front(4))
    if (double(bytes) >= unit.bytes) {
      out << format("%.2f %s", double(bytes) / unit.bytes, unit.name);
      return text;
    }
  out << bytes << " bytes";
  return text;
}

/// Of tensors that share bytes the smallest: a parameter, not the flat tensor that holds it among
/// others.
std::vector<PlannedTensor> withoutOverlaps(std::vector<PlannedTensor> tensors) {
  stable_sort(tensors,
              [](const PlannedTensor &a, const PlannedTensor &b) { return a.bytes < b.bytes; });
  std::map<std::pair<std::string, int64_t>, int64_t> taken; // arena and first byte: the end
  std::vector<PlannedTensor> apart;
  for (PlannedTensor &tensor : tensors) {
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
std::vector<PlannedTensor> largestTensors(const MemoryTable &plan) {
  std::vector<PlannedTensor> lasting, atPeak;
  int64_t most = 0;
  const std::string activations = kernel::stringifyArena(kernel::Arena::activations).str();
  for (const PlannedEntry &entry : plan.entries) {
    std::vector<PlannedTensor> alive;
    for (const PlannedTensor &tensor : entry.tensors)
      if (tensor.arena != activations)
        lasting.push_back(tensor);
      else if (tensor.isAtPeak)
        alive.push_back(tensor);
    std::vector<PlannedTensor> apart = withoutOverlaps(std::move(alive));
    int64_t bytes = 0;
    for (const PlannedTensor &tensor : apart)
      bytes += tensor.bytes;
    if (bytes > most) {
      most = bytes;
      atPeak = std::move(apart);
    }
  }
  std::vector<PlannedTensor> distinct = withoutOverlaps(std::move(lasting));
  append_range(distinct, atPeak);
  stable_sort(distinct,
              [](const PlannedTensor &a, const PlannedTensor &b) { return a.bytes > b.bytes; });
  distinct.resize(std::min(distinct.size(), kShown));
  return distinct;
}

} // namespace

std::optional<int64_t> parseBytes(StringRef text) {
  text = text.trim();
  double scale = 1;
  for (const Unit &unit : kUnits)
    if (text.consume_back(unit.name)) {
      scale = unit.bytes;
      break;
    }
  double number = 0;
  constexpr double kMost = 0x1p62;
  if (text.rtrim().getAsDouble(number) || !(number > 0) || number * scale > kMost)
    return std::nullopt;
  return static_cast<int64_t>(number * scale);
}

LogicalResult checkMemoryLimit(const MemoryTable &plan, int64_t limit, const std::string &model,
                               Report &report) {
  if (plan.bytes() <= limit)
    return success();
  std::vector<std::string> arenas, tensors;
  for (const PlannedArena &arena : plan.arenas)
    if (arena.bytes > 0)
      arenas.push_back(arena.name + " " + readable(arena.bytes));
  for (const PlannedTensor &tensor : largestTensors(plan))
    tensors.push_back("'" + tensor.name + "' (" + readable(tensor.bytes) + ", " + tensor.arena +
                      ")");
  return report.error(ExitCode::overLimit, model,
                      "a rank of the trainer needs " + readable(plan.bytes()) +
                          ", more than the limit of " + readable(limit) + ": " +
                          join(arenas, ", ") + "; the largest tensors are " + join(tensors, ", "),
                      "a smaller --dim, or a larger --limit-memory");
}

} // namespace trainc
