// SPDX-License-Identifier: Apache-2.0
//
// Problem: the optimizer of PyTorch's default exporter keeps one of all small initializers with
// equal values and takes out biases that are zero. A freshly initialised model, whose norms are
// all ones and zeros, would train as another one.
//
// Method: every node keeps the call of the program that it was made from, with the parameters as
// arguments. A use whose call names another parameter than the initializer's own gets that
// parameter back, with the merged values; a matrix product whose call has a bias, and which lost
// it, gets zeros. What an argument is to an operator, the operator's importer says.
//
// Weakness: equal nodes are merged after their parameters. The call of one is lost then, and with
// it which parameters it named: references to values that no call defines show it (lost_values.h).
// What the file has under its own name, and its calls name, is that parameter, whatever is gone.
#include "compiler/onnx/file/wire.h"
#include "compiler/onnx/graph/graph.h"
#include "compiler/onnx/provenance/dynamo/lost_parameters.h"
#include "compiler/onnx/provenance/dynamo/lost_values.h"
#include "compiler/onnx/provenance/dynamo/parametric_calls.h"
#include "compiler/onnx/provenance/parameters.h"
#include "compiler/onnx/provenance/separation.h"
#include "dialects/nn/onnx/onnx_node.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <set>

using namespace llvm;

namespace trainc::reader {

using nn::OnnxWeight;
using onnx::NodeProto;

namespace {

// Whether a rule of the exporter's optimizer, told by the beginning of its name, made the node.
bool isMadeBy(const NodeProto &node, StringRef rule) {
  std::string rules = metadata(node, kNodeMetadata, "pkg.onnxscript.rewriter.rule_name");
  return any_of(split(rules, ','), [&](StringRef one) { return one.trim().starts_with(rule); });
}

struct CallGroup {
  ProgramCall call;
  SmallVector<NodeProto *> nodes;
};

struct InitializerUse {
  NodeProto *node;
  int input;
  const std::string &name() const { return node->input(input); }
};

class Separator {
public:
  Separator(ModelFile &file, Separation &separation, Report &report)
      : file(file), separation(separation), report(report), program(separation.program) {}

  bool run() {
    size_t before = report.size();
    if (!program.isRecorded())
      return true;
    collect();
    if (definesTwice) // which is said of the graph
      return true;
    if (program.isOfTrainc()) {
      for (const CallGroup &group : groups)
        if (group.call.is("aten.embedding"))
          notePadding(group.call);
      listUnused();
      return true;
    }
    for (CallGroup &group : groups)
      place(group);
    refuseUnsaid();
    refuseMergedFunctions();
    explainMissing();
    // Those that a tool has made integers of, under other names.
    if (any_of(file.graph().node(), [](const onnx::NodeProto &node) {
          return quantizedInput(node.domain(), node.op_type()).has_value();
        }))
      gone.unclear.clear();
    gone.report(file.path(), report);
    return report.size() == before;
  }

private:
  // ---- what the file has

  void collect() {
    for (int i = 0; i < file.graph().initializer_size(); ++i) {
      const onnx::TensorProto &tensor = file.graph().initializer(i);
      initializers[tensor.name()] = i;
      std::vector<std::string> &from = origins[tensor.name()];
      ArrayRef<std::string> sources = program.sourcesOf(tensor.name());
      if (program.kindOf(tensor.name()) == "PARAMETER")
        from.push_back(tensor.name());
      for (const std::string &source : sources) {
        values.insert(source);
        if (program.isParameter(source))
          from.push_back(source);
      }
      if (from.empty() && program.isParameter(tensor.name()))
        gone.changed.push_back(tensor.name());
      held.insert(from.begin(), from.end());
      values.insert(tensor.name());
    }
    for (const auto &input : file.graph().input())
      values.insert(input.name());
    for (NodeProto &node : *file.editableGraph().mutable_node()) {
      values.insert(node.output().begin(), node.output().end());
      definesTwice |= any_of(node.output(), [&](auto &one) { return initializers.count(one) > 0; });
      for (int i = 0; i < node.input_size(); ++i)
        if (nn::onnxWeight(node.domain(), node.op_type(), i, {}) == OnnxWeight::statistic)
          statistics.insert(node.input(i));
      const ProgramCall *call = program.callOf(node);
      if (!call) {
        callless.push_back(&node);
        for (const std::string &output : node.output())
          if (node.input_size())
            passedOn[output] = node.input(0);
        continue;
      }
      values.insert(call->name);
      std::optional<std::string> module = moduleOf(node);
      for (const std::string &parameter : program.parametersOf(*call)) {
        mentioned.insert(parameter);
        if (module)
          usedIn[*module].push_back(parameter);
      }
      auto [index, isNew] = groupOf.try_emplace(call->name, groups.size());
      if (isNew)
        groups.push_back({*call, {}});
      groups[index->second].nodes.push_back(&node);
    }
  }

