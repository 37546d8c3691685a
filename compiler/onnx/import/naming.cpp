// SPDX-License-Identifier: Apache-2.0
//
// Readable and unique names for the nodes that made operations. How many nodes of a module did is
// known only after folding, hence the provisional locations.
#include "compiler/onnx/import/importer.h"
#include "dialects/names/node_name.h"
#include "dialects/names/unique_names.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/MapVector.h"

using namespace llvm;
using namespace mlir;

namespace trainc::reader {

constexpr char kProvisional[] = "#"; // no exporter begins a name so

Location provisionalLocation(MLIRContext &context, size_t node) {
  return NameLoc::get(StringAttr::get(&context, kProvisional + std::to_string(node)));
}

static std::optional<size_t> nodeOf(Location location) {
  auto name = dyn_cast<NameLoc>(withoutRole(location));
  size_t index;
  if (!name || !name.getName().strref().starts_with(kProvisional) ||
      name.getName().strref().drop_front().getAsInteger(10, index))
    return std::nullopt;
  return index;
}

/// As messages call them; the names are not known yet.
static std::vector<NamedNode> unnamedNodes(const Graph &graph) {
  std::vector<NamedNode> nodes;
  for (const GraphNode *node : graph.nodes()) {
    Subject subject = graph.subject(*node);
    nodes.push_back({subject.node, subject.operatorName, "", node->outputs, sourceLine(*node)});
  }
  return nodes;
}

std::vector<NamedNode> nameOperations(ModuleOp module, const Graph &graph,
                                      const std::vector<std::string> &paths) {
  std::vector<NamedNode> named = unnamedNodes(graph);
  MapVector<size_t, SmallVector<Operation *>> operations; // by node, in order
  module.walk([&](Operation *operation) {
    if (auto node = nodeOf(operation->getLoc()))
      operations[*node].push_back(operation);
  });
  StringMap<unsigned> inModule;
  for (const auto &[node, made] : operations)
    ++inModule[paths[node]];
  UniqueNames names;
  Builder at(module.getContext());
  for (const auto &[node, made] : operations) {
    const std::string &path = paths[node], &kind = graph.nodes()[node]->kind;
    std::string name = path.empty() ? kind : inModule[path] == 1 ? path : path + "." + kind;
    named[node].name = names.unique(name);
    Location location =
        modelLocation(at.getStringAttr(named[node].name), at.getStringAttr(named[node].label));
    for (Operation *operation : made) {
      std::string role = nodeName(operation->getLoc()).role;
      operation->setLoc(role.empty() ? location : roleLocation(role, location));
    }
  }
  return named;
}

} // namespace trainc::reader
