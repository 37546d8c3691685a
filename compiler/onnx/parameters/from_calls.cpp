// SPDX-License-Identifier: Apache-2.0
//
// Problem: the optimizer of PyTorch's default exporter keeps one of all small initializers with
// equal values, and takes out biases that are zero. A fresh model, whose norms are all ones and
// zeros, would train as another one.
//
// Method: each node keeps the call that it was made from, and the call names its parameters. If a
// node reads initializer A and its call names parameter B, then B was merged into A: a claim for B.
// What an argument is to an operator, the operator's importer says.
//
// Weakness: equal nodes are merged after their parameters. The call of one is lost then, and with
// it which parameters it named: references to values that no call defines show it
// (lost_parameters.cpp).
#include "compiler/onnx/file/wire.h"
#include "compiler/onnx/parameters/recorded_calls.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace trainc::reader {

using nn::OnnxWeight;
using onnx::NodeProto;

namespace {

/// Which arguments of a call are its parameters; absent: -1.
struct Signature {
  int weight, bias;
  const char *operations; // of aten
};

constexpr Signature kSignatures[] = {
    {0, -1, "embedding"},
    {1, -1, "prelu"},
    {1, 2,
     "linear convolution conv1d conv2d conv3d conv_transpose1d conv_transpose2d "
     "conv_transpose3d native_group_norm instance_norm"},
    {2, -1, "rms_norm"},
    {2, 0, "addmm"},
    {2, 3, "layer_norm native_layer_norm group_norm"},
};

std::optional<Signature> signatureOf(const ProgramCall &call) {
  if (call.isBatchNorm())
    return Signature{1, 2, ""};
  for (const Signature &one : kSignatures)
    for (StringRef operation : split(one.operations, ' '))
      if (call.is(("aten." + operation).str()))
        return one;
  return std::nullopt;
}

/// Whether a rule of the exporter's optimizer, told by the beginning of its name, made the node.
bool isOfRule(const NodeProto &node, StringRef rule) {
  std::string rules = metadata(node, kNodeMetadata, "pkg.onnxscript.rewriter.rule_name");
  return any_of(split(rules, ','), [&](StringRef one) { return one.trim().starts_with(rule); });
}

/// `linear` has its weight as [outputs, inputs]: whether the node reads it the other way round.
bool isTransposed(const ProgramCall &call, const NodeProto &node, int input) {
  if (!call.is("aten.linear") || input != 1 || !(isOnnx(node, "MatMul") || isOnnx(node, "Gemm")))
    return false;
  return none_of(node.attribute(), [](const onnx::AttributeProto &attribute) {
    return attribute.name() == "transB" && attribute.i();
  });
}

/// The parameters of an LSTM or GRU, as its call lists them: of each layer, then of each
/// direction, the weights of inputs and of states, and their biases.
struct Cells {
  std::vector<std::string> parameters;
  size_t layers = 0, directions = 1, ofCell = 2;

  // What a layer's node has in its weights (input 1), recurrent weights or biases.
  std::vector<std::string> stackedIn(size_t layer, int input) const {
    std::vector<std::string> result;
    for (size_t direction = 0; direction < directions; ++direction) {
      const auto cell =
          parameters.begin() + static_cast<ptrdiff_t>((layer * directions + direction) * ofCell);
      if (input < 3)
        result.push_back(cell[input - 1]);
      else if (ofCell == 4)
        result.insert(result.end(), {cell[2], cell[3]});
    }
    return result;
  }
};

using Made = RecordedCalls::Made;
using Read = RecordedCalls::Read;

class CallClaims {
public:
  explicit CallClaims(const RecordedCalls &calls) : calls(calls), program(calls.program) {}

  Claims run() {
    if (calls.definesTwice) // which is said of the graph
      return {};
    for (const auto &[name, from] : calls.origins)
      if (from.empty() && program.isParameter(name))
        claims.lost.changed.push_back(name);
    for (const Made &made : calls.calls) {
      notePadding(made.call);
      claimStatistics(made);
      if (!program.isOfTrainc()) // where nothing was merged or taken out
        claim(made);
    }
    explainMissing(calls, claims);
    return std::move(claims);
  }

private:
  OnnxWeight weightOf(const Read &use) const {
    return reader::weightOf(*use.node, use.input, calls.tensorOf(use.name()).shape);
  }

  // The call's own parameters are its layer's, and perhaps what the layer is applied to.
  bool isNamed(const ProgramCall &call, const Read &use) const {
    return any_of(program.parametersOf(call),
                  [&](const std::string &parameter) { return calls.isOwn(use, parameter); });
  }

