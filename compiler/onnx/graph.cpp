// SPDX-License-Identifier: Apache-2.0
//
// Flattening: functions and branches are replaced by their bodies with renamed values, then nodes
// that no output needs are dropped and the rest is brought into order (Kahn; ties by file order).
#include "compiler/onnx/graph.h"
#include "compiler/onnx/schema.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"
#include <queue>

using namespace llvm;

namespace trainc::reader {

using onnx::AttributeProto;
using onnx::NodeProto;

constexpr int kFunctionDepth = 64;        // no exporter nests further; a cycle does
constexpr size_t kInlinedNodes = 1 << 17; // likewise; functions that call others twice double them

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

using Versions = std::map<std::string, int64_t>;

template <typename Proto> static Versions versionsOf(const Proto &proto) {
  Versions result;
  for (const auto &entry : proto.opset_import())
    result[entry.domain()] = entry.version();
  return result;
}

// Bytes of a field that is newer than the schema.
static std::vector<std::string> newerField(const google::protobuf::Message &message, int number) {
  std::vector<std::string> result;
  const auto &unknown = message.GetReflection()->GetUnknownFields(message);
  for (int i = 0; i < unknown.field_count(); ++i)
    if (unknown.field(i).number() == number &&
        unknown.field(i).type() == google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED)
      result.push_back(unknown.field(i).length_delimited());
  return result;
}

static std::string keyOf(const std::string &domain, const std::string &name,
                         const std::vector<std::string> &overload) {
  return domain + "\n" + name + "\n" + (overload.empty() ? "" : overload[0]);
}

std::string functionKey(const onnx::FunctionProto &function) {
  return keyOf(function.domain(), function.name(), newerField(function, 13));
}

namespace {
/// What names stand for in a graph, a function's body or a branch.
struct Scope {
  Versions versions;
  const GraphNode *call = nullptr;               // of the function that this is in; null at the top
  const onnx::FunctionProto *function = nullptr; // that one
  std::string prefix;                            // of values inside
  std::map<std::string, std::string> renamed;    // of the function's inputs and outputs
  const Scope *around = nullptr;                 // of a branch, which sees the values around it
  std::set<std::string> own;                     // of a branch: what it defines

  std::string name(const std::string &value) const {
    if (value.empty())
      return value;
    if (around)
      return own.count(value) ? prefix + value : around->name(value);
    auto found = renamed.find(value);
    return found == renamed.end() ? prefix + value : found->second;
  }
};
} // namespace

class Inliner {
public:
  Inliner(Graph &graph, const ModelFile &file, const Choices &choices, Report &report)
      : graph(graph), file(file), choices(choices), report(report) {
    for (const onnx::FunctionProto &function : file.model().functions())
      functions[functionKey(function)] = &function;
  }

  bool run() {
    Scope top;
    top.versions = imported = versionsOf(file.model());
    graph.modelOpset = top.versions[""];
    for (const NodeProto &node : file.graph().node())
      if (!add(node, top, 0))
        return false;
    return true;
  }

private:
  // A function's node with references to the function's attributes replaced by their values.
  const NodeProto &substituted(const NodeProto &node, const Scope &scope) {
    graph.rewritten.push_back(node);
    NodeProto &copy = graph.rewritten.back();
    copy.clear_attribute();
    for (const AttributeProto &attribute : node.attribute()) {
      if (attribute.ref_attr_name().empty()) {
        *copy.add_attribute() = attribute;
        continue;
      }
      AttributeProto value;
      if (const AttributeProto *given = scope.call->attribute(attribute.ref_attr_name()))
        value = *given;
      else if (!defaultOf(*scope.function, attribute.ref_attr_name(), value))
        continue; // an absent attribute stays absent
      value.set_name(attribute.name());
      *copy.add_attribute() = std::move(value);
    }
    return copy;
  }

  static bool defaultOf(const onnx::FunctionProto &function, const std::string &name,
                        AttributeProto &value) {
    for (const std::string &bytes : newerField(function, 11))
      if (value.ParseFromString(bytes) && value.name() == name)
        return true;
    return false;
  }

