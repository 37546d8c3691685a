// SPDX-License-Identifier: Apache-2.0
//
// The limit is on what the plan allocates for one rank: the arenas and the tables of constants.
// What libraries and the batches in flight take besides is not planned.
#include "compiler/memory_limit.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Format.h"
#include <algorithm>

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

/// The largest tensors, each once, however many entry functions see it.
std::vector<PlannedTensor> largestTensors(const MemoryTable &plan) {
  std::vector<PlannedTensor> tensors;
  StringMap<size_t> known;
  for (const PlannedEntry &entry : plan.entries)
    for (const PlannedTensor &tensor : entry.tensors)
      if (known.try_emplace(tensor.arena + " " + tensor.name, tensors.size()).second)
        tensors.push_back(tensor);
  stable_sort(tensors,
              [](const PlannedTensor &a, const PlannedTensor &b) { return a.bytes > b.bytes; });
  tensors.resize(std::min(tensors.size(), kShown));
  return tensors;
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
