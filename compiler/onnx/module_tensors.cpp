// SPDX-License-Identifier: Apache-2.0
//
// What a module of PyTorch calls the parameters that TorchScript's exporter gave other names, and
// how it holds them. The exporter transposes the weight of a linear layer whose input has more than
// two axes, and then it has no name: onnx::MatMul_264. Its node has the module's path, and with it
// other nodes that read named parameters, such as the bias. Known weakness: the file does not say
// that the values are those of the module; the trainer tells its user what it took for what.
#include "compiler/onnx/exported_program.h"
#include "compiler/onnx/parameters.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace llvm;

namespace trainc::reader {

/// The path of a further call of a module, or of one whose own name ends in a number.
static bool endsInNumber(StringRef path) { return path.rtrim("0123456789").ends_with("_"); }

/// The path of the one module that has the weight; empty where it is not that of a linear layer.
static StringRef pathOfLinear(const Graph &graph, const Decision &decision) {
  if (!decision.isParameter() || !isTorchScriptName(decision.name()) ||
      decision.tensor->shape.size() != 2)
    return "";
  ArrayRef<Use> uses = graph.uses(decision.name());
  bool multiplies = !uses.empty() && all_of(uses, [](const Use &use) {
    return use.node->domain.empty() && use.node->opType() == "MatMul" && use.index == 1;
  });
  return multiplies && uses[0].node->path ? StringRef(*uses[0].node->path) : "";
}

void findModuleTensors(const Graph &graph, Decisions &decisions) {
  llvm::StringSet<> names;
  for (const auto &decision : decisions)
    names.insert(decision->name());
  StringMap<llvm::StringSet<>> modules; // by path: of named parameters that its nodes read
  for (const GraphNode *node : graph.nodes())
    for (const std::string &input : node->inputs)
      if (node->path && names.contains(input) && StringRef(input).contains('.') &&
          !isExporterName(input))
        modules[*node->path].insert(StringRef(input).rsplit('.').first);
  StringMap<SmallVector<Decision *>> found;
  for (const auto &decision : decisions) {
    StringRef path = pathOfLinear(graph, *decision);
    const llvm::StringSet<> &evidence = modules[path];
    if (path.empty() || evidence.size() > 1 || (evidence.empty() && endsInNumber(path)))
      continue;
    std::string name = ((evidence.empty() ? path : evidence.begin()->getKey()) + ".weight").str();
    if (!names.contains(name))
      found[name].push_back(decision.get());
  }
  for (const auto &entry : found) {
    if (entry.second.size() > 1)
      continue;
    entry.second[0]->moduleTensor = entry.getKey().str();
    entry.second[0]->isModulesTranspose = true;
  }
}

} // namespace trainc::reader
