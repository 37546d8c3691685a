// SPDX-License-Identifier: Apache-2.0
//
// Flattening: what has a body is replaced by it (inliner.h), then nodes that no output needs are
// dropped and the rest is brought into order (Kahn; ties by file order).
#include "compiler/onnx/file/schema.h"
#include "compiler/onnx/graph/inliner.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"
#include <queue>

using namespace llvm;

namespace trainc::reader {

using onnx::AttributeProto;
using onnx::NodeProto;

const AttributeProto *GraphNode::attribute(StringRef name) const {
  for (const AttributeProto &attribute : proto->attribute())
    if (name == attribute.name())
      return &attribute;
  return nullptr;
}

int64_t GraphNode::integer(StringRef name, int64_t otherwise) const {
  const AttributeProto *found = attribute(name);
  return found ? found->i() : otherwise;
}

double GraphNode::real(StringRef name, double otherwise) const {
  const AttributeProto *found = attribute(name);
  return found ? static_cast<double>(found->f()) : otherwise;
}

std::string GraphNode::string(StringRef name, StringRef otherwise) const {
  const AttributeProto *found = attribute(name);
  return found ? found->s() : otherwise.str();
}

std::optional<SmallVector<int64_t>> GraphNode::integers(StringRef name) const {
  const AttributeProto *found = attribute(name);
  if (!found)
    return std::nullopt;
  return SmallVector<int64_t>(found->ints().begin(), found->ints().end());
}

Subject Graph::subject(const GraphNode &node) const {
  if (node.partOf)
    return subject(*node.partOf);
  std::string type = node.domain.empty() ? "" : node.domain + "::";
  return {file.path(), node.label, type + node.proto->op_type(), static_cast<int>(node.opset)};
}

// Names that nodes inside a body read, at any depth.
static void addReads(const onnx::NodeProto &node, llvm::StringSet<> &names) {
  for (const onnx::AttributeProto &attribute : node.attribute())
    for (const onnx::NodeProto &inner : attribute.g().node()) {
      for (const std::string &input : inner.input())
        names.insert(input);
      addReads(inner, names);
    }
}

std::unique_ptr<Graph> Graph::build(const ModelFile &file, const Choices &choices, Report &report) {
  std::unique_ptr<Graph> graph(new Graph(file));
  Inliner inliner(*graph, file, choices, report);
  if (!inliner.run())
    return nullptr;
  for (GraphNode &node : graph->storage)
    if (!inliner.isInlined(node)) {
      node.number = graph->order.size();
      graph->order.push_back(&node);
    }
  if (!graph->sort(report))
    return nullptr;
  for (auto [index, node] : enumerate(graph->order))
    node->index = index;
  for (const GraphNode *node : graph->order) {
    for (unsigned i = 0; i < node->inputs.size(); ++i)
      if (!node->inputs[i].empty())
        graph->usesByValue[node->inputs[i]].push_back({node, i});
    for (const std::string &output : node->outputs)
      graph->producers[output] = node;
    if (!node->isIf())
      addReads(*node->proto, graph->captured);
  }
  return graph;
}

ArrayRef<Use> Graph::uses(StringRef value) const {
  auto found = usesByValue.find(value);
  if (found == usesByValue.end())
    return {};
  return found->second;
}

bool Graph::isOutput(StringRef value) const {
  return any_of(file.graph().output(), [&](const auto &output) { return value == output.name(); });
}

// One of the circles among the nodes that wait; others may be waiting for it.
void Graph::reportCycle(ArrayRef<char> waits, const StringMap<size_t> &producer, Report &report) {
  std::vector<size_t> path;
  std::map<size_t, size_t> place; // in the path
  size_t at = llvm::find(waits, 1) - waits.begin();
  while (place.try_emplace(at, path.size()).second) {
    path.push_back(at);
    for (const std::string &input : order[at]->inputs) {
      auto found = producer.find(input);
      if (found == producer.end() || !waits[found->second])
        continue;
      at = found->second;
      break;
    }
  }
  const GraphNode &node = *order[at];
  size_t others = path.size() - place[at] - 1;
  (void)report.error(ExitCode::unreadableModel, subject(node),
                     others == 0 ? "the node needs its own result"
                                 : "the node needs its own result, through " + Twine(others) +
                                       (others == 1 ? " other node" : " other nodes"));
}

bool Graph::sort(Report &report) {
  StringMap<size_t> producer;
  llvm::StringSet<> sources;
  size_t before = report.size();
  for (const auto &input : file.graph().input())
    sources.insert(input.name());
  for (const auto &tensor : file.graph().initializer())
    sources.insert(tensor.name());
  for (size_t i = 0; i < order.size(); ++i)
    for (const std::string &output : order[i]->outputs)
      if (!output.empty() && (!producer.try_emplace(output, i).second || sources.count(output)))
        (void)report.error(ExitCode::unreadableModel, subject(*order[i]),
                           "value '" + output + "' is defined twice");

  // Backwards from the outputs: which nodes are needed.
  std::vector<char> live(order.size());
  std::vector<size_t> work;
  auto need = [&](StringRef value, llvm::function_ref<Subject()> user) {
    auto found = producer.find(value);
    if (found == producer.end()) {
      if (user && !sources.count(value))
        (void)report.error(ExitCode::unreadableModel, user(),
                           "value '" + value + "' is not defined anywhere");
    } else if (!std::exchange(live[found->second], 1)) {
      work.push_back(found->second);
    }
  };
  for (const auto &output : file.graph().output())
    need(output.name(),
         [&] { return Subject::ofPart(file.path(), "output '" + output.name() + "'"); });
  while (!work.empty()) {
    size_t index = work.back();
    work.pop_back();
    for (const std::string &input : order[index]->inputs)
      if (!input.empty())
        need(input, [&] { return subject(*order[index]); });
    if (!order[index]->isLoop() && !order[index]->isScan())
      continue;
    llvm::StringSet<> reads; // of a body that is not written out, under the names around it
    addReads(*order[index]->proto, reads);
    for (const auto &read : reads)
      need(read.getKey(), nullptr);
  }

  // Those that no output needs are gone through too: a circle among them is an error as well.
  std::vector<size_t> waiting(order.size());
  std::vector<std::vector<size_t>> consumers(order.size());
  std::priority_queue<size_t, std::vector<size_t>, std::greater<size_t>> ready;
  for (size_t i = 0; i < order.size(); ++i) {
    for (const std::string &input : order[i]->inputs)
      if (auto found = producer.find(input);
          found != producer.end() && live[found->second] == live[i]) {
        consumers[found->second].push_back(i);
        ++waiting[i];
      }
    if (waiting[i] == 0)
      ready.push(i);
  }
  std::vector<GraphNode *> sorted;
  std::vector<char> done(order.size());
  while (!ready.empty()) {
    size_t index = ready.top();
    ready.pop();
    done[index] = 1;
    if (live[index])
      sorted.push_back(order[index]);
    for (size_t consumer : consumers[index])
      if (--waiting[consumer] == 0)
        ready.push(consumer);
  }
  for (bool isLive : {false, true}) {
    std::vector<char> waits;
    for (size_t i = 0; i < order.size(); ++i)
      waits.push_back(!done[i] && live[i] == isLive);
    if (report.size() == before && llvm::is_contained(waits, 1))
      reportCycle(waits, producer, report);
  }
  order = std::move(sorted);
  return report.size() == before;
}

} // namespace trainc::reader