  // The parameter that an argument is; "" where it is none.
  std::string argument(const ProgramCall &call, int index) const {
    StringRef text = call.argument(index);
    return text.consume_front("%") ? program.parameterAt(text).str() : "";
  }

  // A number, or a value that no parameter is in: ones of the module's own, or a buffer.
  bool isConstantOperand(StringRef text) const {
    if (!text.consume_front("%"))
      return true;
    return !program.bufferAt(text).empty() ||
           (calls.isLost(text.str()) && isMadeBy(text, kNumbers));
  }

  // ---- claims

  void add(const Read &use, Form form, std::vector<std::string> tensors = {},
           std::string function = "") {
    if (form == Form::same && function.empty() && isRearranged(use.name()))
      form = Form::reshaped;
    claimed.insert(tensors.begin(), tensors.end());
    claims.uses.push_back({use.node, use.input, form, std::move(tensors), std::move(function)});
  }

  // What the exporter made of a parameter for a call: it may have axes that the parameter lacks.
  bool isRearranged(const std::string &name) const {
    return calls.tensorOf(name).shape.size() > 1 && program.kindOf(name).empty() &&
           baseName(name) == "val" && !program.sourcesOf(name).empty();
  }

  void notePadding(const ProgramCall &call) {
    if (std::optional<int64_t> row = paddingOf(call))
      claims.notes.emplace_back(argument(call, 0), "its row " + std::to_string(*row) +
                                                       ", the padding, has no gradient");
  }

  // Running statistics. A second call of a norm has copies of them that the first one made.
  void claimStatistics(const Made &made) {
    for (NodeProto *node : made.nodes)
      for (int i = 0; i < node->input_size(); ++i) {
        if (reader::weightOf(*node, i, {}) != OnnxWeight::statistic)
          continue;
        const std::string &from = node->input(i);
        StringRef text = made.call.argument(i);
        const bool isValue = text.consume_front("%") && made.call.isBatchNorm();
        const StringRef meant = isValue ? program.bufferAt(text) : "";
        const std::string original = calls.copiedFrom(from);
        if (isValue && meant.empty() && program.kindOf(original) == "PARAMETER")
          claims.lost.undecided.insert(original); // an earlier call made what was merged with it
        else if (calls.copies.count(from))
          claims.uses.push_back({node, i, Form::statistic, {original}});
        else if (!meant.empty() && calls.isInitializer(from))
          claims.uses.push_back({node, i, Form::statistic, {meant.str()}});
      }
  }

  void claim(const Made &made) {
    std::vector<std::string> parameters = program.parametersOf(made.call);
    if (any_of(made.nodes,
               [](const NodeProto *node) { return isOfRule(*node, "FuseBatchNorm"); })) {
      llvm::append_range(claims.lost.foldedNorms, parameters);
      for (const Read &use : calls.usesIn(made)) // a kind that it lost says so as well
        if (program.isParameter(use.name()) && !is_contained(claims.lost.changed, use.name()))
          claims.lost.changed.push_back(use.name());
      return;
    }
    if (std::optional<Cells> cells = cellsOf(made))
      return claimCells(made, *cells);
    const std::vector<Read> uses = calls.usesIn(made);
    if (std::optional<Signature> signature = signatureOf(made.call))
      return claimBySignature(made, *signature, uses);
    const bool isClaimed = claimByPosition(made);
    if (parameters.empty())
      claimUnnamed(made, uses);
    else if (!isClaimed)
      claimInOrder(made, parameters, uses);
  }

  // lstm(input, states, parameters, has_biases, layers, dropout, train, bidirectional,
  // batch_first), and gru. None where the call is not so, has weights that project the states, or
  // a parameter twice: one tensor would hold two copies.
  std::optional<Cells> cellsOf(const Made &made) const {
    const ProgramCall &call = made.call;
    const bool isRecurrent =
        call.operation == "aten.lstm.input" || call.operation == "aten.gru.input";
    Cells cells;
    if (!isRecurrent || call.arguments.size() < 8 ||
        StringRef(call.arguments[4]).getAsInteger(10, cells.layers))
      return std::nullopt;
    for (StringRef text : split(StringRef(call.arguments[2]).trim("[]"), ',')) {
      StringRef parameter = program.parameterAt(text.trim().ltrim('%'));
      if (parameter.empty())
        return std::nullopt;
      cells.parameters.push_back(parameter.str());
    }
    cells.ofCell = call.arguments[3] == "True" ? 4 : 2;
    cells.directions = call.arguments[7] == "True" ? 2 : 1;
    const std::set<std::string> distinct(cells.parameters.begin(), cells.parameters.end());
    const bool isWhole =
        cells.parameters.size() == cells.layers * cells.directions * cells.ofCell &&
        distinct.size() == cells.parameters.size() &&
        static_cast<size_t>(count_if(made.nodes, isRecurrentNode)) == cells.layers;
    return isWhole ? std::optional(std::move(cells)) : std::nullopt;
  }

