// SPDX-License-Identifier: Apache-2.0
//
// The public support table, made from the importers that are there.
#include "compiler/operator_table.h"
#include "compiler/onnx/import/built_in.h"
#include "dialects/nn/onnx/onnx_node.h"
#include "dialects/nn/onnx/onnx_refusal.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include <map>
#include <set>

namespace trainc {

static std::string inputsOf(llvm::ArrayRef<unsigned> inputs) {
  auto numbers = llvm::map_range(inputs, [](unsigned input) { return std::to_string(input); });
  return (inputs.size() > 1 ? "inputs " : "input ") + llvm::join(numbers, ", ");
}

static std::string refusedOf(const nn::OnnxSupport &support, llvm::ArrayRef<std::string> others) {
  std::vector<std::string> parts;
  if (support.floatsOnly)
    parts.emplace_back("integers and bools");
  for (const nn::OnnxSupport::Words &words : support.words)
    parts.push_back("`" + words.attribute.str() + "` other than " +
                    llvm::join(words.allowed, ", "));
  llvm::SmallVector<unsigned> known;
  for (const nn::OnnxSupport::Known &one : support.known)
    known.push_back(one.input);
  llvm::sort(known);
  if (!known.empty())
    parts.push_back(inputsOf(known) + (known.size() > 1 ? " that are" : " that is") +
                    " not known when the model is compiled");
  llvm::append_range(parts, others);
  return llvm::join(parts, "; ");
}

std::string operatorTable() {
  std::map<std::string, std::set<int64_t>> importers; // of each operator, the operator sets
  for (const std::string &entry : nn::listOnnxImporters()) {
    llvm::SmallVector<llvm::StringRef> parts; // domain, operator, first operator set
    llvm::StringRef(entry).split(parts, ':');
    std::string name = (parts[0].empty() ? "" : parts[0].str() + ".") + parts[1].str();
    importers[name].insert(std::stoll(parts[2].str()));
  }
  for (const reader::BuiltIn &builtIn : reader::builtInOperators())
    importers[builtIn.opType.str()].insert(builtIn.since);
  auto gradientOf = [](const nn::OnnxSupport &support) -> std::string {
    if (!support.gradient)
      return "yes";
    return support.gradient->empty() ? "no" : inputsOf(*support.gradient);
  };
  std::string text =
      "# ONNX operators\n\n"
      "Written by `trainc --list-operators` from the importers that are there. "
      "A node\n"
      "whose inputs are all known when the model is compiled (shape arithmetic, "
      "masks) is evaluated then.\n"
      "[node_tests.md](node_tests.md) says which of ONNX's own tests do not "
      "run, and why.\n\n"
      "Versions are operator sets; those that stand together have one meaning. Every operator is "
      "made of operations that the\nCPU and CUDA have alike. A gradient is one of all inputs of "
      "floats, or of those that are named, counted from 0.\nuint64 is computed "
      "as int64.\nRefused, too, are outputs without elements, what is computed of such "
      "tensors, and sizes that do not fit.\nThe bodies of If, Loop and Scan stand "
      "in their place in the program: programs have no loops of the model's.\n"
      "ScatterElements and ScatterND with mul, min and max, or with sums of integers, "
      "compare each element with each update of its\nline: their work is elements "
      "times updates.\n\n"
      "| operator | versions | forward | gradient | CPU | CUDA | refused |\n"
      "|---|---|---|---|---|---|---|\n";
  for (auto &[name, sets] : importers) {
    auto [domain, opType] = llvm::StringRef(name).rsplit('.');
    bool isOnnx = opType.empty();
    const nn::OnnxSupport &support = nn::onnxSupport(isOnnx ? "" : domain, isOnnx ? name : opType);
    // A domain of another maker counts its sets from 1; none is declared to end.
    std::string versions = isOnnx ? reader::versionsOf(name, sets)
                                  : "from " + std::to_string(*sets.begin()) + " of its domain";
    text += "| " + name + " | " + versions + " | yes | " + gradientOf(support) + " | yes | yes | " +
            refusedOf(support, nn::onnxRefusals(name)) + " |\n";
  }
  return text;
}

} // namespace trainc
