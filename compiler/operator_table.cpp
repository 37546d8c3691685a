// SPDX-License-Identifier: Apache-2.0
//
// The public support table, made from the importers that are there.
#include "compiler/operator_table.h"
#include "dialects/nn/onnx_node.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include <map>

namespace trainc {

static std::string refusedOf(const nn::OnnxSupport &support) {
  std::vector<std::string> parts;
  if (support.floatsOnly)
    parts.emplace_back("integers and bools");
  for (const nn::OnnxSupport::Words &words : support.words)
    parts.push_back("`" + words.attribute.str() + "` other than " +
                    llvm::join(words.allowed, ", "));
  for (const nn::OnnxSupport::Known &known : support.known)
    parts.push_back("input " + std::to_string(known.input) +
                    " that is not known when the model is compiled");
  return llvm::join(parts, "; ");
}

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
  auto inputsOf = [](llvm::ArrayRef<unsigned> inputs) -> std::string {
    if (inputs.empty())
      return "no";
    auto numbers = llvm::map_range(inputs, [](unsigned input) { return std::to_string(input); });
    return (inputs.size() > 1 ? "inputs " : "input ") + llvm::join(numbers, ", ");
  };
  auto gradientOf = [&](const nn::OnnxSupport &support) {
    return support.gradient ? inputsOf(*support.gradient) : "yes";
  };
  std::string text = "# ONNX operators\n\n"
                     "Written by `trainc --list-operators` from the importers that are there. "
                     "A node\n"
                     "whose inputs are all known when the model is compiled (shape arithmetic, "
                     "masks) is evaluated then.\n"
                     "[node_tests.md](node_tests.md) says which of ONNX's own tests do not "
                     "run, and why.\n\n"
                     "Every operator is made of operations that the CPU and CUDA have alike. A "
                     "gradient is one of all inputs of\nfloats, or of those that are named, "
                     "counted from 0. What is refused besides depends on sizes and versions; "
                     "the\nmessage says it.\n\n"
                     "| operator | from opset | gradient | refused |\n|---|---|---|---|\n";
  for (auto &[name, since] : oldest) {
    auto [domain, opType] = llvm::StringRef(name).rsplit('.');
    bool isOnnx = opType.empty();
    const nn::OnnxSupport &support = nn::onnxSupport(isOnnx ? "" : domain, isOnnx ? name : opType);
    text += "| " + name + " | " + since + " | " + gradientOf(support) + " | " + refusedOf(support) +
            " |\n";
  }
  return text;
}

} // namespace trainc