  static bool isRecurrentNode(const NodeProto *node) {
    return isOnnx(*node, "LSTM") || isOnnx(*node, "GRU");
  }

  void claimCells(const Made &made, const Cells &cells) {
    size_t layer = 0;
    for (NodeProto *node : make_filter_range(made.nodes, isRecurrentNode)) {
      for (int input = 1; input < std::min(node->input_size(), 4); ++input)
        if (std::vector<std::string> own = cells.stackedIn(layer, input);
            !own.empty() && calls.isInitializer(node->input(input))) {
          if (calls.originsOf(node->input(input)).empty()) // merged with a constant
            claims.lost.undecided.insert(own.begin(), own.end());
          else
            add({node, input}, Form::stacked, std::move(own));
        }
      ++layer;
    }
  }

  void claimBySignature(const Made &made, const Signature &signature, ArrayRef<Read> uses) {
    const ProgramCall &call = made.call;
    const std::string weight = argument(call, signature.weight),
                      bias = argument(call, signature.bias);
    auto lost = [&](const std::string &reference) { return calls.isLost(reference); };
    const bool isGroupNorm =
        any_of(made.nodes, [](const NodeProto *node) { return isOnnx(*node, "Mul"); });
    for (const Read &use : uses) {
      const OnnxWeight kind = weightOf(use);
      if (kind == OnnxWeight::statistic || isOnnx(*use.node, "Identity")) // or a copy of one
        continue;
      const std::string &meant = kind == OnnxWeight::bias ? bias : weight;
      const int index = kind == OnnxWeight::bias ? signature.bias : signature.weight;
      // Ones and zeros of the InstanceNormalization in a group norm are not its scale and bias.
      const bool isInner = isGroupNorm && isOnnx(*use.node, "InstanceNormalization");
      const bool isOther =
          isInner || (calls.originsOf(use.name()).empty() && any_of(uses, [&](auto &one) {
                        return weightOf(one) == kind && !calls.originsOf(one.name()).empty();
                      }));
      const bool isLearnt = nn::isWeight(kind) && !isOther;
      if (isLearnt && !meant.empty())
        add(use, isTransposed(call, *use.node, use.input) ? Form::transposed : Form::same, {meant});
      else if (isInner || (isLearnt && isConstantArgument(call, index, *use.node)) ||
               // of a norm written out
               (!isNamed(call, use) && none_of(call.references, lost)))
        add(use, Form::constant);
    }
    if (!bias.empty())
      for (NodeProto *node : made.nodes)
        if (isOfRule(*node, "RemoveOptionalBias") && node->input_size() == 2)
          claimZeros(*node, bias);
  }

  void claimZeros(NodeProto &node, const std::string &bias) {
    const std::string &weight = node.input(1);
    if (!calls.isInitializer(weight) || !outputsOf(node, calls.tensorOf(weight).shape)) {
      claims.lost.undecided.insert(bias);
      return;
    }
    claimed.insert(bias);
    claims.uses.push_back({&node, 2, Form::zeros, {bias}});
  }

  // What a norm has no parameter for, the exporter fills in. A product may have got a bias from an
  // addition after it.
  bool isConstantArgument(const ProgramCall &call, int index, const NodeProto &node) const {
    const StringRef argument = call.argument(index);
    return argument.starts_with("%") ? isConstantOperand(argument)
                                     : StringRef(node.op_type()).ends_with("Normalization");
  }

  // Each operand that is a value; numbers, too, where `numbers`.
  static std::vector<std::string> operandsOf(const ProgramCall &call, bool numbers) {
    std::vector<std::string> operands;
    for (StringRef argument : call.arguments)
      if (argument.starts_with("["))
        for (StringRef element : split(argument.trim("[]"), ','))
          operands.push_back(element.trim().str());
      else
        operands.push_back(argument.str());
    double number;
    llvm::erase_if(operands, [&](StringRef text) {
      return !text.starts_with("%") && (!numbers || text.getAsDouble(number));
    });
    if (call.is("aten.rsub"))
      std::reverse(operands.begin(), operands.end());
    return operands;
  }

  // Whether the input of a node can be what a call says.
  bool canBe(const std::string &input, StringRef operand) const {
    const bool isInitializer = calls.isInitializer(input);
    if (!operand.consume_front("%"))
      return isInitializer && calls.tensorOf(input).count == 1;
    if (!program.parameterAt(operand).empty() || !program.bufferAt(operand).empty())
      return isInitializer;
    return calls.isLost(operand.str()) || (isInitializer ? input == operand : !operand.empty());
  }

