// SPDX-License-Identifier: Apache-2.0
//
// What a module of PyTorch calls the parameters that exporters gave other names, and how it holds
// them. TorchScript's exporter transposes the weight of a linear layer whose input has more than
// two axes, gives the scale and bias of a group norm further axes and orders the gates of recurrent
// layers; then they have no name: onnx::MatMul_264. Their nodes have the module's path, and with it
// other nodes that read named parameters, such as the bias. The default exporter orders gates, too,
// and names the parameters. Known weakness: TorchScript's file does not say that the values are
// those of the module; the trainer tells its user what it took for what.
#include "compiler/onnx/graph/recurrent_layout.h"
#include "compiler/onnx/parameters/claims.h"
#include "compiler/onnx/parameters/quantized_weights.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include <map>
#include <set>

using namespace llvm;

namespace trainc::reader {

static void hold(Parameter &parameter, const std::string &tensor, const ModuleLayout &layout) {
  for (const LayoutPiece &piece : layout.pieces)
    parameter.pieces.push_back({tensor, parameter.name, piece.ofModule, piece.place, piece.count});
}

namespace {

/// The path of a further call of a module, or of one whose own name ends in a number.
bool endsInNumber(StringRef path) { return path.rtrim("0123456789").ends_with("_"); }

class ModuleTensors {
public:
  ModuleTensors(const Graph &graph, Parameters &parameters) : graph(graph), parameters(parameters) {
    for (const auto &parameter : parameters)
      names.insert(parameter->name);
    for (const GraphNode *node : graph.nodes()) {
      if (!node->path)
        continue;
      for (const std::string &input : node->inputs)
        if (isModulesName(input))
          modules[*node->path].insert(StringRef(input).rsplit('.').first);
      if (isOnnx(*node, "InstanceNormalization"))
        groupNorms.insert(*node->path);
      if (isRecurrent(node->domain, node->opType()))
        layers[*node->path].push_back(node);
    }
  }

  void run() {
    for (const auto &parameter : parameters) {
      bool mayBe = parameter->isParameter() || parameter->role == Role::tied;
      if (!mayBe || !isTorchScriptName(parameter->name) || holdRecurrent(*parameter))
        continue;
      for (const std::string &name : namesOf(*parameter))
        if (!names.contains(name))
          found[name].push_back(parameter.get());
    }
    for (const auto &[name, candidates] : found) {
      if (candidates.size() > 1)
        continue;
      candidates[0]->inState.push_back({name, isLinear(*candidates[0])});
    }
  }

private:
  bool isModulesName(StringRef name) const {
    return names.contains(name) && name.contains('.') && !isExporterName(name);
  }

  bool isLinear(const Parameter &parameter) const {
    ArrayRef<Use> uses = graph.uses(parameter.name);
    return parameter.shape.size() == 2 && !uses.empty() && all_of(uses, [](const Use &use) {
             return isOnnx(*use.node, "MatMul") && use.index == 1;
           });
  }

  // The bias that is added to a product has the weight's name except that word.
  std::string besideBias(const GraphNode &product) const {
    for (const Use &use : graph.uses(product.outputs[0]))
      if (isOnnx(*use.node, "Add"))
        if (StringRef bias = use.node->inputs[1 - use.index];
            isModulesName(bias) && bias.consume_back("bias"))
          return (bias + "weight").str();
    return "";
  }

  // A module that is reached by several paths has several names, unless a bias tells the one.
  std::set<std::string> namesOf(const Parameter &parameter) const {
    std::set<std::string> result;
    bool linear = isLinear(parameter);
    for (const Use &use : graph.uses(parameter.name))
      if (std::string name = linear ? besideBias(*use.node) : ""; !name.empty())
        return {name};
    for (const Use &use : graph.uses(parameter.name)) {
      if (!use.node->path)
        continue;
      std::string name = linear ? nameByPath(*use.node->path) : nameOfScale(parameter);
      if (!name.empty())
        result.insert(name);
    }
    return result;
  }

