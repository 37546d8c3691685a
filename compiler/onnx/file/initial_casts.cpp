// SPDX-License-Identifier: Apache-2.0
#include "compiler/onnx/file/initial_casts.h"
#include "compiler/onnx/file/converted_tensors.h"
#include <algorithm>
#include <map>

namespace trainc::reader {

using Names = std::map<std::string, std::string>;

// In branches and bodies, too, whose outputs may be the value itself.
static void renameUses(onnx::GraphProto &graph, const Names &renamed, bool isInner = false) {
  if (isInner)
    for (onnx::ValueInfoProto &output : *graph.mutable_output())
      if (auto found = renamed.find(output.name()); found != renamed.end())
        output.set_name(found->second);
  for (onnx::NodeProto &node : *graph.mutable_node()) {
    for (std::string &input : *node.mutable_input())
      if (auto found = renamed.find(input); found != renamed.end())
        input = found->second;
    for (onnx::AttributeProto &attribute : *node.mutable_attribute()) {
      if (attribute.has_g())
        renameUses(*attribute.mutable_g(), renamed, true);
      for (onnx::GraphProto &inner : *attribute.mutable_graphs())
        renameUses(inner, renamed, true);
    }
  }
}

static void addNames(const onnx::GraphProto &graph, std::set<std::string> &names) {
  for (const auto *values : {&graph.input(), &graph.output()})
    for (const onnx::ValueInfoProto &value : *values)
      names.insert(value.name());
  for (const onnx::TensorProto &tensor : graph.initializer())
    names.insert(tensor.name());
  for (const onnx::NodeProto &node : graph.node()) {
    names.insert(node.output().begin(), node.output().end());
    for (const onnx::AttributeProto &attribute : node.attribute()) {
      if (attribute.has_g())
        addNames(attribute.g(), names);
      for (const onnx::GraphProto &inner : attribute.graphs())
        addNames(inner, names);
    }
  }
}

void addCasts(onnx::GraphProto &graph, const std::set<std::string> &initializers,
              const std::set<std::string> &taken) {
  std::set<std::string> names = taken;
  addNames(graph, names);
  Names renamed;
  for (const std::string &name : initializers) {
    std::string wide = name + "_float32";
    while (!names.insert(wide).second)
      wide += "_";
    renamed[name] = wide;
  }
  renameUses(graph, renamed);
  auto &nodes = *graph.mutable_node();
  for (const auto &[name, wide] : renamed) {
    onnx::NodeProto &cast = *nodes.Add();
    cast.set_op_type("Cast");
    cast.set_name(wide);
    cast.add_input(name);
    cast.add_output(wide);
    setInteger(cast, "to", onnx::TensorProto::FLOAT);
  }
  std::rotate(nodes.pointer_begin(), nodes.pointer_end() - renamed.size(), nodes.pointer_end());
}

static bool isCastToFloat(const onnx::NodeProto &node) {
  return typeCastTo(node) == onnx::TensorProto::FLOAT && node.input_size() == 1 &&
         node.output_size() == 1 && !node.output(0).empty();
}

static std::set<std::string> namesOfFloats(const onnx::GraphProto &graph) {
  std::set<std::string> names;
  for (const onnx::TensorProto &tensor : graph.initializer())
    if (tensor.data_type() == onnx::TensorProto::FLOAT)
      names.insert(tensor.name());
  for (const onnx::NodeProto &node : graph.node())
    if (node.op_type() == "Constant" && node.output_size() == 1 && node.attribute_size() == 1 &&
        node.attribute(0).t().data_type() == onnx::TensorProto::FLOAT)
      names.insert(node.output(0));
  return names;
}

void removeCasts(onnx::GraphProto &graph) {
  const std::set<std::string> floats = namesOfFloats(graph);
  std::map<std::string, int> makers; // a name that two have is an error, which must stay
  for (const onnx::NodeProto &node : graph.node())
    for (const std::string &output : node.output())
      ++makers[output];
  for (const auto *values : {&graph.input(), &graph.output()})
    for (const onnx::ValueInfoProto &value : *values)
      ++makers[value.name()];
  for (const onnx::TensorProto &tensor : graph.initializer())
    ++makers[tensor.name()];
  for (onnx::ValueInfoProto &value : *graph.mutable_value_info())
    if (floats.count(value.name()) && value.type().has_tensor_type())
      value.mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
  Names renamed;
  auto &nodes = *graph.mutable_node();
  auto isTaken = [&](const onnx::NodeProto &node) {
    if (!isCastToFloat(node) || !floats.count(node.input(0)) || makers[node.output(0)] > 1)
      return false;
    renamed[node.output(0)] = node.input(0);
    return true;
  };
  nodes.erase(std::remove_if(nodes.begin(), nodes.end(), isTaken), nodes.end());
  if (!renamed.empty())
    renameUses(graph, renamed);
}

} // namespace trainc::reader
