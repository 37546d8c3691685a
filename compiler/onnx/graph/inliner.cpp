// SPDX-License-Identifier: Apache-2.0
//
// Functions and branches (inliner.h).
#include "compiler/onnx/graph/inliner.h"
#include "compiler/onnx/file/schema.h"
#include "dialects/nn/onnx/onnx_refusal.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace trainc::reader {

using onnx::AttributeProto;
using onnx::NodeProto;

constexpr int kFunctionDepth = 64; // no exporter nests further; a cycle does

template <typename Proto> static Versions versionsOf(const Proto &proto) {
  Versions result;
  for (const auto &entry : proto.opset_import())
    result[entry.domain()] = entry.version();
  return result;
}

static std::string keyOf(const std::string &domain, const std::string &name,
                         ArrayRef<StringRef> overload) {
  return domain + "\n" + name + "\n" + (overload.empty() ? "" : overload[0].str());
}

std::string functionKey(const onnx::FunctionProto &function) {
  return keyOf(function.domain(), function.name(), newerField(function, 13));
}

std::string Scope::name(const std::string &value) const {
  if (value.empty())
    return value;
  if (own.count(value))
    return prefix + value;
  if (auto found = renamed.find(value); found != renamed.end())
    return found->second;
  return around ? around->name(value) : prefix + value;
}

Inliner::Inliner(Graph &graph, const ModelFile &file, const Choices &choices, Report &report)
    : graph(graph), file(file), choices(choices), report(report) {
  for (const onnx::FunctionProto &function : file.model().functions())
    functions[functionKey(function)] = &function;
}

bool Inliner::run() {
  Scope top;
  top.versions = imported = versionsOf(file.model());
  graph.modelOpset = top.versions[""];
  for (const NodeProto &node : file.graph().node())
    if (!add(node, top, 0))
      return false;
  return true;
}

static bool defaultOf(const onnx::FunctionProto &function, const std::string &name,
                      AttributeProto &value) {
  for (StringRef bytes : newerField(function, 11))
    if (value.ParseFromString(bytes.str()) && value.name() == name)
      return true;
  return false;
}

// A function's node with references to the function's attributes replaced by their values.
const NodeProto &Inliner::substituted(const NodeProto &node, const Scope &scope) {
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

bool Inliner::add(const NodeProto &proto, const Scope &scope, int depth) {
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
  if (node.isLoop())
    return addLoop(node, scope, depth);
  if (node.isScan())
    return addScan(node, scope, depth);
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
                    "', of which the file imports no operator set",
                "opset_import of the file with domain '" + node.domain + "' as well");
  return inlineCall(node, *found->second, scope, depth);
}

bool Inliner::fail(const GraphNode &node, ExitCode code, const Twine &message,
                   const Twine &advice) {
  return succeeded(report.error(code, graph.subject(node), message, advice));
}