  bool holdsFloats(StringRef name) const {
    return isFloat(file.graph().initializer(initializers.lookup(name)).data_type());
  }

  std::vector<InitializerUse> usesIn(const CallGroup &group) const {
    std::vector<InitializerUse> uses;
    for (NodeProto *node : group.nodes)
      for (int i = 0; i < node->input_size(); ++i)
        if (initializers.count(node->input(i)) && holdsFloats(node->input(i)))
          uses.push_back({node, i});
    return uses;
  }

  // A value that no call in the file makes.
  bool isLost(const std::string &reference) const {
    return !values.contains(reference) && !program.listsInput(reference);
  }

  // The call's own parameters are its layer's, and perhaps what the layer is applied to.
  bool isNamed(const ProgramCall &call, const InitializerUse &use) const {
    return any_of(program.parametersOf(call),
                  [&](const std::string &parameter) { return isOwn(use, parameter); });
  }

  bool isOwn(const InitializerUse &use, StringRef parameter) const {
    return is_contained(origins.at(use.name()), parameter);
  }

  // ---- a call

  void place(CallGroup &group) {
    std::vector<std::string> parameters = program.parametersOf(group.call);
    if (any_of(group.nodes,
               [](const NodeProto *node) { return isMadeBy(*node, "FuseBatchNorm"); })) {
      gone.foldedNorms.insert(gone.foldedNorms.end(), parameters.begin(), parameters.end());
      for (const InitializerUse &use : usesIn(group)) // a kind that it lost says so as well
        if (program.isParameter(use.name()) && !is_contained(gone.changed, use.name()))
          gone.changed.push_back(use.name());
      return;
    }
    if (group.call.is("aten.embedding"))
      notePadding(group.call);
    const ParametricCall *layout = layoutOf(group.call);
    bool isPlaced = !layout && placeByPosition(group);
    std::vector<InitializerUse> uses = usesIn(group);
    if (layout)
      placeByLayout(group, *layout, uses);
    else if (parameters.empty())
      placeUnnamed(group, uses);
    else if (!isPlaced)
      placeInOrder(group, parameters, uses);
  }

  // Each operand that is a value; numbers, too, where `numbers`.
  static std::vector<std::string> operandsOf(const ProgramCall &call, bool numbers) {
    std::vector<std::string> operands;
    double number;
    for (const std::string &argument : call.arguments)
      if (StringRef text = argument; text.starts_with("["))
        for (StringRef element : split(text.trim("[]"), ','))
          operands.push_back(element.trim().str());
      else
        operands.push_back(argument);
    llvm::erase_if(operands, [&](StringRef text) {
      return !text.starts_with("%") && (!numbers || text.getAsDouble(number));
    });
    if (call.is("aten.rsub"))
      std::reverse(operands.begin(), operands.end());
    return operands;
  }

  // Whether the input of a node can be what a call says. A number that has its own initializer is
  // no input here.
  bool canBe(const std::string &input, StringRef operand) const {
    auto found = initializers.find(input);
    bool isInitializer = found != initializers.end();
    if (!operand.consume_front("%"))
      return isInitializer && file.initializer(found->second).count == 1;
    if (!program.parameterAt(operand).empty() || !program.bufferAt(operand).empty())
      return isInitializer;
    return isLost(operand.str()) || (isInitializer ? input == operand : !operand.empty());
  }