  // One node whose inputs are the call's operands, in order (add, where, matmul). A number that
  // has its own initializer is not an input here.
  bool claimByPosition(const Made &made) {
    if (made.nodes.size() != 1)
      return false;
    SmallVector<Read> inputs;
    NodeProto &node = *made.nodes[0];
    for (int i = 0; i < node.input_size(); ++i) {
      const std::string &name = node.input(i);
      const bool isUnnamed = calls.isInitializer(name) && calls.originsOf(name).empty() &&
                             program.kindOf(name).empty() &&
                             !is_contained(made.call.references, name);
      if (!name.empty() && !isUnnamed)
        inputs.push_back({&node, i});
    }
    std::vector<std::string> operands;
    for (bool numbers : {true, false})
      if (operands.size() != inputs.size())
        operands = operandsOf(made.call, numbers);
    if (operands.size() != inputs.size() || any_of(zip_equal(inputs, operands), [&](auto pair) {
          return !canBe(std::get<0>(pair).name(), std::get<1>(pair));
        }))
      return false;
    for (const auto &[use, operand] : zip_equal(inputs, operands)) {
      const StringRef meant = program.parameterAt(StringRef(operand).ltrim('%'));
      if (!calls.isInitializer(use.name()) || !calls.holdsFloats(use.name()))
        continue;
      if (!meant.empty())
        add(use, Form::same, {meant.str()});
      else if (isConstantOperand(operand))
        add(use, Form::constant);
    }
    return true;
  }

  // Unknown calls: what has no place goes where something else lies, in order.
  void claimInOrder(const Made &made, ArrayRef<std::string> parameters, ArrayRef<Read> uses) {
    SmallVector<std::string> unplaced;
    SmallVector<Read> others;
    for (const std::string &parameter : parameters)
      if (none_of(uses, [&](const Read &use) { return calls.isOwn(use, parameter); }))
        unplaced.push_back(parameter);
    for (const Read &use : uses)
      if (!isNamed(made.call, use))
        others.push_back(use);
    // A constant of the call may have been merged with one of its parameters.
    const bool hasConstant = any_of(made.call.references, [&](StringRef reference) {
      StringRef target = program.bufferAt(reference);
      return none_of(uses, [&](const Read &use) { return use.name() == target; }) &&
             isConstantOperand(("%" + reference).str());
    });
    if (hasConstant && uses.size() - others.size() > parameters.size())
      claims.lost.undecided.insert(parameters.begin(), parameters.end());
    if (unplaced.size() == others.size())
      for (auto [parameter, use] : zip_equal(unplaced, others))
        add(use, Form::same, {parameter});
    else
      for (const std::string &parameter : unplaced)
        if (!calls.held.count(parameter) || !others.empty())
          claims.lost.undecided.insert(parameter);
  }

  // A call on values whose own calls are gone: one such value was a function of a parameter of
  // this module, and was merged with the value that the node uses instead.
  void claimUnnamed(const Made &made, ArrayRef<Read> uses) {
    SmallVector<std::string> lost;
    for (const std::string &reference : made.call.references)
      if (calls.isLost(reference) && !isMadeBy(reference, kNumbers))
        lost.push_back(reference);
    if (lost.empty()) {
      for (const Read &use : uses)
        if (!is_contained(made.call.references, use.name()))
          add(use, Form::constant);
      return;
    }
    const std::optional<std::string> module = moduleOf(*made.nodes[0]);
    SmallVector<std::string> candidates;
    for (const std::string &parameter : program.parameters())
      if (module && moduleOfParameter(parameter) == *module && isMissing(parameter) &&
          !calls.mentioned.count(parameter))
        candidates.push_back(parameter);
    if (lost.size() > 1)
      llvm::erase_if(lost, [](StringRef name) { return isMadeBy(name, kUsesNoParameter); });
    if (candidates.size() == 1 && lost.size() == 1 && uses.size() == 1)
      add(uses[0], Form::same, {candidates[0]}, lost[0]);
  }

  bool isMissing(StringRef parameter) const {
    return !calls.held.count(parameter) && !claimed.count(parameter);
  }

  const RecordedCalls &calls;
  const ExportedProgram &program;
  std::set<std::string, std::less<>> claimed; // parameters
  Claims claims;
};

} // namespace

Claims claimsOfCalls(const RecordedCalls &calls) {
  return calls.program.isRecorded() ? CallClaims(calls).run() : Claims();
}

} // namespace trainc::reader
