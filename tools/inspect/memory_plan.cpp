// SPDX-License-Identifier: Apache-2.0
#include "tools/inspect/memory_plan.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/MathExtras.h"
#include <optional>

using namespace llvm;

namespace trainc::inspect {

/// A tensor's line: arena, offset, bytes, first and last step, mark of the peak, name.
static std::optional<Tensor> parseTensor(StringRef line) {
  Tensor tensor;
  auto word = [&] {
    auto [head, tail] = line.ltrim().split(' ');
    line = tail;
    return head;
  };
  tensor.arena = word().str();
  if (word().getAsInteger(10, tensor.offset) || word().getAsInteger(10, tensor.bytes) ||
      word().getAsInteger(10, tensor.first) || word().getAsInteger(10, tensor.last))
    return std::nullopt; // the heading
  int64_t end;
  if (tensor.offset < 0 || tensor.bytes < 0 || AddOverflow(tensor.offset, tensor.bytes, end))
    return std::nullopt; // of a damaged plan
  StringRef rest = line.ltrim();
  tensor.atPeak = rest.consume_front("* ");
  tensor.name = rest.str();
  return tensor;
}

MemoryPlan parseMemoryPlan(const std::string &text) {
  MemoryPlan plan;
  SmallVector<StringRef> lines;
  StringRef(text).split(lines, '\n', -1, /*KeepEmpty=*/false);
  for (StringRef line : lines) {
    if (!line.starts_with(" ") && line.contains(": ")) {
      plan.entries.push_back({line.str(), {}});
    } else if (plan.entries.empty()) {
      plan.arenas.push_back(line.str());
    } else if (std::optional<Tensor> tensor = parseTensor(line)) {
      plan.entries.back().tensors.push_back(*tensor);
    }
  }
  return plan;
}

} // namespace trainc::inspect