  // One node whose inputs are the call's operands, in order (add, where, matmul).
  bool placeByPosition(CallGroup &group) {
    if (group.nodes.size() != 1)
      return false;
    SmallVector<InitializerUse> inputs;
    NodeProto &node = *group.nodes[0];
    for (int i = 0; i < node.input_size(); ++i) {
      auto found = initializers.find(node.input(i));
      bool isUnnamed = found != initializers.end() && origins.at(node.input(i)).empty() &&
                       program.kindOf(node.input(i)).empty() &&
                       !is_contained(group.call.references, node.input(i));
      if (!node.input(i).empty() && !isUnnamed)
        inputs.push_back({&node, i});
    }
    std::vector<std::string> operands;
    for (bool numbers : {true, false})
      if (operands.size() != inputs.size())
        operands = operandsOf(group.call, numbers);
    if (operands.size() != inputs.size() || any_of(zip_equal(inputs, operands), [&](auto pair) {
          return !canBe(std::get<0>(pair).name(), std::get<1>(pair));
        }))
      return false;
    for (const auto &[use, operand] : zip_equal(inputs, operands)) {
      StringRef meant = program.parameterAt(StringRef(operand).ltrim('%'));
      if (!initializers.count(use.name()) || !holdsFloats(use.name()))
        continue;
      if (!meant.empty())
        assign(use, meant.str(), false);
      else if (isConstantOperand(operand))
        makeConstant(use);
    }
    return true;
  }

  std::string argument(const ProgramCall &call, int index) const {
    if (index < 0 || index >= static_cast<int>(call.arguments.size()))
      return "";
    StringRef text = call.arguments[index];
    return text.consume_front("%") ? program.parameterAt(text).str() : "";
  }

  // A number, or a value that no parameter is in: ones of the module's own, or a buffer.
  bool isConstantOperand(StringRef text) const {
    if (!text.consume_front("%"))
      return true;
    return !program.bufferAt(text).empty() || (isLost(text.str()) && isNumber(baseName(text)));
  }

  // What a norm has no parameter for, the exporter fills in. A product may have got a bias from an
  // addition after it.
  bool isConstantArgument(const ProgramCall &call, int index, const NodeProto &node) const {
    bool isAbsent = index < 0 || index >= static_cast<int>(call.arguments.size()) ||
                    !StringRef(call.arguments[index]).starts_with("%");
    bool isNorm = StringRef(node.op_type()).ends_with("Normalization");
    return isAbsent ? isNorm : isConstantOperand(call.arguments[index]);
  }

  void notePadding(const ProgramCall &call) {
    if (std::optional<int64_t> row = paddingOf(call))
      separation.notes[argument(call, 0)] =
          "its row " + std::to_string(*row) + ", the padding, has no gradient";
  }

  OnnxWeight weightOf(const InitializerUse &use) const {
    ArrayRef<int64_t> shape = file.initializer(initializers.lookup(use.name())).shape;
    return nn::onnxWeight(use.node->domain(), use.node->op_type(), use.input, shape);
  }

  // Running statistics that another call of the norm has made, merged with a parameter.
  bool isOfEarlierCall(const ProgramCall &call, const InitializerUse &use) const {
    auto index = static_cast<size_t>(use.input);
    if (!call.isBatchNorm() || index >= call.arguments.size() ||
        program.kindOf(use.name()) != "PARAMETER")
      return false;
    StringRef text = call.arguments[index];
    return text.consume_front("%") && program.bufferAt(text).empty();
  }

  void placeByLayout(CallGroup &group, const ParametricCall &layout,
                     ArrayRef<InitializerUse> uses) {
    std::string weight = argument(group.call, layout.weight),
                bias = argument(group.call, layout.bias);
    auto lost = [&](const std::string &reference) { return isLost(reference); };
    for (const InitializerUse &use : uses) {
      OnnxWeight kind = weightOf(use);
      if (kind == OnnxWeight::statistic && isOfEarlierCall(group.call, use)) {
        gone.undecided.insert(use.name());
        continue;
      }
      const std::string &meant = kind == OnnxWeight::bias ? bias : weight;
      bool isTrained = nn::isWeight(kind) && kind != OnnxWeight::statistic;
      int index = kind == OnnxWeight::bias ? layout.bias : layout.weight;
      // Ones and zeros of the InstanceNormalization in a group norm are not its scale and bias.
      bool isInner =
          isOnnx(*use.node, "InstanceNormalization") &&
          any_of(group.nodes, [](const NodeProto *node) { return isOnnx(*node, "Mul"); });
      bool isOther = isInner || (origins.at(use.name()).empty() &&
                                 any_of(uses, [&](const InitializerUse &one) {
                                   return weightOf(one) == kind && !origins.at(one.name()).empty();
                                 }));
      if (isTrained && !isOther && !meant.empty())
        assign(use, meant, isTransposed(group.call, *use.node, use.input));
      else if (isInner ||
               (isTrained && !isOther && isConstantArgument(group.call, index, *use.node)) ||
               // of a norm written out
               (!isNamed(group.call, use) && none_of(group.call.references, lost)))
        makeConstant(use);
    }
    if (!bias.empty())
      for (NodeProto *node : group.nodes)
        if (isMadeBy(*node, "RemoveOptionalBias") && node->input_size() == 2)
          addZeroBias(*node, bias);
  }

