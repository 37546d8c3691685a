// SPDX-License-Identifier: Apache-2.0
//
// Problem: PyTorch's TorchScript exporter, in inference mode, keeps one of all initializers with
// equal values and writes `Identity` nodes for the others: weights that merely start equal would
// train as one.
//
// Method: a parameter that the module has twice reaches that exporter once, so a copy under a
// module's name is another parameter. A copy under a name that the exporter invented (it had
// transposed a weight) is the same weight if the same module uses both, as a layer that is called
// twice does, else another one: nodes bear the path of their module.
#include "compiler/onnx/graph.h"
#include "compiler/onnx/parameters.h"
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
      for (const std::string &input : node.input())
        users[input].push_back(&node);
  }

  bool run() {
    auto &nodes = *file.editableGraph().mutable_node();
    std::vector<int> separated;
    for (int i = 0; i < nodes.size(); ++i)
      if (isCopy(nodes[i]) && separate(nodes[i]))
        separated.push_back(i);
    for (int index : llvm::reverse(separated))
      nodes.DeleteSubrange(index, 1);
    if (undecided.empty())
      return true;
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
    return isFloat(values.dataType) && !looksLikeMask(values) && !isOutput(node.output(0));
  }

  bool isOutput(const std::string &name) const {
    return any_of(file.graph().output(), [&](const auto &one) { return one.name() == name; });
  }

  // Of what uses a value, beside copies of it.
  Modules modulesUsing(const std::string &value) const {
    Modules modules;
    auto found = users.find(value);
    if (found == users.end())
      return modules;
    for (const NodeProto *node : found->second)
      if (StringRef name = node->name(); !isOnnx(*node, "Identity") && name.contains('/'))
        modules.insert(name.rsplit('/').first.str());
    return modules;
  }

  static bool share(const Modules &a, const Modules &b) {
    return any_of(a, [&](const std::string &one) { return b.count(one); });
  }

  bool isWeight(const std::string &value, ArrayRef<int64_t> shape) const {
    auto found = users.find(value);
    return found != users.end() && any_of(found->second, [&](const NodeProto *node) {
             for (int i = 0; i < node->input_size(); ++i)
               if (node->input(i) == value &&
                   nn::isWeight(nn::onnxWeight(node->domain(), node->op_type(), i, shape)))
                 return true;
             return false;
           });
  }

  bool separate(NodeProto &node) {
    const std::string source = node.input(0), copy = node.output(0);
    const TensorBytes &values = file.initializer(initializers[source]);
    if (isExporterName(copy)) {
      Modules own = modulesUsing(copy);
      bool shared = share(own, modulesUsing(source));
      if (isWeight(copy, values.shape) && (own.empty() || (shared && isUniform(values))))
        undecided.push_back("'" + source + "' and '" + copy + "'");
      if (own.empty() || shared)
        return false; // one weight, used twice
      for (const std::string &earlier : apart[source])
        if (share(own, modulesUsing(earlier))) {
          node.set_input(0, earlier);
          return false;
        }
      apart[source].push_back(copy);
    }
    file.addInitializer(sharedCopy(values, copy));
    separation.origin[copy] = apartFrom(source);
    return true;
  }

  ModelFile &file;
  Separation &separation;
  Report &report;
  std::vector<std::string> undecided;
  std::map<std::string, int> initializers;
  std::map<std::string, std::vector<const NodeProto *>> users;
  std::map<std::string, std::vector<std::string>> apart; // copies under invented names, by source
};

} // namespace

bool separateCopies(ModelFile &file, Separation &separation, Report &report) {
  return CopySeparator(file, separation, report).run();
}

} // namespace trainc::reader