  // The scale or bias of a group norm.
  std::string nameOfScale(const Parameter &parameter) const {
    ArrayRef<Use> uses = graph.uses(parameter.name);
    if (uses.size() != 1)
      return "";
    StringRef path = *uses[0].node->path;
    bool isOfChannels = count_if(parameter.shape, [](int64_t size) { return size > 1; }) < 2;
    if (!isOfChannels || path.empty() || !groupNorms.contains(path))
      return "";
    return isOnnx(*uses[0].node, "Mul")   ? (path + ".weight").str()
           : isOnnx(*uses[0].node, "Add") ? (path + ".bias").str()
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
  bool holdRecurrent(Parameter &parameter) const {
    for (const Use &use : graph.uses(parameter.name)) {
      std::vector<ModuleLayout> layouts = recurrentLayout(*use.node, use.index, parameter.shape);
      if (layouts.empty())
        continue;
      if (!use.node->path || endsInNumber(*use.node->path) || parameter.role == Role::tied)
        return true;
      const auto &nodes = layers.find(*use.node->path)->second;
      auto layer = static_cast<size_t>(llvm::find(nodes, use.node) - nodes.begin());
      const std::string module = use.node->path->empty() ? "" : *use.node->path + ".";
      for (const ModuleLayout &layout : layouts)
        hold(parameter, module + layout.nameIn(layer), layout);
      return true;
    }
    return false;
  }

  const Graph &graph;
  Parameters &parameters;
  llvm::StringSet<> names, groupNorms;
  StringMap<llvm::StringSet<>> modules; // by path: of named parameters that its nodes read
  StringMap<SmallVector<const GraphNode *>> layers;
  std::map<std::string, SmallVector<Parameter *>> found;
};

} // namespace

// The signature's names, in the order of the places.
static void holdRecorded(const Graph &graph, Parameter &parameter) {
  std::vector<std::string> names = parameter.stackedOf;
  if (names.empty() && parameter.moduleName != parameter.name)
    names = {parameter.moduleName};
  for (const Use &use : graph.uses(parameter.name)) {
    std::vector<ModuleLayout> layouts = recurrentLayout(*use.node, use.index, parameter.shape);
    if (layouts.empty() || layouts.size() != names.size())
      continue;
    for (auto [name, layout] : llvm::zip_equal(names, layouts))
      hold(parameter, name, layout);
    return;
  }
}

// The initializer's own name, where the module has no other for it and no exporter made it up.
static void addOwnName(Parameter &parameter) {
  if (parameter.quantized) { // of other forms than [out, in] nobody knows the module's
    parameter.inState.clear();
    if (parameter.quantized->isOutByIn && !isExporterName(parameter.moduleName))
      parameter.inState.push_back({parameter.moduleName});
  } else if (parameter.inState.empty() && parameter.pieces.empty() &&
             parameter.moduleName == parameter.name && !isExporterName(parameter.name)) {
    parameter.inState.push_back({parameter.name});
  }
}

// What is tied to it brings its names, and the record may list further ones. Each counts once.
static void addOtherNames(Parameter &parameter, ArrayRef<const Parameter *> ties,
                          ArrayRef<std::string> recorded) {
  std::vector<TensorName> names;
  auto add = [&](const std::string &name, bool transposed) {
    if (none_of(names, [&](const TensorName &one) { return one.name == name; }))
      names.push_back({name, transposed});
  };
  const ArrayRef<TensorName> own(parameter.inState);
  for (const TensorName &name : own.take_front(1))
    add(name.name, name.transposed);
  for (const Parameter *other : ties)
    if (!isExporterName(other->name))
      add(other->name, other->transposed);
  for (const Parameter *other : ties)
    if (!other->inState.empty())
      add(other->inState[0].name, other->inState[0].transposed != other->transposed);
  for (const TensorName &name : own.drop_front(own.empty() ? 0 : 1))
    add(name.name, name.transposed);
  for (const std::string &name : recorded)
    add(name, !own.empty() && own[0].transposed);
  parameter.inState = std::move(names);
}

void nameInState(const Graph &graph, const Ledger &ledger, Parameters &parameters) {
  if (!ledger.program.isRecorded())
    ModuleTensors(graph, parameters).run();
  else
    for (const auto &parameter : parameters)
      if (parameter->isParameter() && parameter->exporterMade && parameter->inState.empty())
        holdRecorded(graph, *parameter);
  llvm::StringSet<> inFile;
  std::map<const Parameter *, std::vector<const Parameter *>> ties;
  for (const auto &parameter : parameters) {
    inFile.insert(parameter->name);
    addOwnName(*parameter);
    if (parameter->canonical)
      ties[parameter->canonical].push_back(parameter.get());
  }
  for (const auto &parameter : parameters) {
    std::vector<std::string> recorded;
    for (const std::string &name : ledger.program.namesOf(parameter->name))
      if (!inFile.contains(name))
        recorded.push_back(name);
    for (const auto &[name, other] : ledger.absent)
      if (other == parameter->name)
        recorded.push_back(name);
    addOtherNames(*parameter, ties[parameter.get()], recorded);
  }
}

} // namespace trainc::reader