  // Calls of which nothing is known: what has no place goes where something else lies, in order.
  void placeInOrder(const CallGroup &group, ArrayRef<std::string> parameters,
                    ArrayRef<InitializerUse> uses) {
    SmallVector<std::string> unplaced;
    SmallVector<InitializerUse> others;
    for (const std::string &parameter : parameters)
      if (none_of(uses, [&](const InitializerUse &use) { return isOwn(use, parameter); }))
        unplaced.push_back(parameter);
    for (const InitializerUse &use : uses)
      if (none_of(parameters, [&](const std::string &one) { return isOwn(use, one); }))
        others.push_back(use);
    // A constant of the call may have been merged with one of its parameters.
    bool hasConstant = any_of(group.call.references, [&](StringRef reference) {
      StringRef target = program.bufferAt(reference);
      bool isRead = any_of(uses, [&](const InitializerUse &use) { return use.name() == target; });
      return !isRead && isConstantOperand(("%" + reference).str());
    });
    if (hasConstant && uses.size() - others.size() > parameters.size())
      gone.undecided.insert(parameters.begin(), parameters.end());
    if (unplaced.size() != others.size()) {
      for (const std::string &parameter : unplaced)
        if (!held.contains(parameter) || !others.empty())
          gone.undecided.insert(parameter);
      return;
    }
    for (auto [parameter, use] : zip_equal(unplaced, others))
      assign(use, parameter, false);
  }

  // Calls on values whose own calls are gone: one such value was a function of a parameter of
  // this module, and was merged with the value that the node uses instead.
  void placeUnnamed(CallGroup &group, ArrayRef<InitializerUse> uses) {
    SmallVector<std::string> lost;
    for (const std::string &reference : group.call.references)
      if (isLost(reference) && !isNumber(baseName(reference)))
        lost.push_back(reference);
    if (lost.empty()) {
      for (const InitializerUse &use : uses)
        if (!is_contained(group.call.references, use.name()))
          makeConstant(use);
      return;
    }
    std::optional<std::string> module = moduleOf(*group.nodes[0]);
    SmallVector<std::string> candidates;
    for (const std::string &parameter : program.parameters())
      if (module && moduleOfParameter(parameter) == *module && isMissing(parameter) &&
          !mentioned.contains(parameter))
        candidates.push_back(parameter);
    if (lost.size() > 1)
      llvm::erase_if(lost, [](StringRef name) { return hasNoParameters(baseName(name)); });
    if (candidates.size() == 1 && lost.size() == 1 && uses.size() == 1)
      assignFunction(uses[0], candidates[0], lost[0]);
  }

  bool isMissing(StringRef parameter) const {
    return held.find(parameter) == held.end() && placed.find(parameter) == placed.end();
  }

  // ---- new initializers

  void assign(const InitializerUse &use, const std::string &parameter, bool transposed) {
    if (isOwn(use, parameter))
      return;
    std::string from = use.name();
    bool reshaped = !transposed && isRearranged(from);
    std::string name = parameter + (transposed ? kTransposed : reshaped ? kReshaped : "");
    placed.insert(parameter);
    taken[from].push_back(parameter);
    if (!initializers.count(name)) {
      addCopy(name, file.initializer(initializers[from]), apartFrom(from));
      if (transposed || reshaped)
        program.addSources(name, {parameter});
      else
        program.addKind(name, "PARAMETER");
      origins[name] = {parameter};
    }
    use.node->set_input(use.input, name);
  }

