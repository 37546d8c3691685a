// SPDX-License-Identifier: Apache-2.0
//
// Problem: scaled_dot_product_attention(..., dropout_p) is a call with a dropout inside. Both
// exporters of PyTorch write the Dropout without its training mode, so that it drops nothing, and
// the default exporter's optimizer then takes it out.
//
// Method: a module passes a rate only where it drops. A Dropout with a rate and no mode is given
// the mode; where the recorded call has a rate and no Dropout is left, there is one again after
// the Softmax.
#include "compiler/onnx/graph/graph.h"
#include "compiler/onnx/provenance/separation.h"
#include "llvm/ADT/STLExtras.h"
#include <set>

using namespace llvm;

namespace trainc::reader {

using onnx::NodeProto;

namespace {

// scaled_dot_product_attention(query, key, value, mask, dropout_p, is_causal)
double rateOf(const ProgramCall &call) {
  double rate = 0;
  if (!call.is("aten.scaled_dot_product_attention") || call.arguments.size() < 5 ||
      StringRef(call.arguments[4]).getAsDouble(rate))
    return 0;
  return rate;
}

class DropoutRestorer {
public:
  DropoutRestorer(ModelFile &file, Separation &separation, Report &report)
      : file(file), separation(separation), program(separation.program), report(report) {}

  bool run() {
    for (NodeProto &node : *file.editableGraph().mutable_node()) {
      if (isOnnx(node, "Dropout") && node.input_size() == 2 && !node.input(1).empty())
        node.add_input(constant("dropout.training", onnx::TensorProto::BOOL, std::string(1, 1)));
      if (const ProgramCall *call = program.callOf(node); call && rateOf(*call) > 0)
        calls.insert(call->name);
      if (const ProgramCall *call = program.callOf(node); call && isOnnx(node, "Dropout"))
        whole.insert(call->name);
    }
    size_t before = report.size();
    for (const std::string &name : calls)
      if (!whole.contains(name))
        putBack(name);
    return report.size() == before;
  }

private:
  std::string constant(const std::string &name, int type, const std::string &bytes) {
    if (made.insert(name).second) {
      separation.origin[name] = "of the dropout inside of attention";
      file.addInitializer(ownTensor(name, type, {}, bytes));
    }
    return name;
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
    NodeProto &weights = guardOf(*softmax);
    const std::string kept = weights.output(0), all = kept + ".before_dropout";
    NodeProto dropout = *softmax; // and its module
    weights.set_output(0, all);
    dropout.set_op_type("Dropout");
    dropout.set_name(softmax->name() + ".dropout");
    dropout.clear_attribute();
    dropout.set_output(0, kept);
    dropout.clear_input();
    dropout.add_input(all);
    dropout.add_input(constant(kept + ".dropout_rate", onnx::TensorProto::FLOAT,
                               {reinterpret_cast<const char *>(&rate), sizeof(rate)}));
    dropout.add_input(constant("dropout.training", onnx::TensorProto::BOOL, std::string(1, 1)));
    auto isWeights = [&](const NodeProto &node) { return &node == &weights; };
    insertNode(file.editableGraph(), std::move(dropout),
               static_cast<int>(find_if(nodes, isWeights) - nodes.begin()) + 1);
  }

  /// What makes zeros of the weights where these are no numbers, as of rows that see no key; the
  /// softmax itself where nothing does. PyTorch drops after it.
  NodeProto &guardOf(NodeProto &softmax) {
    auto &nodes = *file.editableGraph().mutable_node();
    auto reads = [&](const NodeProto &node, StringRef opType, int input, StringRef value) {
      return isOnnx(node, opType) && input < node.input_size() && node.input(input) == value;
    };
    for (NodeProto &guard : nodes) {
      if (!reads(guard, "Where", 2, softmax.output(0)))
        continue;
      auto tests = [&](const NodeProto &node) {
        return reads(node, "IsNaN", 0, softmax.output(0)) && node.output(0) == guard.input(0);
      };
      if (any_of(nodes, tests))
        return guard;
    }
    return softmax;
  }

  ModelFile &file;
  Separation &separation;
  const ExportedProgram &program;
  Report &report;
  std::set<std::string> calls; // with a rate
  llvm::StringSet<> whole;     // calls that have a Dropout
  llvm::StringSet<> made;      // initializers
};

} // namespace

bool restoreDropout(ModelFile &file, Separation &separation, Report &report) {
  return !isFromPyTorch(file) || DropoutRestorer(file, separation, report).run();
}

} // namespace trainc::reader
