// SPDX-License-Identifier: Apache-2.0
//
// The public support table, made from the importers that are there.
#include "compiler/operator_table.h"
#include "dialects/nn/onnx_node.h"
#include "llvm/ADT/SmallVector.h"
#include <map>

namespace trainc {

std::string operatorTable() {
  std::map<std::string, std::string> oldest; // of each operator
  for (const std::string &entry : nn::listOnnxImporters()) {
    llvm::SmallVector<llvm::StringRef> parts; // domain, operator, first operator set
    llvm::StringRef(entry).split(parts, ':');
    std::string name = (parts[0].empty() ? "" : parts[0].str() + ".") + parts[1].str();
    auto [place, added] = oldest.emplace(name, parts[2].str());
    if (!added && std::stoll(parts[2].str()) < std::stoll(place->second))
      place->second = parts[2].str();
  }
  std::string text = "# ONNX operators\n\n"
                     "Written by `trainc --list-operators` from the importers that are there. "
                     "A node\n"
                     "whose inputs are all known when the model is compiled (shape arithmetic, "
                     "masks) is evaluated then.\n"
                     "[node_tests.md](node_tests.md) says which of ONNX's own tests do not "
                     "run, and why.\n\n"
                     "| operator | from opset |\n|---|---|\n";
  for (auto &[name, since] : oldest)
    text += "| " + name + " | " + since + " |\n";
  return text;
}

} // namespace trainc