  // What the exporter made of a parameter for a call: it may have axes that the parameter lacks.
  bool isRearranged(const std::string &name) const {
    const onnx::TensorProto &tensor = file.graph().initializer(initializers.lookup(name));
    return tensor.dims_size() > 1 && program.kindOf(name).empty() && baseName(name) == "val" &&
           !program.sourcesOf(name).empty();
  }

  void assignFunction(const InitializerUse &use, const std::string &parameter,
                      const std::string &function) {
    std::string from = use.name();
    const TensorBytes &values = file.initializer(initializers[from]);
    placed.insert(parameter);
    resolved.insert(function);
    taken[from].push_back(parameter);
    std::vector<std::string> sources = program.sourcesOf(from).vec();
    for (std::string &source : sources)
      if (program.isParameter(source))
        source = parameter;
    addCopy(function, values, "merged with " + from + ", which was equal: apart again");
    program.addSources(function, sources.empty() ? std::vector{parameter} : sources);
    origins[function] = {parameter};
    use.node->set_input(use.input, function);
  }

  // A constant that was merged with a parameter must not be trained with it, nor one that was
  // merged with running statistics be replaced with them.
  void makeConstant(const InitializerUse &use) {
    const std::string from = use.name();
    const TensorBytes &values = file.initializer(initializers[from]);
    bool isTrained = program.kindOf(from) == "PARAMETER" || separation.stacked.contains(from);
    if (!isTrained && !(statistics.contains(from) && weightOf(use) != OnnxWeight::statistic))
      return;
    std::string name = from + ".constant";
    if (!initializers.count(name))
      addCopy(name, values, "a constant which the exporter merged with " + from);
    use.node->set_input(use.input, name);
  }

  void addZeroBias(NodeProto &node, const std::string &bias) {
    auto weight = initializers.find(node.input(1));
    std::optional<int64_t> outputs;
    if (weight != initializers.end())
      outputs = outputsOf(node, file.initializer(weight->second).shape);
    auto found = initializers.find(bias);
    if (!outputs || (found != initializers.end() && !isZero(file.initializer(found->second)))) {
      gone.undecided.insert(bias);
      return;
    }
    if (found == initializers.end()) {
      const int32_t type = file.initializer(weight->second).dataType;
      std::string zeros(*outputs * elementBytes(type), '\0');
      add(ownTensor(bias, type, {*outputs}, std::move(zeros)),
          "zeros, which the exporter had taken out: back again");
      program.addKind(bias, "PARAMETER");
      origins[bias] = {bias};
    }
    placed.insert(bias);
    node.add_input(bias);
  }

  void addCopy(const std::string &name, const TensorBytes &values, const std::string &reason) {
    add(sharedCopy(values, name), reason);
  }

  void add(std::unique_ptr<TensorBytes> values, const std::string &reason) {
    std::string name = values->name;
    initializers[name] = file.graph().initializer_size();
    origins[name];
    separation.origin[name] = reason;
    file.addInitializer(std::move(values));
  }

  // ---- what is left

  // A node without a call may mean any of the parameters that shared its input.
  void refuseUnsaid() {
    for (const NodeProto *node : callless)
      for (const std::string &input : node->input())
        if (auto found = taken.find(input); found != taken.end())
          gone.undecided.insert(found->second.begin(), found->second.end());
  }

  // The initializer that a node reads, or that a node without a call (a split) passes on to it.
  std::string initializerBehind(const std::string &value) const {
    if (initializers.count(value))
      return value;
    auto from = passedOn.find(value);
    return from != passedOn.end() && initializers.count(from->second) ? from->second : "";
  }

  // Parameters other than those that an initializer is made of, of which it could as well be.
  std::vector<std::string> equalParameters(const std::string &name) const {
    ArrayRef<char> bytes = file.initializer(initializers.lookup(name)).bytes;
    std::vector<std::string> equal;
    for (const auto &[other, from] : origins)
      if (other != name && from.size() == 1 && !is_contained(origins.at(name), from[0]) &&
          file.initializer(initializers.lookup(other)).bytes == bytes)
        equal.push_back(from[0]);
    return equal;
  }

