// SPDX-License-Identifier: Apache-2.0
//
// Problem: PyTorch's TorchScript exporter, in inference mode, keeps one of all initializers with
// equal values and writes `Identity` nodes for the others: weights that merely start equal would
// train as one.
//
// Method: in files of other makers, and of PyTorch's other exporter, whose module copies a weight
// there, an `Identity` is what it says, one weight. A parameter that the module has twice reaches
// PyTorch's exporter once, so a copy under a module's name is another one, but for scripted
// modules: nodes there bear no module's path, and no copy is told. A copy under a name that the
// exporter invented (it had transposed a weight) is the same weight if the same module uses both,
// as a layer that is called twice does, and mostly not told where two modules do (module_calls.h).
// But where that is a copy of a parameter under its own name, which is not a weight or which the
// same module uses, it is what was computed from some parameter
// (-v, of zeros).
#include "compiler/onnx/graph/graph.h"
#include "compiler/onnx/graph/recurrent_layout.h"
#include "compiler/onnx/provenance/dynamo/exported_program.h"
#include "compiler/onnx/provenance/parameters.h"
#include "compiler/onnx/provenance/separation.h"
#include "compiler/onnx/provenance/torch_script/module_calls.h"
#include "dialects/nn/onnx/onnx_node.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace trainc::reader {

using onnx::NodeProto;

namespace {

class CopySeparator {
public:
  CopySeparator(ModelFile &file, Separation &separation, Report &report)
      : file(file), separation(separation), report(report) {
    for (int i = 0; i < file.graph().initializer_size(); ++i)
      initializers[file.graph().initializer(i).name()] = i;
    for (const NodeProto &node : file.graph().node()) {
      if (isOnnx(node, "Identity") && node.input_size() == 1 && node.output_size() == 1)
        sources[node.output(0)] = node.input(0);
      for (const std::string &input : node.input())
        users[input].push_back(&node);
    }
    bool hasPaths = false, hasModules = false;
    for (const NodeProto &node : file.graph().node())
      if (std::optional<std::string> path = modulePath(node.name())) {
        hasPaths = true;
        hasModules |= !path->empty();
        for (const std::string &input : node.input())
          if (isInitializer(input))
            calls.addUse(*path, input);
      }
    separation.tellsNoModules = hasPaths && !hasModules;
  }

  bool run() {
    auto &nodes = *file.editableGraph().mutable_node();
    std::vector<int> separated;
    for (int i = 0; i < nodes.size(); ++i)
      if (isCopy(nodes[i]) && separate(nodes[i]))
        separated.push_back(i);
    for (int index : llvm::reverse(separated))
      nodes.DeleteSubrange(index, 1);
    if (!computed.empty())
      (void)report.refuse(
          Finding::computedByExporter, file.path(),
          "the exporter wrote parameters in the place of equal values that it had "
          "computed, and the file does not tell from what: " +
              join(computed, ", "),
          "trainc.export; or torch.onnx.export(..., dynamo=False, do_constant_folding=False)");
    return computed.empty();
  }

private:
  bool isCopy(const NodeProto &node) const {
    if (!isOnnx(node, "Identity") || node.input_size() != 1 || node.output_size() != 1)
      return false;
    auto found = initializers.find(node.input(0));
    if (found == initializers.end())
      return false;
    const TensorBytes &values = file.initializer(found->second);
    bool isMask = looksLikeMask(values) && !isUsedAs(node.output(0), values.shape, isFactor);
    return isFloat(values.dataType) && !isMask && !isOutput(node.output(0));
  }

  bool isOutput(const std::string &name) const {
    return any_of(file.graph().output(), [&](const auto &one) { return one.name() == name; });
  }

  // Also a copy of one.
  bool isInitializer(StringRef name) const {
    auto copy = sources.find(name);
    return initializers.count(copy == sources.end() ? name : StringRef(copy->second)) != 0;
  }

  // Of what uses a value, beside copies of it.
  std::vector<WeightUse> usesOf(const std::string &value) const {
    std::vector<WeightUse> uses;
    auto found = users.find(value);
    if (found == users.end())
      return uses;
    for (const NodeProto *node : found->second)
      if (!isOnnx(*node, "Identity"))
        uses.push_back({modulePath(node->name()), isRecurrent(node->domain(), node->op_type())});
    return uses;
  }

  bool isUsedAs(const std::string &value, ArrayRef<int64_t> shape,
                bool (*fits)(nn::OnnxWeight)) const {
    auto found = users.find(value);
    return found != users.end() && any_of(found->second, [&](const NodeProto *node) {
             for (int i = 0; i < node->input_size(); ++i)
               if (node->input(i) == value &&
                   fits(nn::onnxWeight(node->domain(), node->op_type(), i, shape)))
                 return true;
             return false;
           });
  }

  bool separate(NodeProto &node) {
    const std::string source = node.input(0), copy = node.output(0);
    const TensorBytes &values = file.initializer(initializers.find(source)->second);
    if (isExporterName(copy)) {
      const std::vector<WeightUse> own = usesOf(copy);
      bool isWeight = own.empty() || isUsedAs(copy, values.shape, nn::isWeight); // none: in bodies
      std::vector<std::string> others{source}, mayBeOne;
      llvm::append_range(others, apart[source]);
      for (const std::string &other : others) {
        std::optional<bool> areOne = calls.areOneWeight(own, usesOf(other), values);
        bool isOfParameter = other == source && !isExporterName(source);
        if (isOfParameter && (!isWeight || areOne.value_or(false))) {
          computed.push_back("'" + source + "' for '" + copy + "'");
          return false;
        }
        if (!areOne)
          mayBeOne.push_back(other);
        else if (*areOne) { // one weight, used twice
          node.set_input(0, other);
          return false;
        }
      }
      if (!mayBeOne.empty() && !isWeight && !isUsedAs(source, values.shape, nn::isWeight))
        return false;
      for (const std::string &other : mayBeOne)
        separation.undecided.push_back({other, copy});
      apart[source].push_back(copy);
    } else if (separation.tellsNoModules && !isUniform(values))
      separation.undecided.push_back({source, copy});
    file.addInitializer(sharedCopy(values, copy));
    separation.origin[copy] = apartFrom(source);
    return true;
  }

  ModelFile &file;
  Separation &separation;
  Report &report;
  ModuleCalls calls;
  std::vector<std::string> computed;
  std::map<std::string, int, std::less<>> initializers;
  std::map<std::string, std::string, std::less<>> sources; // of copies, by their names
  std::map<std::string, std::vector<const NodeProto *>> users;
  std::map<std::string, std::vector<std::string>> apart; // copies under invented names, by source
};

} // namespace

bool isFromPyTorch(const ModelFile &file) { return file.model().producer_name() == "pytorch"; }

bool isOptimizedByOnnxRuntime(const ModelFile &file) {
  return any_of(file.model().opset_import(),
                [](const auto &set) { return set.domain() == "com.microsoft.nchwc"; });
}

bool separateCopies(ModelFile &file, Separation &separation, Report &report) {
  bool writesCopies = isFromPyTorch(file) && !separation.program.isRecorded();
  return !writesCopies || CopySeparator(file, separation, report).run();
}

} // namespace trainc::reader
