// SPDX-License-Identifier: Apache-2.0
//
// What a module of PyTorch calls the parameters that exporters gave other names, and how it holds
// them. TorchScript's exporter transposes the weight of a linear layer whose input has more than
// two axes, gives the scale and bias of a group norm further axes and orders the gates of recurrent
// layers; then they have no name: onnx::MatMul_264. Their nodes have the module's path, and with it
// other nodes that read named parameters, such as the bias. The default exporter orders gates, too,
// and names the parameters. Known weakness: TorchScript's file does not say that the values are
// those of the module; the trainer tells its user what it took for what.
#include "compiler/onnx/provenance/dynamo/exported_program.h"
#include "compiler/onnx/provenance/parameters.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include <map>
#include <set>

using namespace llvm;

namespace trainc::reader {

namespace {

bool isOperator(const GraphNode &node, StringRef opType) {
  return node.domain.empty() && node.opType() == opType;
}

/// The path of a further call of a module, or of one whose own name ends in a number.
bool endsInNumber(StringRef path) { return path.rtrim("0123456789").ends_with("_"); }

std::string inModule(StringRef path, StringRef name) {
  return (path.empty() ? name.str() : (path + "." + name).str());
}

class ModuleTensors {
public:
  ModuleTensors(const Graph &graph, Decisions &decisions) : graph(graph), decisions(decisions) {
    for (const auto &decision : decisions)
      names.insert(decision->name());
    for (const GraphNode *node : graph.nodes()) {
      if (!node->path)
        continue;
      for (const std::string &input : node->inputs)
        if (isModulesName(input))
          modules[*node->path].insert(StringRef(input).rsplit('.').first);
      if (isOperator(*node, "InstanceNormalization"))
        groupNorms.insert(*node->path);
      if (isRecurrent(node->domain, node->opType()))
        layers[*node->path].push_back(node);
    }
  }

  void run() {
    for (const auto &decision : decisions) {
      bool mayBe = decision->isParameter() || decision->role == Role::tied;
      if (!mayBe || !isTorchScriptName(decision->name()) || holdRecurrent(*decision))
        continue;
      for (const std::string &name : namesOf(*decision))
        if (!names.contains(name))
          found[name].push_back(decision.get());
    }
    for (const auto &[name, candidates] : found) {
      if (candidates.size() > 1)
        continue;
      Decision &decision = *candidates[0];
      if (decision.moduleTensor.empty())
        decision.moduleTensor = name;
      else
        decision.otherModuleTensors.push_back(name);
      decision.isModulesTranspose = isLinear(decision);
    }
  }

private:
  bool isModulesName(StringRef name) const {
    return names.contains(name) && name.contains('.') && !isExporterName(name);
  }

  bool isLinear(const Decision &decision) const {
    ArrayRef<Use> uses = graph.uses(decision.name());
    return decision.tensor->shape.size() == 2 && !uses.empty() && all_of(uses, [](const Use &use) {
             return isOperator(*use.node, "MatMul") && use.index == 1;
           });
  }

  // The bias that is added to a product has the weight's name but for that word.
  std::string besideBias(const GraphNode &product) const {
    for (const Use &use : graph.uses(product.outputs[0]))
      if (isOperator(*use.node, "Add"))
        if (StringRef bias = use.node->inputs[1 - use.index];
            isModulesName(bias) && bias.consume_back("bias"))
          return (bias + "weight").str();
    return "";
  }

  // A module that is reached by several paths has several names, unless a bias tells the one.
  std::set<std::string> namesOf(const Decision &decision) const {
    std::set<std::string> result;
    bool linear = isLinear(decision);
    for (const Use &use : graph.uses(decision.name()))
      if (std::string name = linear ? besideBias(*use.node) : ""; !name.empty())
        return {name};
    for (const Use &use : graph.uses(decision.name())) {
      if (!use.node->path)
        continue;
      std::string name = linear ? nameByPath(*use.node->path) : nameOfScale(decision);
      if (!name.empty())
        result.insert(name);
    }
    return result;
  }

  // The scale or bias of a group norm.
  std::string nameOfScale(const Decision &decision) const {
    ArrayRef<Use> uses = graph.uses(decision.name());
    if (uses.size() != 1)
      return "";
    StringRef path = *uses[0].node->path;
    bool isOfChannels = count_if(decision.tensor->shape, [](int64_t size) { return size > 1; }) < 2;
    if (!isOfChannels || path.empty() || !groupNorms.contains(path))
      return "";
    return isOperator(*uses[0].node, "Mul")   ? (path + ".weight").str()
           : isOperator(*uses[0].node, "Add") ? (path + ".bias").str()
                                              : "";
  }

  std::string nameByPath(StringRef path) const {
    auto evidence = modules.find(path);
    bool isNamed = evidence != modules.end();
    if (path.empty() || (isNamed && evidence->second.size() > 1) ||
        (!isNamed && endsInNumber(path)))
      return "";
    return ((isNamed ? evidence->second.begin()->getKey() : path) + ".weight").str();
  }

  // Layers of one module have one path, in order.
  bool holdRecurrent(Decision &decision) const {
    for (const Use &use : graph.uses(decision.name())) {
      std::vector<ModuleLayout> layouts =
          recurrentLayout(*use.node, use.index, decision.tensor->shape);
      if (layouts.empty())
        continue;
      if (!use.node->path || endsInNumber(*use.node->path) || decision.role == Role::tied)
        return true;
      const auto &nodes = layers.find(*use.node->path)->second;
      auto layer = static_cast<size_t>(llvm::find(nodes, use.node) - nodes.begin());
      for (const ModuleLayout &layout : layouts)
        decision.held.emplace_back(inModule(*use.node->path, layout.nameIn(layer)), layout.pieces);
      return true;
    }
    return false;
  }

  const Graph &graph;
  Decisions &decisions;
  llvm::StringSet<> names, groupNorms;
  StringMap<llvm::StringSet<>> modules; // by path: of named parameters that its nodes read
  StringMap<SmallVector<const GraphNode *>> layers;
  std::map<std::string, SmallVector<Decision *>> found;
};

} // namespace

// The signature's names, in the order of the places.
static void holdRecorded(const Graph &graph, Decision &decision) {
  std::vector<std::string> names = decision.stackedOf;
  if (names.empty() && !decision.moduleName.empty())
    names = {decision.moduleName};
  for (const Use &use : graph.uses(decision.name())) {
    std::vector<ModuleLayout> layouts =
        recurrentLayout(*use.node, use.index, decision.tensor->shape);
    if (layouts.empty() || layouts.size() != names.size())
      continue;
    for (auto [name, layout] : llvm::zip_equal(names, layouts))
      decision.held.emplace_back(name, layout.pieces);
    return;
  }
}

void findModuleTensors(const Graph &graph, bool hasSignature, Decisions &decisions) {
  if (!hasSignature)
    ModuleTensors(graph, decisions).run();
  else
    for (const auto &decision : decisions)
      if (decision->isParameter() && decision->exporterMade && decision->moduleTensor.empty())
        holdRecorded(graph, *decision);
}

} // namespace trainc::reader