  // A buffer or a tensor of the module's code that no call names and no initializer holds: it was
  // merged with some operand. Where there is another one of its name, such as a mask that every
  // layer has, it was merged with that.
  bool lacksConstant() const {
    llvm::StringSet<> there;
    for (const auto &buffer : program.bufferTargets())
      if (values.contains(StringRef(buffer.second)))
        there.insert(attributeOf(buffer.second));
    return any_of(program.bufferTargets(), [&](const auto &buffer) {
      StringRef attribute = attributeOf(buffer.second);
      return attribute != "num_batches_tracked" && !there.contains(attribute) &&
             none_of(groups, [&](const CallGroup &group) {
               return is_contained(group.call.references, buffer.first());
             });
    });
  }

  // A call takes a value whose own call is gone, and its node reads a parameter instead, or what
  // was made of one, that the call does not name. The value may have been a selection, say, of
  // another parameter that was equal: nothing tells, so that nobody may train the two as one.
  void refuseMergedFunctions() {
    for (const CallGroup &group : groups) {
      SmallVector<StringRef> lost;
      for (const std::string &reference : group.call.references)
        if (isLost(reference) && !resolved.contains(reference))
          lost.push_back(baseName(reference));
      for (const NodeProto *node : lost.empty() ? SmallVector<NodeProto *>() : group.nodes)
        for (const std::string &input : node->input())
          if (std::string name = initializerBehind(input);
              !name.empty() && holdsFloats(name) && !origins.at(name).empty() &&
              (!isNamedBy(group.call, name) || isReadAgain(group, input)))
            refuseMergedFunction(name, initializers.count(input) > 0, lost);
    }
  }

  // By the call's one node, more often than the call names it.
  static bool isReadAgain(const CallGroup &group, const std::string &input) {
    return group.nodes.size() == 1 && is_contained(group.call.references, input) &&
           llvm::count(group.nodes[0]->input(), input) > llvm::count(group.call.references, input);
  }

  bool isNamedBy(const ProgramCall &call, const std::string &name) const {
    std::vector<std::string> named = program.parametersOf(call);
    auto isOne = [&](const std::string &one) {
      return is_contained(named, one) || is_contained(call.references, one);
    };
    return isOne(name) || any_of(origins.at(name), isOne) || any_of(program.sourcesOf(name), isOne);
  }

  void refuseMergedFunction(const std::string &name, bool isWhole, ArrayRef<StringRef> lost) {
    anyMerged = true;
    std::vector<std::string> equal = equalParameters(name);
    gone.undecided.insert(equal.begin(), equal.end());
    const TensorBytes &numbers = file.initializer(initializers.lookup(name));
    const bool isFunction = program.kindOf(name) != "PARAMETER", moves = any_of(lost, isMovement);
    const bool isComputed = isWhole && !isFunction && !moves && none_of(lost, isRepetition);
    if (!equal.empty() || isComputed || (moves && lacksConstant()) ||
        (isFunction && isUniform(numbers)) || (isWhole && !isFunction && mayBeWritten(numbers)))
      gone.undecided.insert(origins.at(name).begin(), origins.at(name).end());
  }

  // A call that stands for others, too: they may have read another parameter that was equal.
  void refuseMergedCalls(const llvm::StringSet<> &merged) {
    for (const CallGroup &group : groups) {
      if (!merged.contains(group.call.name))
        continue;
      for (const InitializerUse &use : usesIn(group)) {
        const std::vector<std::string> &own = origins.at(use.name());
        std::vector<std::string> equal = equalParameters(use.name());
        gone.undecided.insert(equal.begin(), equal.end());
        const TensorBytes &numbers = file.initializer(initializers.lookup(use.name()));
        if (!equal.empty())
          gone.undecided.insert(own.begin(), own.end());
        else if (mayBeWritten(numbers) || lacksConstant())
          gone.shared.insert(own.begin(), own.end());
        anyMerged |= !own.empty() || !equal.empty();
      }
    }
  }

  // A parameter of one number without axes may be in a product or a sum that was taken out beside
  // another use that is left.
  void noteNumbers(const LostValues &lost) {
    for (const auto &[name, from] : origins) {
      const TensorBytes &values = file.initializer(initializers.lookup(name));
      if (values.shape.empty() && program.kindOf(name) == "PARAMETER" && isWhole(values))
        if (lost.calculates || lost.moves)
          (lost.calculates ? gone.undecided : gone.shared).insert(name);
    }
  }

