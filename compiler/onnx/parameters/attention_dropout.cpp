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
#include <set>

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
    for (NodeProto &node : *file.editableGraph().mutable_node()) {
      if (isOnnx(node, "Dropout") && node.input_size() == 2 && !node.input(1).empty()) {
        const std::string training = isTraining();
        changes.emplace_back().user = &node;
        changes.back().input = 2;
        changes.back().reads = training;
      }
      if (const ProgramCall *call = program.callOf(node); call && rateOf(*call) > 0)
        calls.insert(call->name);
      if (const ProgramCall *call = program.callOf(node); call && isOnnx(node, "Dropout"))
        whole.insert(call->name);
    }
    for (const std::string &name : calls)
      if (!whole.contains(name))
        putBack(name);
    return std::move(changes);
  }

private:
  std::string constant(const std::string &name, int type, const std::string &bytes) {
    Change &change = changes.emplace_back();
    change.tensor = ownTensor(name, type, {}, bytes);
    change.origin = "of the dropout inside of attention";
    return name;
  }

  std::string isTraining() {
    return constant("dropout.training", onnx::TensorProto::BOOL, std::string(1, 1));
  }

  void putBack(const std::string &name) {
    auto &nodes = *file.editableGraph().mutable_node();
    auto isOfCall = [&](const NodeProto &node, StringRef opType) {
      const ProgramCall *call = program.callOf(node);
      return call && call->name == name && isOnnx(node, opType);
    };
    auto softmax = find_if(nodes, [&](const NodeProto &node) { return isOfCall(node, "Softmax"); });
    if (softmax == nodes.end()) {
      auto node = find_if(nodes, [&](const NodeProto &one) {
        const ProgramCall *call = program.callOf(one);
        return call && call->name == name;
      });
      (void)report.refuse(Finding::lostArguments,
                          Subject{file.path(), node->name(), node->op_type(), 0},
                          "was called with dropout_p, which the exporter left out of the graph",
                          "an export with an earlier opset_version, such as 20");
      return;
    }
    const float rate = static_cast<float>(rateOf(*program.callOf(*softmax)));
    NodeProto &weights = nodes[placeOfWeights(static_cast<int>(softmax - nodes.begin()))];
    const std::string kept = weights.output(0), all = kept + ".before_dropout";
    NodeProto dropout = *softmax; // and its module
    dropout.set_op_type("Dropout");
    dropout.set_name(softmax->name() + ".dropout");
    dropout.clear_attribute();
    dropout.set_output(0, kept);
    dropout.clear_input();
    dropout.add_input(all);
    dropout.add_input(constant(kept + ".dropout_rate", onnx::TensorProto::FLOAT,
                               {reinterpret_cast<const char *>(&rate), sizeof(rate)}));
    dropout.add_input(isTraining());
    Change &change = changes.emplace_back();
    change.maker = &weights;
    change.makes = all;
    change.node = std::move(dropout);
  }

  /// Of the node that makes zeros of the softmax where it is no number, as in rows that see no key;
  /// of the softmax where none does. PyTorch drops after it.
  int placeOfWeights(int softmax) {
    const auto &nodes = file.graph().node();
    const std::string &all = nodes[softmax].output(0);
    auto reads = [&](const NodeProto &node, StringRef opType, int input) {
      return isOnnx(node, opType) && input < node.input_size() && node.input(input) == all;
    };
    for (int i = 0; i < nodes.size(); ++i) {
      auto isCondition = [&](const NodeProto &node) {
        return reads(node, "IsNaN", 0) && node.output(0) == nodes[i].input(0);
      };
      if (reads(nodes[i], "Where", 2) && any_of(nodes, isCondition))
        return i;
    }
    return softmax;
  }

  ModelFile &file;
  const ExportedProgram &program;
  Report &report;
  Changes changes;
  std::set<std::string> calls; // with a rate
  llvm::StringSet<> whole;     // calls that have a Dropout
};

} // namespace

Changes attentionDropout(ModelFile &file, const Ledger &ledger, Report &report) {
  return isFromPyTorch(file) ? DropoutRestorer(file, ledger.program, report).run() : Changes();
}

} // namespace trainc::reader
