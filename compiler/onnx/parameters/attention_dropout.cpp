// SPDX-License-Identifier: Apache-2.0
//
// Problem: scaled_dot_product_attention(..., dropout_p) is a call with a dropout inside. Both
// exporters of PyTorch write the Dropout without its training mode, so that it drops nothing, and
// the default exporter's optimizer then takes it out.
//
// Method: a module passes a rate only where it drops. A Dropout with a rate and no mode is given
// the mode; where the recorded call has a rate and no Dropout is left, there is one again after
// the Softmax, or after what makes zeros of its rows without a key.
#include "compiler/onnx/parameters/claims.h"
#include "llvm/ADT/STLExtras.h"
#include <map>

using namespace llvm;

namespace trainc::reader {

using onnx::NodeProto;

namespace {

// scaled_dot_product_attention(query, key, value, mask, dropout_p, is_causal)
double rateOf(const ProgramCall &call) {
  double rate = 0; // stays where the argument is no number
  if (call.is("aten.scaled_dot_product_attention"))
    (void)call.argument(4).getAsDouble(rate);
  return rate;
}

class DropoutRestorer {
public:
  DropoutRestorer(ModelFile &file, const ExportedProgram &program, Report &report)
      : file(file), program(program), report(report) {}

  Changes run() {
    std::map<std::string, std::vector<NodeProto *>> calls; // the nodes of those with a rate
    for (NodeProto &node : *file.editableGraph().mutable_node()) {
      if (isOnnx(node, "Dropout") && node.input_size() == 2 && !node.input(1).empty()) {
        const std::string training = isTraining();
        changes.push_back({.user = &node, .input = 2, .reads = training});
      }
      if (const ProgramCall *call = program.callOf(node); call && rateOf(*call) > 0)
        calls[call->name].push_back(&node);
    }
    for (const auto &[name, nodes] : calls)
      if (none_of(nodes, [](const NodeProto *node) { return isOnnx(*node, "Dropout"); }))
        putBack(nodes);
    return std::move(changes);
  }

private:
  std::string constant(const std::string &name, int type, const std::string &bytes) {
    changes.push_back({.tensor = ownTensor(name, type, {}, bytes),
                       .origin = "of the dropout inside of attention"});
    return name;
  }

  std::string isTraining() {
    return constant("dropout.training", onnx::TensorProto::BOOL, std::string(1, 1));
  }

  void putBack(ArrayRef<NodeProto *> nodes) {
    const auto *found =
        find_if(nodes, [](const NodeProto *node) { return isOnnx(*node, "Softmax"); });
    if (found == nodes.end())
      return (void)report.refuse(
          Finding::lostArguments, Subject{file.path(), nodes[0]->name(), nodes[0]->op_type(), 0},
          "was called with dropout_p, which the exporter left out of the graph",
          "an export with an earlier opset_version, such as 20");
    NodeProto &softmax = **found, &weights = weightsOf(softmax);
    const float rate = static_cast<float>(rateOf(*program.callOf(softmax)));
    const std::string kept = weights.output(0), all = kept + ".before_dropout";
    NodeProto dropout = softmax; // and its module
    dropout.set_op_type("Dropout");
    dropout.set_name(softmax.name() + ".dropout");
    dropout.clear_attribute();
    dropout.set_output(0, kept);
    dropout.clear_input();
    dropout.add_input(all);
    dropout.add_input(constant(kept + ".dropout_rate", onnx::TensorProto::FLOAT,
                               {reinterpret_cast<const char *>(&rate), sizeof(rate)}));
    dropout.add_input(isTraining());
    changes.push_back({.maker = &weights, .makes = all, .node = std::move(dropout)});
  }

  /// The node that makes zeros of the softmax where it is no number, as in rows that see no key;
  /// the softmax where none does. PyTorch drops after it.
  NodeProto &weightsOf(NodeProto &softmax) {
    auto reads = [&](const NodeProto &node, StringRef opType, int input) {
      return isOnnx(node, opType) && input < node.input_size() &&
             node.input(input) == softmax.output(0);
    };
    auto &nodes = *file.editableGraph().mutable_node();
    for (NodeProto &node : nodes) {
      auto isCondition = [&](const NodeProto &one) {
        return reads(one, "IsNaN", 0) && one.output(0) == node.input(0);
      };
      if (reads(node, "Where", 2) && any_of(nodes, isCondition))
        return node;
    }
    return softmax;
  }

  ModelFile &file;
  const ExportedProgram &program;
  Report &report;
  Changes changes;
};

} // namespace

Changes attentionDropout(ModelFile &file, const Ledger &ledger, Report &report) {
  return isFromPyTorch(file) ? DropoutRestorer(file, ledger.program, report).run() : Changes();
}

} // namespace trainc::reader
