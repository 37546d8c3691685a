// SPDX-License-Identifier: Apache-2.0
//
// y = W x becomes y = W x + (alpha / r) B A x, by ONNX's MatMul, Mul and Add. A node is found by
// the weight that it reads: MatMulNBits itself, or a MatMul or Gemm behind DequantizeLinear,
// Transpose, Cast and Identity. Weakness: convolutions, and layers in a function's body, are
// refused.
#include "compiler/onnx/adapters_in_export.h"
#include "compiler/onnx/file/half_model.h"
#include "compiler/onnx/file/model_file.h"
#include "llvm/ADT/STLExtras.h"
#include <set>

using namespace llvm;
using namespace mlir;

namespace trainc {

using namespace reader;

namespace {

class NodeAdder {
public:
  NodeAdder(onnx::GraphProto &graph, const Model &model) : graph(graph), model(model) {
    for (const onnx::NodeProto &node : graph.node())
      names.insert(node.output().begin(), node.output().end());
    for (const onnx::TensorProto &tensor : graph.initializer())
      names.insert(tensor.name());
  }

  /// How many nodes it was put beside.
  size_t add(const AdapterEntry &adapter) {
    std::set<std::string> values{adapter.weight}; // that are the weight, or its transpose
    size_t added = 0;
    for (int i = 0; i < graph.node_size(); ++i) {
      const onnx::NodeProto &node = graph.node(i);
      const auto read = find_if(node.input(), [&](const auto &name) { return values.count(name); });
      if (read == node.input().end())
        continue;
      const StringRef type = node.op_type();
      if (is_contained({"DequantizeLinear", "Transpose", "Cast", "Identity"}, type)) {
        values.insert(node.output(0));
      } else if (is_contained({"MatMul", "Gemm", "MatMulNBits"}, type) && !turnsInput(node)) {
        i += addBehind(i, adapter, read == node.input().begin());
        ++added;
      }
    }
    return added;
  }

private:
  /// A Gemm's, which no MatMul does.
  static bool turnsInput(const onnx::NodeProto &node) {
    return any_of(node.attribute(), [](const onnx::AttributeProto &attribute) {
      return attribute.name() == "transA" && attribute.i() != 0;
    });
  }

  std::string fresh(const std::string &wanted) {
    std::string name = wanted;
    for (int i = 1; !names.insert(name).second; ++i)
      name = wanted + "_" + std::to_string(i);
    return name;
  }

  /// Returns how many nodes were added. `isLeft`: the layer is W x, not x W.
  int addBehind(int number, const AdapterEntry &adapter, bool isLeft) {
    onnx::NodeProto *layer = graph.mutable_node(number);
    const std::string x = layer->input(isLeft ? 1 : 0), y = layer->output(0),
                      own = fresh(y + ".base");
    layer->set_output(0, own);
    const std::string scale = factor(adapter, *layer);
    int at = number + 1;
    auto put = [&](const char *type, std::initializer_list<std::string> inputs,
                   const std::string &output) {
      onnx::NodeProto node;
      node.set_op_type(type);
      node.set_name(fresh(output + "_" + type));
      for (const std::string &input : inputs)
        node.add_input(input);
      node.add_output(output);
      insertNode(graph, std::move(node), at++);
      return output;
    };
    auto turned = [&](const std::string &matrix) {
      std::string name = put("Transpose", {matrix}, fresh(matrix + ".transposed"));
      onnx::AttributeProto &order = *graph.mutable_node(at - 1)->add_attribute();
      order.set_name("perm");
      order.set_type(onnx::AttributeProto::INTS);
      order.add_ints(1);
      order.add_ints(0);
      return name;
    };
    auto apply = [&](const std::string &input, const std::string &matrix, const char *end) {
      return isLeft ? put("MatMul", {matrix, input}, fresh(y + end))
                    : put("MatMul", {input, turned(matrix)}, fresh(y + end));
    };
    const std::string outer = apply(apply(x, adapter.a, ".lora_A"), adapter.b, ".lora_B");
    put("Add", {own, put("Mul", {outer, scale}, fresh(y + ".lora"))}, y);
    return at - number - 1;
  }

  /// An initializer of the number. A Gemm's alpha is that of the adapter, too.
  std::string factor(const AdapterEntry &adapter, const onnx::NodeProto &layer) {
    std::string name = fresh(adapter.a + ".factor");
    const auto a = find_if(model.parameters,
                           [&](const Parameter &parameter) { return parameter.name == adapter.a; });
    auto value = static_cast<float>(adapter.alpha / static_cast<double>(a->shape.front()));
    for (const onnx::AttributeProto &attribute : layer.attribute())
      if (attribute.name() == "alpha")
        value *= attribute.f();
    onnx::TensorProto &tensor = *graph.add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(onnx::TensorProto::FLOAT);
    tensor.set_raw_data(&value, sizeof value);
    if (model.file->exportsHalves())
      markWidened(tensor, model.file->halfType());
    return name;
  }

  onnx::GraphProto &graph;
  const Model &model;
  std::set<std::string> names;
};

} // namespace

LogicalResult addAdapterNodes(const Model &model, onnx::GraphProto &graph, Report &report) {
  NodeAdder adder(graph, model);
  for (const AdapterEntry &adapter : model.adapters)
    if (isBesideIntegers(model, adapter.weight) && adder.add(adapter) != adapter.layers)
      return report.error(
          ExitCode::unsupportedModel, model.file->path(),
          "the adapter of '" + adapter.weight +
              "', which has integers in the file, has no place in exports: beside "
              "them it stands with a MatMul, Gemm or MatMulNBits of the graph alone",
          "a --lora pattern without it");
  return success();
}

} // namespace trainc