  bool add(const NodeProto &proto, const Scope &scope, int depth) {
    GraphNode &node = graph.storage.emplace_back();
    bool refers = scope.call && any_of(proto.attribute(), [](const AttributeProto &attribute) {
                    return !attribute.ref_attr_name().empty();
                  });
    node.proto = refers ? &substituted(proto, scope) : &proto;
    node.domain = proto.domain();
    auto version = scope.versions.find(node.domain);
    node.opset = version == scope.versions.end() ? 0 : version->second;
    for (const std::string &input : proto.input())
      node.inputs.push_back(scope.name(input));
    for (const std::string &output : proto.output())
      node.outputs.push_back(scope.name(output));
    node.label = !proto.name().empty()      ? proto.name()
                 : proto.output_size() != 0 ? proto.output(0)
                                            : proto.op_type();
    nameNode(node);
    node.function = scope.function;
    node.isInner = scope.call || scope.around;
    if (scope.call) {
      node.label = scope.call->label + "/" + node.label;
      node.path = scope.call->path;
    }
    if (node.isIf())
      return addBranches(node, scope, depth);
    auto found = functions.find(keyOf(proto.domain(), proto.op_type(), newerField(proto, 8)));
    if (found == functions.end())
      return true;
    if (node.domain.empty() && findDeclaration(node.opType(), node.opset))
      return fail(node, ExitCode::unreadableModel,
                  "function '" + found->second->name() +
                      "' has the name of one of ONNX's operators: which of them is meant?",
                  "a domain of its own for the function");
    if (!node.domain.empty() && version == scope.versions.end() && !imported.count(node.domain))
      return fail(node, ExitCode::unreadableModel,
                  "calls function '" + found->second->name() + "' of domain '" + node.domain +
                      "', of which the file imports no operator set");
    return inlineCall(node, *found->second, scope, depth);
  }

  bool fail(const GraphNode &node, ExitCode code, const Twine &message, const Twine &advice = "") {
    return succeeded(report.error(code, graph.subject(node), message, advice));
  }

  // With which no name of the file begins.
  std::string freePrefix(std::string name) {
    if (taken.empty()) // most files have no functions and branches
      for (const NodeProto &node : file.graph().node()) {
        taken.insert(node.input().begin(), node.input().end());
        taken.insert(node.output().begin(), node.output().end());
      }
    for (;; name += '_') {
      std::string prefix = name + "/";
      auto next = taken.lower_bound(prefix);
      if (next == taken.end() || !StringRef(*next).starts_with(prefix))
        return prefix;
    }
  }

  // Room for a body's nodes.
  bool enter(const GraphNode &node, int size, int depth) {
    if (depth > kFunctionDepth)
      return fail(node, ExitCode::unreadableModel,
                  "local functions are nested too deeply or call themselves");
    if ((inlinedNodes += size) > kInlinedNodes)
      return fail(node, ExitCode::unsupportedModel,
                  "local functions make more than " + Twine(kInlinedNodes) + " nodes, " +
                      Twine(size) + " of them in this call of '" + node.opType() + "'",
                  "a model whose functions do not call each other many times over");
    return true;
  }

  bool checkCall(const GraphNode &call, const onnx::FunctionProto &function) {
    auto check = [&](size_t has, int may, const char *what, const char *verb) {
      return has <= static_cast<size_t>(may) ||
             fail(call, ExitCode::unreadableModel,
                  "has " + Twine(has) + " " + what + "s, but function '" + function.name() + "' " +
                      verb + " at most " + Twine(may));
    };
    return check(call.inputs.size(), function.input_size(), "input", "takes") &&
           check(call.outputs.size(), function.output_size(), "output", "makes");
  }

