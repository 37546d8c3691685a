// SPDX-License-Identifier: Apache-2.0
//
// `Loop` and `Scan` whose number of iterations is known, or tried to find it: one body after the
// other, each with values of its own.
//
// Known weakness: the emitted program grows with the iterations. Recurrent layers have operators of
// their own, which are loops in the program.
#include "compiler/onnx/graph/inliner.h"
#include "dialects/nn/onnx/onnx_refusal.h"

using namespace llvm;

namespace trainc::reader {

using onnx::AttributeProto;
using onnx::NodeProto;

constexpr int64_t kOpset = 13; // of the nodes that are added

/// One loop that is unrolled.
struct Inliner::Iterations {
  GraphNode &node;
  const onnx::GraphProto &body;
  int64_t times;
  /// The names that the body's inputs stand for in an iteration, given the states before it.
  std::function<std::vector<std::string>(int64_t i, const std::string &prefix,
                                         const std::vector<std::string> &states)>
      inputs;
  std::vector<std::string> states; // the first values of what goes from one iteration to the next
  int skipped;                 // outputs of the body that are not results: the condition of a Loop
  std::vector<int64_t> axes;   // along which results are put together
  std::vector<bool> backwards; // whether in the opposite order
  bool isTried = false;        // only for what the node reads then (GraphNode::tried)
};

static const nn::OnnxRefusal sequenceLengths({"Scan"}, "`sequence_lens` of operator set 8");
static const nn::OnnxRefusal noIteration({"Loop", "Scan"}, "results of no iteration");

static const onnx::GraphProto *bodyOf(const GraphNode &node) {
  const AttributeProto *body = node.attribute("body");
  return body && body->has_g() ? &body->g() : nullptr;
}

/// A node that is not the file's; its output.
std::string Inliner::addNode(const GraphNode &of, StringRef opType, std::vector<std::string> inputs,
                             const std::string &output, std::optional<int64_t> axis) {
  NodeProto &proto = graph.rewritten.emplace_back();
  proto.set_op_type(opType.str());
  if (axis)
    setInteger(proto, "axis", *axis);
  GraphNode &made = graph.storage.emplace_back(of);
  made.proto = &proto;
  made.opset = kOpset;
  made.kind = snakeCase(opType);
  made.inputs = std::move(inputs);
  made.outputs = {output};
  return output;
}

std::string Inliner::addConstant(const GraphNode &of, const onnx::TensorProto &tensor,
                                 const std::string &output) {
  addNode(of, "Constant", {}, output);
  setTensor(graph.rewritten.back(), "value", tensor);
  return output;
}

/// A list of it where it is no scalar.
std::string Inliner::addNumber(const GraphNode &of, int64_t number, bool isScalar,
                               const std::string &output) {
  onnx::TensorProto tensor;
  tensor.set_data_type(onnx::TensorProto::INT64);
  if (!isScalar)
    tensor.add_dims(1);
  tensor.add_int64_data(number);
  return addConstant(of, tensor, output);
}

/// Values along a new axis, which `axes` is a list of.
std::string Inliner::addStack(const GraphNode &of, std::vector<std::string> values,
                              const std::string &axes, int64_t axis, const std::string &prefix) {
  for (auto [i, value] : enumerate(values))
    value = addNode(of, "Unsqueeze", {value, axes}, prefix + std::to_string(i));
  return addNode(of, "Concat", std::move(values), prefix + "all", axis);
}

/// Whether the condition that a loop's body makes is true as long as the one that it is given is,
/// of a loop whose first one is.
bool Inliner::keepsGoing(const GraphNode &loop, const onnx::GraphProto &body, const Scope &around) {
  auto isTrue = [](const onnx::TensorProto &tensor) {
    return tensor.data_type() == onnx::TensorProto::BOOL &&
           (tensor.int32_data_size() == 1 ? tensor.int32_data(0) != 0
                                          : tensor.raw_data() == std::string(1, '\1'));
  };
  std::map<StringRef, const NodeProto *> makers; // of one value each
  for (const NodeProto &node : body.node())
    if (node.output_size() == 1)
      makers.try_emplace(node.output(0), &node);
  std::string name = body.output(0).name();
  for (int steps = 0; steps <= body.node_size(); ++steps) {
    if (name == body.input(1).name())
      return true;
    for (const onnx::TensorProto &tensor : body.initializer())
      if (tensor.name() == name)
        return isTrue(tensor);
    auto found = makers.find(name);
    if (found == makers.end()) // of the graph around
      return loop.inputs.size() > 1 && around.name(name) == loop.inputs[1];
    const NodeProto &maker = *found->second;
    if (isOnnx(maker, "Constant") && maker.attribute_size() == 1)
      return isTrue(maker.attribute(0).t());
    if ((!isOnnx(maker, "Identity") && !isOnnx(maker, "Cast")) || maker.input_size() != 1)
      return false;
    name = maker.input(0);
  }
  return false;
}

/// Nodes of a body that runs once, with the loops in it: they are known only later, when the nodes
/// around them are there so many times.
static size_t nodesIn(const onnx::GraphProto &body) {
  size_t count = std::max(1, body.node_size());
  for (const NodeProto &node : body.node())
    if (isOnnx(node, "Loop") || isOnnx(node, "Scan"))
      for (const AttributeProto &attribute : node.attribute())
        if (attribute.has_g())
          count += nodesIn(attribute.g());
  return count;
}

/// The iterations in the place of the node.
bool Inliner::unroll(Iterations &loop, const Scope &around, int depth) {
  GraphNode &node = loop.node;
  const size_t results = loop.body.output_size() - loop.skipped;
  const size_t size = nodesIn(loop.body);
  if (around.isIteration)
    inlinedNodes -= std::min(size, inlinedNodes);
  const bool readsStates = loop.isTried && around.isInIteration(); // for loops after it
  if (loop.isTried)
    loop.times = std::min(loop.times, roomFor(size));
  if (!enter(node, size, loop.times, depth))
    return false;
  std::vector<std::string> states = loop.states, reads;
  std::vector<std::vector<std::string>> pieces(results - states.size());
  for (int64_t i = 0; i < loop.times; ++i) {
    Scope scope = inside(around, node.key() + "/" + std::to_string(i));
    scope.isIteration = true;
    for (auto [input, name] : llvm::zip(loop.body.input(), loop.inputs(i, scope.prefix, states)))
      scope.renamed[input.name()] = name;
    if (!addBody(loop.body, scope, depth))
      return false;
    if (loop.isTried)
      reads.push_back(scope.name(loop.body.output(0).name()));
    for (size_t k = 0; k < results; ++k) {
      std::string made = scope.name(loop.body.output(loop.skipped + static_cast<int>(k)).name());
      if (k < states.size())
        states[k] = made;
      else
        pieces[k - states.size()].push_back(made);
    }
    if (readsStates)
      llvm::append_range(reads, states);
  }
  if (loop.isTried) {
    node.tried = loop.times;
    llvm::append_range(node.inputs, reads);
    return true;
  }
  std::vector<std::string> made = states;
  const std::string prefix = freePrefix(node.key() + "/results");
  for (auto [k, values] : enumerate(pieces)) {
    made.emplace_back();
    const size_t output = states.size() + k;
    if (output >= node.outputs.size() || node.outputs[output].empty())
      continue;
    if (values.empty())
      return fail(node, ExitCode::unsupportedModel,
                  noIteration.told("does not run once, so that its output '" +
                                   node.outputs[output] + "' has no elements"));
    if (loop.backwards[k])
      std::reverse(values.begin(), values.end());
    const std::string of = prefix + std::to_string(k) + "/";
    std::string axes = addNumber(node, loop.axes[k], /*isScalar=*/false, of + "axes");
    made.back() = addStack(node, std::move(values), axes, loop.axes[k], of);
  }
  rename(node, made);
  return true;
}

/// Whether it has as many inputs and outputs as the node needs; what it makes has names, though a
/// node's output may have none.
bool Inliner::checkBody(const GraphNode &node, const onnx::GraphProto &body, bool fits) {
  if (!fits)
    return fail(node, ExitCode::unreadableModel,
                "its body has " + Twine(body.input_size()) + " inputs and " +
                    Twine(body.output_size()) + " outputs, which do not fit its own " +
                    Twine(node.inputs.size()) + " and " + Twine(node.outputs.size()));
  for (auto [i, output] : enumerate(body.output()))
    if (output.name().empty())
      return fail(node, ExitCode::unreadableModel,
                  "output " + Twine(i) + " of its body has no name");
  return true;
}

bool Inliner::addLoop(GraphNode &node, const Scope &scope, int depth) {
  const onnx::GraphProto *body = bodyOf(node);
  if (node.key().empty() || !body)
    return true; // the check of operators says so
  const int states = body->input_size() - 2;
  if (!checkBody(node, *body,
                 states >= 0 && node.inputs.size() == 2 + static_cast<size_t>(states) &&
                     body->output_size() >= 1 + states &&
                     node.outputs.size() <= static_cast<size_t>(body->output_size() - 1)))
    return false;
  auto choice = choices.made.find(node.key());
  const bool isTried = choice == choices.made.end();
  const int64_t trials = choices.trialsOf(node);
  node.changesCondition = !keepsGoing(node, *body, scope);
  if (isTried && (trials == 0 || !node.changesCondition))
    return true;
  auto inputs = [&](int64_t i, const std::string &prefix, const std::vector<std::string> &now) {
    onnx::TensorProto holds;
    holds.set_data_type(onnx::TensorProto::BOOL);
    holds.add_int32_data(1);
    std::vector<std::string> names{addNumber(node, i, /*isScalar=*/true, prefix + "iteration"),
                                   addConstant(node, holds, prefix + "condition")};
    llvm::append_range(names, now);
    return names;
  };
  const size_t scans = body->output_size() - 1 - states;
  Iterations loop{node,
                  *body,
                  isTried ? trials : choice->second,
                  inputs,
                  {node.inputs.begin() + 2, node.inputs.end()},
                  1,
                  std::vector<int64_t>(scans, 0),
                  std::vector<bool>(scans, false),
                  isTried};
  return unroll(loop, scope, depth);
}

/// Reads the sizes of a value besides, which then decide how often the node runs.
void Inliner::askForSizes(GraphNode &node, const std::string &of) {
  const std::string name = freePrefix(node.key() + "/sizes") + std::to_string(node.inputs.size());
  node.inputs.push_back(addNode(node, "Shape", {of}, name));
}

/// A scan of operator set 8 has samples along the first axis of all that it is given and makes: one
/// of set 9 for each.
bool Inliner::addBatchedScan(GraphNode &node, const Scope &scope, int depth) {
  if (node.inputs.size() < 2)
    return true; // the check of operators says so
  if (!node.inputs[0].empty())
    return fail(
        node, ExitCode::unsupportedModel,
        sequenceLengths.told(
            "its sequence_lens are not supported: all samples run as often as they are long"),
        "a Scan without them, or one of operator set 9");
  auto choice = choices.made.find(node.key());
  if (choice == choices.made.end()) {
    askForSizes(node, node.inputs[1]);
    return true;
  }
  NodeProto &proto = graph.rewritten.emplace_back(*node.proto);
  proto.mutable_input()->DeleteSubrange(0, 1);
  for (AttributeProto &attribute : *proto.mutable_attribute())
    if (attribute.name() == "directions")
      attribute.set_name("scan_input_directions");
  if (!enter(node, 2 * (node.inputs.size() + node.outputs.size()), choice->second, depth))
    return false;
  std::vector<std::vector<std::string>> pieces(node.outputs.size());
  for (int64_t sample = 0; sample < choice->second; ++sample) {
    const std::string prefix = freePrefix(node.key() + "/sample" + std::to_string(sample));
    std::string index = addNumber(node, sample, /*isScalar=*/true, prefix + "index");
    GraphNode one = node;
    one.proto = &proto;
    one.opset = 9;
    one.inputs.clear();
    for (size_t i = 1; i < node.inputs.size(); ++i)
      one.inputs.push_back(addNode(node, "Gather", {node.inputs[i], index},
                                   prefix + "input" + std::to_string(i), 0));
    for (auto [k, output] : enumerate(one.outputs))
      if (!output.empty()) {
        output = prefix + "output" + std::to_string(k);
        pieces[k].push_back(output);
      }
    if (!addScan(graph.storage.emplace_back(std::move(one)), scope, depth))
      return false;
  }
  const std::string prefix = freePrefix(node.key() + "/samples");
  std::string axes = addNumber(node, 0, /*isScalar=*/false, prefix + "axis");
  std::vector<std::string> made(node.outputs.size());
  for (auto [k, values] : enumerate(pieces))
    if (!values.empty())
      made[k] = addStack(node, std::move(values), axes, 0, prefix + std::to_string(k) + "/");
  rename(node, made);
  return true;
}

/// What is wrong with the attributes of a scan, given how many values it scans and makes; else "".
static std::string wrongIn(const GraphNode &node, int64_t scanned, int64_t scans) {
  const auto inputs = static_cast<int64_t>(node.inputs.size());
  if (scanned < 1 || scanned > inputs)
    return "num_scan_inputs is " + std::to_string(scanned) + ", but it has " +
           std::to_string(inputs) + (inputs == 1 ? " input" : " inputs") +
           ", of which it scans one at least";
  const std::pair<const char *, int64_t> lists[] = {{"scan_input_axes", scanned},
                                                    {"scan_input_directions", scanned},
                                                    {"scan_output_axes", scans},
                                                    {"scan_output_directions", scans}};
  for (auto [name, count] : lists) {
    auto given = node.integers(name);
    if (!given || scans < 0)
      continue;
    if (static_cast<int64_t>(given->size()) != count)
      return name + std::string(" has ") + std::to_string(given->size()) + " numbers, for " +
             std::to_string(count) + " values";
    auto wrong = find_if(*given, [](int64_t one) { return one != 0 && one != 1; });
    if (StringRef(name).ends_with("directions") && wrong != given->end())
      return name + std::string(" holds ") + std::to_string(*wrong) + ", which is neither 0 nor 1";
  }
  return "";
}

bool Inliner::addScan(GraphNode &node, const Scope &scope, int depth) {
  const onnx::GraphProto *body = bodyOf(node);
  const int64_t scanned = node.integer("num_scan_inputs", 0);
  if (node.key().empty() || !body)
    return true; // the check of operators says so
  if (node.opset < 9)
    return addBatchedScan(node, scope, depth);
  const int64_t states = static_cast<int64_t>(node.inputs.size()) - scanned;
  const int64_t scans = body->output_size() - states;
  if (std::string wrong = wrongIn(node, scanned, scans); !wrong.empty())
    return fail(node, ExitCode::unreadableModel, wrong);
  if (!checkBody(node, *body,
                 states >= 0 && scans >= 0 &&
                     body->input_size() == static_cast<int>(node.inputs.size()) &&
                     node.outputs.size() <= static_cast<size_t>(body->output_size())))
    return false;
  auto each = [&](StringRef name, int64_t count) {
    std::vector<int64_t> numbers(count, 0);
    if (auto given = node.integers(name); given && static_cast<int64_t>(given->size()) == count)
      numbers.assign(given->begin(), given->end());
    return numbers;
  };
  const std::vector<int64_t> axes = each("scan_input_axes", scanned),
                             directions = each("scan_input_directions", scanned),
                             outputDirections = each("scan_output_directions", scans);
  auto choice = choices.made.find(node.key());
  if (choice == choices.made.end()) {
    for (int64_t k = 0; k < scanned; ++k)
      askForSizes(node, node.inputs[states + k]);
    return true;
  }
  const int64_t times = choice->second;
  auto inputs = [&](int64_t i, const std::string &prefix, std::vector<std::string> names) {
    for (int64_t k = 0; k < scanned; ++k) {
      const std::string name = prefix + "scanned" + std::to_string(k);
      std::string index = addNumber(node, directions[k] != 0 ? times - 1 - i : i,
                                    /*isScalar=*/true, name + "/index");
      names.push_back(addNode(node, "Gather", {node.inputs[states + k], index}, name, axes[k]));
    }
    return names;
  };
  Iterations loop{node,
                  *body,
                  times,
                  inputs,
                  {node.inputs.begin(), node.inputs.begin() + states},
                  0,
                  each("scan_output_axes", scans),
                  {outputDirections.begin(), outputDirections.end()}};
  return unroll(loop, scope, depth);
}

} // namespace trainc::reader
