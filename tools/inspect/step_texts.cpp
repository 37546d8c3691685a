// SPDX-License-Identifier: Apache-2.0
#include "tools/inspect/step_texts.h"

#include "tools/inspect/plan_text.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

using llvm::StringRef;

namespace trainc::inspect {

/// An entry function's line is followed by those of its steps: number, what it is, node.
StepTexts::StepTexts(const std::string &folder) {
  const std::string text = readText(folder + "/plan/steps.txt");
  llvm::SmallVector<StringRef> lines;
  StringRef(text).split(lines, '\n', -1, /*KeepEmpty=*/false);
  std::string entry;
  for (StringRef line : lines) {
    int number = 0;
    if (!line.starts_with(" "))
      entry = line.split(": ").first.str();
    else if (line = line.ltrim(); !line.consumeInteger(10, number))
      texts[{entry, number}] = line.trim().str();
  }
}

std::string StepTexts::of(const NamedStep &step) const {
  auto found = texts.find({step.entry, step.number});
  if (found == texts.end())
    return "";
  StringRef text = found->second;
  if (!step.computes.empty() && text.consume_back(step.computes.front()))
    text = text.rtrim();
  return text.str();
}

} // namespace trainc::inspect