  bool inlineCall(const GraphNode &call, const onnx::FunctionProto &function, const Scope &outer,
                  int depth) {
    if (!enter(call, function.node_size(), depth) || !checkCall(call, function))
      return false;
    Scope scope;
    scope.versions = function.opset_import_size() ? versionsOf(function) : outer.versions;
    scope.call = &call;
    scope.function = &function;
    scope.prefix = freePrefix(call.key().empty() ? call.label : call.key());
    for (int i = 0; i < function.input_size(); ++i)
      scope.renamed[function.input(i)] =
          i < static_cast<int>(call.inputs.size()) ? call.inputs[i] : "";
    for (int i = 0; i < function.output_size(); ++i)
      if (i < static_cast<int>(call.outputs.size()) && !call.outputs[i].empty())
        scope.renamed[function.output(i)] = call.outputs[i];
    inlined.insert(&call);
    for (const NodeProto &node : function.node())
      if (!add(node, scope, depth + 1))
        return false;
    return true;
  }

  // The branch that is taken in the place of the node, or both before it.
  bool addBranches(GraphNode &node, const Scope &scope, int depth) {
    const AttributeProto *branches[] = {node.attribute("then_branch"),
                                        node.attribute("else_branch")};
    if (node.key().empty() || !branches[0] || !branches[0]->has_g() || !branches[1] ||
        !branches[1]->has_g())
      return true; // the check of operators says so
    auto choice = choices.find(node.key());
    for (bool taken : {true, false}) {
      if (choice != choices.end() && choice->second != taken)
        continue;
      std::vector<std::string> results;
      if (!addBranch(node, branches[taken ? 0 : 1]->g(), taken ? "/then" : "/else", scope, depth,
                     results))
        return false;
      if (choice == choices.end())
        llvm::append_range(node.inputs, results);
      else
        rename(node, results);
    }
    return true;
  }

  bool addBranch(const GraphNode &node, const onnx::GraphProto &branch, const char *part,
                 const Scope &around, int depth, std::vector<std::string> &results) {
    if (!enter(node, branch.node_size(), depth))
      return false;
    if (static_cast<size_t>(branch.output_size()) != node.outputs.size())
      return fail(node, ExitCode::unreadableModel,
                  "has " + Twine(node.outputs.size()) + " outputs, but one of its branches " +
                      Twine(branch.output_size()));
    Scope scope;
    scope.versions = around.versions;
    scope.call = around.call;
    scope.function = around.function;
    scope.around = &around;
    scope.prefix = freePrefix(node.key() + part);
    for (const NodeProto &inner : branch.node())
      scope.own.insert(inner.output().begin(), inner.output().end());
    for (const onnx::TensorProto &tensor : branch.initializer()) {
      scope.own.insert(tensor.name());
      NodeProto &constant = graph.rewritten.emplace_back();
      constant.set_op_type("Constant");
      constant.add_output(tensor.name());
      AttributeProto &value = *constant.add_attribute();
      value.set_name("value");
      value.set_type(AttributeProto::TENSOR);
      *value.mutable_t() = tensor;
    }
    size_t first = graph.rewritten.size() - branch.initializer_size();
    for (int i = 0; i < branch.initializer_size(); ++i)
      if (!add(graph.rewritten[first + i], scope, depth + 1))
        return false;
    for (const NodeProto &inner : branch.node())
      if (!add(inner, scope, depth + 1))
        return false;
    for (const onnx::ValueInfoProto &output : branch.output())
      results.push_back(scope.name(output.name()));
    return true;
  }

  // What the branch made is what the node makes: a branch may give on a value from around it.
  void rename(const GraphNode &node, ArrayRef<std::string> results) {
    inlined.insert(&node);
    NodeProto &identity = graph.rewritten.emplace_back();
    identity.set_op_type("Identity");
    for (auto [output, result] : llvm::zip(node.outputs, results)) {
      if (output.empty())
        continue;
      GraphNode &made = graph.storage.emplace_back(node);
      made.proto = &identity;
      made.inputs = {result};
      made.outputs = {output};
    }
  }

