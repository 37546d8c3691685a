// SPDX-License-Identifier: Apache-2.0
//
// A mark is the beginning of a description (`doc_string`), which attributes, tensors and values
// have.
#include "compiler/onnx/file/half_model.h"
#include "compiler/onnx/file/converted_tensors.h"

using namespace llvm;

namespace trainc::reader {

using onnx::TensorProto;

static constexpr int32_t kHalfTypes[] = {TensorProto::FLOAT16, TensorProto::BFLOAT16};

int32_t halfTypeNamed(StringRef name) {
  const bool isBrain = name.consume_front("b");
  if (name != "float16" && name != "f16" && name != "fp16")
    return 0;
  return isBrain ? TensorProto::BFLOAT16 : TensorProto::FLOAT16;
}

static std::string markOf(int32_t halfType) { return elementName(halfType) + " in the file;"; }

template <typename Described> static void mark(Described &described, int32_t halfType) {
  described.set_doc_string(markOf(halfType) + described.doc_string());
}

/// The type that the mark states, and the description without it; 0: there is no mark.
template <typename Described> static int32_t takeMark(Described &described) {
  for (int32_t type : kHalfTypes) {
    std::string text = described.doc_string(), begin = markOf(type);
    if (!StringRef(text).starts_with(begin))
      continue;
    text.erase(0, begin.size());
    text.empty() ? described.clear_doc_string() : described.set_doc_string(text);
    return type;
  }
  return 0;
}

template <typename Nodes>
static void forEachOf(Nodes &nodes, llvm::function_ref<void(onnx::NodeProto &)> visit) {
  for (onnx::NodeProto &node : nodes) {
    visit(node);
    for (onnx::AttributeProto &attribute : *node.mutable_attribute()) {
      if (attribute.has_g())
        forEachOf(*attribute.mutable_g()->mutable_node(), visit);
      for (onnx::GraphProto &inner : *attribute.mutable_graphs())
        forEachOf(*inner.mutable_node(), visit);
    }
  }
}

void forEachNode(onnx::ModelProto &model, llvm::function_ref<void(onnx::NodeProto &)> visit) {
  forEachOf(*model.mutable_graph()->mutable_node(), visit);
  for (onnx::FunctionProto &function : *model.mutable_functions())
    forEachOf(*function.mutable_node(), visit);
}

/// Attributes that hold an element type.
static bool isType(const onnx::AttributeProto &attribute) {
  return attribute.has_i() && is_contained({"to", "dtype", "stash_type", "softmax_precision"},
                                           StringRef(attribute.name()));
}

static onnx::TypeProto_Tensor *tensorTypeOf(onnx::TypeProto &type) {
  if (type.has_tensor_type())
    return type.mutable_tensor_type();
  if (type.has_sequence_type())
    return tensorTypeOf(*type.mutable_sequence_type()->mutable_elem_type());
  return type.has_optional_type() ? tensorTypeOf(*type.mutable_optional_type()->mutable_elem_type())
                                  : nullptr;
}

static int32_t halfTypeOf(const onnx::ValueInfoProto &value) {
  onnx::TypeProto type = value.type();
  const onnx::TypeProto_Tensor *tensor = tensorTypeOf(type);
  return tensor && isHalf(tensor->elem_type()) ? tensor->elem_type() : 0;
}

int32_t halfTypeOf(const onnx::ModelProto &model, const std::set<std::string> &onlyCast) {
  const onnx::GraphProto &graph = model.graph();
  for (const TensorProto &tensor : graph.initializer())
    if (isHalf(tensor.data_type()) && !onlyCast.count(tensor.name()))
      return tensor.data_type();
  for (const auto *values : {&graph.input(), &graph.output()})
    for (const onnx::ValueInfoProto &value : *values)
      if (int32_t type = halfTypeOf(value))
        return type;
  int32_t found = 0;
  auto look = [&](const onnx::NodeProto &node) {
    for (const onnx::AttributeProto &attribute : node.attribute())
      if (isOnnx(node, "Cast") && isType(attribute) && isHalf(static_cast<int32_t>(attribute.i())))
        found = static_cast<int32_t>(attribute.i());
      else if (attribute.has_t() && isHalf(attribute.t().data_type()) && node.output_size() == 1 &&
               !onlyCast.count(node.output(0)))
        found = attribute.t().data_type();
  };
  forEachNode(const_cast<onnx::ModelProto &>(model), look); // which does not change it
  return found;
}

static void forEachValue(onnx::GraphProto &graph,
                         llvm::function_ref<void(onnx::ValueInfoProto &)> visit) {
  for (auto *values : {graph.mutable_input(), graph.mutable_output(), graph.mutable_value_info()})
    for (onnx::ValueInfoProto &value : *values)
      visit(value);
  for (onnx::NodeProto &node : *graph.mutable_node())
    for (onnx::AttributeProto &attribute : *node.mutable_attribute()) {
      if (attribute.has_g())
        forEachValue(*attribute.mutable_g(), visit);
      for (onnx::GraphProto &inner : *attribute.mutable_graphs())
        forEachValue(inner, visit);
    }
}

void widenTypes(onnx::ModelProto &model) {
  forEachValue(*model.mutable_graph(), [](onnx::ValueInfoProto &value) {
    const int32_t type = halfTypeOf(value);
    if (!type)
      return;
    tensorTypeOf(*value.mutable_type())->set_elem_type(TensorProto::FLOAT);
    mark(value, type);
  });
  forEachNode(model, [](onnx::NodeProto &node) {
    for (onnx::AttributeProto &attribute : *node.mutable_attribute())
      if (isType(attribute) && isHalf(static_cast<int32_t>(attribute.i()))) {
        mark(attribute, static_cast<int32_t>(attribute.i()));
        attribute.set_i(TensorProto::FLOAT);
      }
  });
}

void markWidened(TensorProto &tensor, int32_t halfType) { mark(tensor, halfType); }

void takeMarks(onnx::ModelProto &model, bool narrows) {
  forEachValue(*model.mutable_graph(), [narrows](onnx::ValueInfoProto &value) {
    if (const int32_t type = takeMark(value); type && narrows)
      tensorTypeOf(*value.mutable_type())->set_elem_type(type);
  });
  auto narrow = [narrows](TensorProto &tensor) {
    const int32_t type = takeMark(tensor);
    if (!type || !narrows)
      return;
    tensor.set_raw_data(narrowedFloats(tensor.raw_data(), type));
    tensor.set_data_type(type);
  };
  forEachNode(model, [&](onnx::NodeProto &node) {
    for (onnx::AttributeProto &attribute : *node.mutable_attribute()) {
      if (attribute.has_t())
        narrow(*attribute.mutable_t());
      if (const int32_t type = takeMark(attribute); type && narrows)
        attribute.set_i(type);
    }
  });
  for (TensorProto &tensor : *model.mutable_graph()->mutable_initializer())
    narrow(tensor);
}

} // namespace trainc::reader
