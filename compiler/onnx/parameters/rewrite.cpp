// SPDX-License-Identifier: Apache-2.0
//
// The one place that changes a file for the sake of its parameters. Exports hold the changes, too.
#include "compiler/onnx/parameters/claims.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace trainc::reader {

static void noteTensor(const Change &change, StringRef name, Ledger &ledger) {
  if (!change.origin.empty())
    ledger.origin[name] = change.origin;
  if (!change.kind.empty())
    ledger.program.addKind(name, change.kind);
  if (!change.sources.empty())
    ledger.program.addSources(name, change.sources);
}

// Before the first node that reads what it makes.
static void insert(onnx::GraphProto &graph, onnx::NodeProto node) {
  const std::string made = node.output(0);
  const auto &nodes = graph.node();
  const auto reader =
      find_if(nodes, [&](const onnx::NodeProto &one) { return is_contained(one.input(), made); });
  insertNode(graph, std::move(node), static_cast<int>(reader - nodes.begin()));
}

void rewrite(ModelFile &file, Ledger &ledger, Changes changes) {
  std::set<const onnx::NodeProto *> removed;
  for (Change &change : changes) {
    if (change.tensor && !file.find(change.tensor->name)) {
      noteTensor(change, change.tensor->name, ledger);
      if (change.removed && change.removed->op_type().starts_with("Constant"))
        ledger.fromNodes.insert(change.tensor->name);
      if (change.replaces < 0)
        file.addInitializer(std::move(change.tensor));
      else
        file.replaceInitializer(change.replaces, std::move(change.tensor));
    }
    if (!change.stacked.empty())
      ledger.stacked[change.reads] = change.stacked;
    if (change.user && change.input < change.user->input_size())
      change.user->set_input(change.input, change.reads);
    else if (change.user)
      change.user->add_input(change.reads);
    if (change.maker)
      change.maker->set_output(0, change.makes);
    if (change.removed)
      removed.insert(change.removed);
  }
  auto &nodes = *file.editableGraph().mutable_node();
  for (int i = nodes.size() - 1; i >= 0; --i)
    if (removed.count(&nodes[i]))
      nodes.DeleteSubrange(i, 1);
  for (Change &change : changes)
    if (change.node)
      insert(file.editableGraph(), std::move(*change.node));
}

} // namespace trainc::reader
