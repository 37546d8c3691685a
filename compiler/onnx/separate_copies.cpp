// SPDX-License-Identifier: Apache-2.0
//
// Problem: PyTorch's TorchScript exporter, in inference mode, keeps one of all initializers with
// equal values and writes `Identity` nodes for the others: weights that merely start equal would
// train as one.
//
// Method: in files of other makers, and of PyTorch's other exporter, whose module copies a weight
// there, an `Identity` is what it says, one weight. A parameter that the
// module has twice reaches PyTorch's exporter once, so a copy under a module's name is another one.
// A copy under a name that the exporter invented (it had transposed a weight) is the same weight if
// the same module uses both, as a layer that is called twice does: nodes bear the path of their
// module. It is another one if the modules are copies of each other in all that bears a name, or if
// its values are such that code writes; else they may share one. But where that is a copy of a
// parameter under its own name, which is no weight or which the same module uses, it is what was
// computed from some parameter (-v, of zeros).
#include "compiler/onnx/exported_program.h"
#include "compiler/onnx/graph.h"
#include "compiler/onnx/module_calls.h"
#include "compiler/onnx/parameters.h"
#include "compiler/onnx/recurrent_layout.h"
#include "compiler/onnx/separation.h"
#include "dialects/nn/onnx_node.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <set>

using namespace llvm;

namespace trainc::reader {

using onnx::NodeProto;

namespace {

using Modules = std::set<std::string>;

class CopySeparator {
public:
  CopySeparator(ModelFile &file, Separation &separation, Report &report)
      : file(file), separation(separation), report(report) {
    for (int i = 0; i < file.graph().initializer_size(); ++i)
      initializers[file.graph().initializer(i).name()] = i;
    for (const NodeProto &node : file.graph().node())
      for (const std::string &input : node.input()) {
        users[input].push_back(&node);
        calls.addUse(moduleOf(node), input);
      }
    for (const NodeProto &node : file.graph().node())
      if (isCopy(node))
        sources[node.output(0)] = node.input(0);
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
      (void)report.error(ExitCode::unsupportedModel, file.path(),
                         "the exporter wrote parameters in the place of equal values that it had "
                         "computed, and the file does not tell from what: " +
                             join(computed, ", "),
                         "export again with torch.onnx.export(..., do_constant_folding=False)");
    if (undecided.empty())
      return computed.empty();
    return succeeded(
        report.error(ExitCode::unsupportedModel, file.path(),
                     "the exporter merged weights that are equal, and the file does not tell "
                     "whether the module has one or several: " +
                         join(undecided, ", "),
                     "export again with torch.onnx.export(..., do_constant_folding=False)"));
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

  static StringRef moduleOf(const NodeProto &node) {
    return StringRef(node.name()).rsplit('/').first;
  }

  // Of what uses a value, beside copies of it.
  Modules modulesUsing(const std::string &value) const {
    Modules modules;
    auto found = users.find(value);
    if (found == users.end())
      return modules;
    for (const NodeProto *node : found->second)
      if (StringRef name = node->name(); !isOnnx(*node, "Identity") && name.contains('/'))
        modules.insert(moduleOf(*node).str());
    return modules;
  }

  const TensorBytes *tensorOf(StringRef name) const {
    auto copy = sources.find(name);
    auto found = initializers.find(copy == sources.end() ? name : StringRef(copy->second));
    return found == initializers.end() ? nullptr : &file.initializer(found->second);
  }

  bool areCopies(const Modules &a, const Modules &b) const {
    auto tensors = [&](StringRef name) { return tensorOf(name); };
    return all_of(a, [&](const std::string &one) {
      return all_of(b,
                    [&](const std::string &other) { return calls.areCopies(one, other, tensors); });
    });
  }

  // Whether modules of these paths use one module; nullopt where the names do not tell.
  std::optional<bool> share(const Modules &a, const Modules &b) const {
    bool known = !a.empty() && !b.empty();
    for (const std::string &one : a)
      for (const std::string &other : b) {
        std::optional<bool> same = calls.areOne(one, other);
        if (same && *same)
          return true;
        known &= same.has_value();
      }
    return known ? std::optional(false) : std::nullopt;
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

  // What refuseSharedRecurrent decides.
  bool isOfRecurrent(const std::string &value) const {
    auto found = users.find(value);
    return found != users.end() && any_of(found->second, [](const NodeProto *node) {
             return isRecurrent(node->domain(), node->op_type());
           });
  }

  bool separate(NodeProto &node) {
    const std::string source = node.input(0), copy = node.output(0);
    const TensorBytes &values = file.initializer(initializers[source]);
    if (isExporterName(copy)) {
      Modules own = modulesUsing(copy), others = modulesUsing(source);
      std::optional<bool> shared = share(own, others);
      bool isWeight = isUsedAs(copy, values.shape, nn::isWeight);
      if (!isExporterName(source) && (!isWeight || (shared && *shared))) {
        computed.push_back("'" + source + "' for '" + copy + "'");
        return false;
      }
      bool isTold = shared && (*shared ? !isUniform(values)
                                       : mayBeWritten(values) || isOfRecurrent(copy) ||
                                             areCopies(own, others));
      for (size_t i = 0; isTold && !*shared && i < apart[source].size(); ++i) {
        std::optional<bool> again = share(own, modulesUsing(apart[source][i]));
        isTold = again.has_value();
        if (again && *again) {
          node.set_input(0, apart[source][i]);
          return false;
        }
      }
      if (!isTold && (isWeight || isUsedAs(source, values.shape, nn::isWeight)))
        undecided.push_back("'" + source + "' and '" + copy + "'");
      if (!isTold || *shared)
        return false; // one weight, used twice
      apart[source].push_back(copy);
    }
    file.addInitializer(sharedCopy(values, copy));
    separation.origin[copy] = apartFrom(source);
    return true;
  }

  ModelFile &file;
  Separation &separation;
  Report &report;
  ModuleCalls calls;
  std::vector<std::string> undecided, computed;
  std::map<std::string, int, std::less<>> initializers;
  std::map<std::string, std::string, std::less<>> sources; // of copies, by their names
  std::map<std::string, std::vector<const NodeProto *>> users;
  std::map<std::string, std::vector<std::string>> apart; // copies under invented names, by source
};

} // namespace

bool isFromPyTorch(const ModelFile &file) { return file.model().producer_name() == "pytorch"; }

bool separateCopies(ModelFile &file, Separation &separation, Report &report) {
  bool writesCopies = isFromPyTorch(file) && !ExportedProgram(file).isRecorded();
  return !writesCopies || CopySeparator(file, separation, report).run();
}

} // namespace trainc::reader
