// SPDX-License-Identifier: Apache-2.0
//
// Values that follow from constants and shapes, without the rest of the model; why others do not.
#include "compiler/onnx/import/graph_importer.h"
#include "dialects/nn/tensor.h"
#include "mlir/IR/Diagnostics.h"
#include <set>

using namespace llvm;
using namespace mlir;

namespace trainc::reader {

constexpr int64_t kLargestSetting = 16; // elements of an input that says how, not what, to compute

constexpr size_t kNamed = 3; // names in a message; one more is kept, which stands for all others

void Importer::Causes::add(const Causes &other) {
  auto merge = [](auto &into, const auto &from) {
    for (StringRef name : from)
      if (into.size() <= kNamed && !llvm::is_contained(into, name))
        into.push_back(name);
  };
  merge(inputs, other.inputs);
  merge(parameters, other.parameters);
}

// Back to what the model is given or learns, each value once for all questions.
const Importer::Causes &Importer::causesOf(StringRef name) {
  if (initializers.empty())
    for (const onnx::TensorProto &tensor : file.graph().initializer())
      initializers.insert(tensor.name());
  std::vector<std::string> open{name.str()};
  while (!open.empty()) {
    std::string value = open.back();
    ImportedValue *imported = find(value);
    bool isKnown = imported && imported->constant;
    const GraphNode *node = isKnown ? nullptr : graph.producer(value);
    size_t before = open.size();
    if (node && !causes.count(value))
      for (const std::string &input : node->inputs)
        if (!input.empty() && !causes.count(input))
          open.push_back(input);
    if (open.size() != before)
      continue;
    open.pop_back();
    auto [entry, isNew] = causes.try_emplace(value);
    if (!isNew || isKnown)
      continue;
    Causes &found = entry->second;
    if (!node)
      (initializers.contains(value) ? found.parameters : found.inputs).push_back(entry->getKey());
    else
      for (const std::string &input : node->inputs)
        if (!input.empty())
          found.add(causes.find(input)->second);
  }
  return causes.find(name)->second;
}

static std::string listed(StringRef kind, ArrayRef<StringRef> names) {
  std::string text = kind.str() + (names.size() > 1 ? "s " : " ");
  std::vector<std::string> shown;
  for (StringRef name : names.take_front(kNamed))
    shown.push_back(name.str());
  return text + quotedList(shown) + (names.size() > kNamed ? " and others" : "");
}

// Exporters write an EmbeddingBag as a loop over its bags, which begin where an input says.
static std::string adviceOnOffsets(Value input) {
  const bool mayBeOffsets = input && nn::tensorType(input).getRank() == 1 &&
                            isIndexElement(nn::tensorType(input).getElementType());
  return mayBeOffsets ? "; instead of an EmbeddingBag with offsets, nn.Embedding and a mean or sum "
                        "over the axis of a bag"
                      : "";
}

Unknown Importer::whyUnknown(StringRef name) {
  const Causes &found = causesOf(name);
  if (!found.inputs.empty()) {
    StringRef first = found.inputs[0];
    ImportedValue *value = find(first);
    bool isData = value && value->tensor && // rather than a flag, a size or a rate
                  nn::tensorType(value->tensor).getNumElements() > kLargestSetting;
    const std::string advice = isData
                                   ? "an export in which it does not"
                                   : "--constant " + first.str() + "=VALUE, which fixes the input";
    return {"depends on the values of " + listed("input", found.inputs),
            advice + adviceOnOffsets(value ? value->tensor : Value())};
  }
  if (!found.parameters.empty())
    return {"depends on " + listed("parameter", found.parameters) + ", which training changes",
            "an export in which it does not"};
  return {kNotEvaluated, ""};
}

// With a known condition, what an `If` makes is what its branch has made.
void Importer::takeBranch(const GraphNode &node) {
  ImportedValue *condition = find(node.inputs[0]);
  size_t count = node.outputs.size();
  if (!condition || !condition->constant || condition->constant.count() != 1 ||
      node.inputs.size() != 1 + 2 * count)
    return;
  size_t first = condition->constant.integer(0) != 0 ? 1 : 1 + count;
  for (size_t i = 0; i < count; ++i)
    if (ImportedValue *made = find(node.inputs[first + i]))
      define(node, i, *made);
}

// A loop that is tried inside of another makes the states after its last
// iteration: so the next iteration around it may be decided in the same walk.
void Importer::takeIterations(const GraphNode &node) {
  if (node.tried == 0)
    return;
  std::vector<Known> deciding;
  for (const std::string &name : decidingValues(node)) {
    ImportedValue *value = find(name);
    deciding.push_back({value ? value->constant : nn::Tensor(), {}});
  }
  const std::optional<int64_t> times = timesOfTried(node, deciding);
  const size_t own = node.proto->input_size(), states = own - 2;
  const size_t each = (node.inputs.size() - own) / node.tried;
  if (!times || *times > static_cast<int64_t>(node.tried) || each != 1 + states)
    return;
  const size_t first = *times == 0 ? 2 : own + (*times - 1) * each + 1;
  for (size_t i = 0; i < states; ++i)
    if (ImportedValue *made = find(node.inputs[first + i]))
      define(node, i, *made);
}

std::vector<Known> Importer::evaluate(const Parameters &initializers, ArrayRef<ModelInput> inputs,
                                      ArrayRef<std::string> names) {
  SmallVector<const Parameter *> parameters;
  for (const auto &initializer : initializers)
    if (initializer->isParameter())
      parameters.push_back(initializer.get());
  OwningOpRef<ModuleOp> module = begin(parameters, initializers, inputs);
  std::set<const GraphNode *> deciding;
  std::vector<const GraphNode *> work;
  auto need = [&](const std::string &value) {
    const GraphNode *node = graph.producer(value);
    if (node && deciding.insert(node).second)
      work.push_back(node);
  };
  llvm::for_each(names, need);
  while (!work.empty()) {
    const GraphNode *node = work.back();
    work.pop_back();
    llvm::for_each(node->inputs, need);
  }
  needed = &deciding;
  ScopedDiagnosticHandler handler(&context, [](Diagnostic &) {}); // the import proper will tell
  for (const GraphNode *node : graph.nodes())
    if (deciding.count(node)) {
      if (node->isIf() && !node->inputs.empty())
        takeBranch(*node);
      else if (node->isLoop())
        takeIterations(*node);
      else if (isImportable(*node))
        importNode(*node);
    }
  needed = nullptr;
  std::vector<Known> result;
  for (const std::string &name : names) {
    ImportedValue *value = find(name);
    nn::Tensor known = value ? value->constant : nn::Tensor();
    result.push_back({known, known ? Unknown() : whyUnknown(name)});
  }
  return result;
}

std::vector<Known> evaluateValues(const ModelFile &file, const Graph &graph,
                                  const Parameters &initializers, ArrayRef<ModelInput> inputs,
                                  ArrayRef<std::string> names, MLIRContext &context) {
  Report ignored;
  return Importer(file, graph, nn::BatchNormMode::file, context, ignored)
      .evaluate(initializers, inputs, names);
}

} // namespace trainc::reader