// With which no name of the file begins.
std::string Inliner::freePrefix(std::string name) {
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

static const nn::OnnxRefusal longLoop({"Loop", "Scan"},
                                      "iterations of more than 2^17 nodes in all");

// How often a body of so many nodes still fits.
int64_t Inliner::roomFor(size_t size) const {
  return static_cast<int64_t>((kInlinedNodes - std::min(inlinedNodes, kInlinedNodes)) / size);
}

// Room for a body's nodes, so many times.
bool Inliner::enter(const GraphNode &node, size_t size, size_t times, int depth) {
  if (depth > kFunctionDepth)
    return fail(node, ExitCode::unreadableModel,
                "local functions are nested too deeply or call themselves");
  if (size == 0 || times <= static_cast<size_t>(roomFor(size))) {
    inlinedNodes += size * times;
    return true;
  }
  if (times > 1)
    return fail(node, ExitCode::unsupportedModel,
                longLoop.told("runs " + Twine(times) + " times through " + Twine(size) +
                              " nodes, and programs here have no loops: more than " +
                              Twine(kInlinedNodes) + " nodes"),
                "an operator that does it at once, such as LSTM or CumSum");
  return fail(node, ExitCode::unsupportedModel,
              "local functions make more than " + Twine(kInlinedNodes) + " nodes, " + Twine(size) +
                  " of them in this call of '" + node.opType() + "'",
              "a model whose functions do not call each other many times over");
}

bool Inliner::checkCall(const GraphNode &call, const onnx::FunctionProto &function) {
  auto check = [&](size_t has, int may, const char *what, const char *verb) {
    return has <= static_cast<size_t>(may) ||
           fail(call, ExitCode::unreadableModel,
                "has " + Twine(has) + " " + what + "s, but function '" + function.name() + "' " +
                    verb + " at most " + Twine(may));
  };
  return check(call.inputs.size(), function.input_size(), "input", "takes") &&
         check(call.outputs.size(), function.output_size(), "output", "makes");
}

bool Inliner::inlineCall(const GraphNode &call, const onnx::FunctionProto &function,
                         const Scope &outer, int depth) {
  if (!enter(call, function.node_size(), 1, depth) || !checkCall(call, function))
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

Scope Inliner::inside(const Scope &around, const std::string &prefix) {
  Scope scope;
  scope.versions = around.versions;
  scope.call = around.call;
  scope.function = around.function;
  scope.around = &around;
  scope.prefix = freePrefix(prefix);
  return scope;
}

bool Inliner::addBody(const onnx::GraphProto &body, Scope &scope, int depth) {
  for (const NodeProto &inner : body.node())
    scope.own.insert(inner.output().begin(), inner.output().end());
  for (const onnx::TensorProto &tensor : body.initializer())
    scope.own.insert(tensor.name());
  for (const onnx::TensorProto &tensor : body.initializer()) {
    NodeProto &constant = graph.rewritten.emplace_back();
    constant.set_op_type("Constant");
    constant.add_output(tensor.name());
    setTensor(constant, "value", tensor);
    if (!add(constant, scope, depth + 1))
      return false;
  }
  for (const NodeProto &inner : body.node())
    if (!add(inner, scope, depth + 1))
      return false;
  return true;
}

// The branch that is taken in the place of the node, or both before it.
bool Inliner::addBranches(GraphNode &node, const Scope &scope, int depth) {
  const AttributeProto *branches[] = {node.attribute("then_branch"), node.attribute("else_branch")};
  if (node.key().empty() || !branches[0] || !branches[0]->has_g() || !branches[1] ||
      !branches[1]->has_g())
    return true; // the check of operators says so
  auto choice = choices.made.find(node.key());
  for (bool taken : {true, false}) {
    if (choice != choices.made.end() && choice->second != taken)
      continue;
    std::vector<std::string> results;
    if (!addBranch(node, branches[taken ? 0 : 1]->g(), taken ? "/then" : "/else", scope, depth,
                   results))
      return false;
    if (choice == choices.made.end())
      llvm::append_range(node.inputs, results);
    else
      rename(node, results);
  }
  return true;
}

bool Inliner::addBranch(const GraphNode &node, const onnx::GraphProto &branch, const char *part,
                        const Scope &around, int depth, std::vector<std::string> &results) {
  if (!enter(node, branch.node_size(), 1, depth))
    return false;
  if (static_cast<size_t>(branch.output_size()) != node.outputs.size())
    return fail(node, ExitCode::unreadableModel,
                "has " + Twine(node.outputs.size()) + " outputs, but one of its branches " +
                    Twine(branch.output_size()));
  Scope scope = inside(around, node.key() + part);
  if (!addBody(branch, scope, depth))
    return false;
  for (const onnx::ValueInfoProto &output : branch.output())
    results.push_back(scope.name(output.name()));
  return true;
}

// What the body made is what the node makes: it may give on a value from around it.
void Inliner::rename(const GraphNode &node, ArrayRef<std::string> results) {
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

} // namespace trainc::reader