  // Where nothing was merged or taken out.
  void listUnused() {
    for (const std::string &parameter : program.parameters())
      if (isMissing(parameter))
        listAbsent(parameter, otherNameOf(parameter, /*mayBeGone=*/false));
  }

  void listAbsent(const std::string &parameter, const std::string &other) {
    separation.absent.emplace_back(
        parameter, other.empty() ? "nothing uses it, or it is another name of a parameter"
                                 : "the same parameter as " + other);
  }

  void explainMissing() {
    LostValues lost = findLostValues(file, program, [&](const std::string &name) {
      return isLost(name) && !resolved.contains(name);
    });
    refuseMergedCalls(lost.merged);
    noteNumbers(lost);
    for (const std::string &parameter : program.parameters()) {
      if (!isMissing(parameter) || is_contained(gone.foldedNorms, parameter) ||
          is_contained(gone.changed, parameter))
        continue;
      if (mentioned.contains(parameter)) {
        gone.undecided.insert(parameter);
        continue;
      }
      const bool mayBeGone = lost.calculates || anyMerged;
      const std::string other = otherNameOf(parameter, mayBeGone);
      if (other.empty() && mayBeGone)
        gone.unnamed.insert(parameter);
      else
        listAbsent(parameter, other);
      if (other.empty() && !mayBeGone && lost.moves)
        gone.unclear.insert(parameter);
    }
  }

  // A module that has a tied parameter calls with another module's, and one whose layer has the
  // parameter lists it as well (predictions.bias, predictions.decoder.bias). "" where there is
  // none.
  std::string otherNameOf(const std::string &parameter, bool mayBeGone) const {
    const StringRef module = moduleOfParameter(parameter), attribute = attributeOf(parameter);
    std::string other;
    if (auto used = usedIn.find(module.str()); used != usedIn.end())
      for (StringRef one : used->second)
        if (moduleOfParameter(one) != module && !one.starts_with((module + ".").str()) &&
            (attributeOf(one) == attribute || (other.empty() && !mayBeGone)))
          other = one.str();
    for (StringRef one : program.parameters())
      if (other.empty() && !mayBeGone && attributeOf(one) == attribute && mentioned.count(one) &&
          moduleOfParameter(moduleOfParameter(one)) == module && !module.empty())
        other = one.str();
    return other;
  }

  ModelFile &file;
  Separation &separation;
  Report &report;
  ExportedProgram &program;
  llvm::StringMap<int> initializers;                       // by name
  std::map<std::string, std::vector<std::string>> origins; // parameters, by initializer
  std::map<std::string, std::vector<std::string>> taken;   // parameters, by former initializer
  std::map<std::string, std::vector<std::string>> usedIn;  // parameters, by module
  std::vector<CallGroup> groups;                           // in order
  llvm::StringMap<size_t> groupOf;                         // by call
  std::vector<const NodeProto *> callless;
  llvm::StringMap<std::string> passedOn; // first input of a callless node, by its outputs
  std::set<std::string, std::less<>> values, mentioned, held, placed, resolved, statistics;
  LostParameters gone;
  bool definesTwice = false; // a node makes a value under an initializer's name
  bool anyMerged = false;    // a call uses a parameter that it does not name, or stands for others
};

} // namespace

std::optional<int64_t> outputsOf(const NodeProto &node, ArrayRef<int64_t> weight) {
  int64_t transposed = 0, groups = 1;
  for (const onnx::AttributeProto &attribute : node.attribute()) {
    transposed = attribute.name() == "transB" ? attribute.i() : transposed;
    groups = attribute.name() == "group" ? attribute.i() : groups;
  }
  bool isMatrix = weight.size() == 2;
  if ((isMatrix && isOnnx(node, "MatMul")) || (isMatrix && isOnnx(node, "Gemm")))
    return weight[transposed ? 0 : 1];
  if (weight.size() > 2 && isOnnx(node, "ConvTranspose"))
    return weight[1] * groups;
  return weight.size() > 2 && isOnnx(node, "Conv") ? std::optional(weight[0]) : std::nullopt;
}

bool separateParameters(ModelFile &file, Separation &separation, Report &report) {
  return Separator(file, separation, report).run();
}

} // namespace trainc::reader