  Graph &graph;
  const ModelFile &file;
  const Choices &choices;
  Report &report;
  Versions imported; // by the model
  std::map<std::string, const onnx::FunctionProto *> functions;
  std::set<std::string> taken; // names of values in the file
  size_t inlinedNodes = 0;

public:
  std::set<const GraphNode *> inlined;
};

Subject Graph::subject(const GraphNode &node) const {
  std::string type = node.domain.empty() ? "" : node.domain + "::";
  return {file.path(), node.label, type + node.proto->op_type(), static_cast<int>(node.opset)};
}

std::unique_ptr<Graph> Graph::build(const ModelFile &file, const Choices &choices, Report &report) {
  std::unique_ptr<Graph> graph(new Graph(file));
  Inliner inliner(*graph, file, choices, report);
  if (!inliner.run())
    return nullptr;
  for (GraphNode &node : graph->storage)
    if (!inliner.inlined.count(&node)) {
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

// A circle is an error also where no output needs it.
void Graph::checkIdle(ArrayRef<char> live, const StringMap<size_t> &producer, Report &report) {
  std::vector<char> idle(order.size());
  for (size_t i = 0; i < order.size(); ++i)
    idle[i] = !live[i];
  std::vector<size_t> idleWaiting(order.size()), free;
  std::vector<std::vector<size_t>> idleConsumers(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    if (!idle[i])
      continue;
    for (const std::string &input : order[i]->inputs)
      if (auto found = producer.find(input); found != producer.end() && idle[found->second]) {
        idleConsumers[found->second].push_back(i);
        ++idleWaiting[i];
      }
    if (idleWaiting[i] == 0)
      free.push_back(i);
  }
  while (!free.empty()) {
    size_t index = free.back();
    free.pop_back();
    idle[index] = 0;
    for (size_t consumer : idleConsumers[index])
      if (--idleWaiting[consumer] == 0)
        free.push_back(consumer);
  }
  if (llvm::is_contained(idle, 1))
    reportCycle(idle, producer, report);
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

  // Backwards from the outputs: which nodes are needed, and which of them wait for which.
  std::vector<char> live(order.size());
  std::vector<size_t> work, waiting(order.size());
  std::vector<std::vector<size_t>> consumers(order.size());
  auto need = [&](const std::string &value, llvm::function_ref<Subject()> user,
                  std::optional<size_t> consumer) {
    auto found = producer.find(value);
    if (found == producer.end()) {
      if (!sources.count(value))
        (void)report.error(ExitCode::unreadableModel, user(),
                           "value '" + value + "' is not defined anywhere");
      return;
    }
    if (consumer) {
      consumers[found->second].push_back(*consumer);
      ++waiting[*consumer];
    }
    if (!live[found->second]) {
      live[found->second] = 1;
      work.push_back(found->second);
    }
  };
  for (const auto &output : file.graph().output())
    need(
        output.name(),
        [&] { return Subject::ofPart(file.path(), "output '" + output.name() + "'"); },
        std::nullopt);
  while (!work.empty()) {
    size_t index = work.back();
    work.pop_back();
    for (const std::string &input : order[index]->inputs)
      if (!input.empty())
        need(
            input, [&] { return subject(*order[index]); }, index);
  }

  if (report.size() == before)
    checkIdle(live, producer, report);

  std::priority_queue<size_t, std::vector<size_t>, std::greater<size_t>> ready;
  for (size_t i = 0; i < order.size(); ++i)
    if (live[i] && waiting[i] == 0)
      ready.push(i);
  std::vector<GraphNode *> sorted;
  while (!ready.empty()) {
    size_t index = ready.top();
    ready.pop();
    sorted.push_back(order[index]);
    live[index] = 0;
    for (size_t consumer : consumers[index])
      if (--waiting[consumer] == 0)
        ready.push(consumer);
  }
  if (report.size() == before && llvm::is_contained(live, 1))
    reportCycle(live, producer, report);
  order = std::move(sorted);
  return report.size() == before;
}

} // namespace trainc::reader
