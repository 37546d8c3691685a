// SPDX-License-Identifier: Apache-2.0
//
// Problem: weights are not initializers alone. Some exporters (paddle2onnx, spox) and frozen
// modules of TorchScript write them as values of Constant nodes, light model-zoo files as
// ConstantOfShape, scripted modules in branches of an If. Parameters are initializers here.
//
// Method: the value of a Constant or ConstantOfShape that an operator learns becomes an initializer
// of the same name; in a body, one of the body, which liftBranchInitializers moves into the graph.
// Then the rule for initializers decides. What ConstantOfShape fills is a weight for one axis or
// two factors; else it is a state to begin with.
#include "compiler/onnx/parameters/claims.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <cstring>

using namespace llvm;

namespace trainc::reader {

using onnx::NodeProto;

namespace {

constexpr int64_t kLargest = int64_t{1} << 28; // elements; weights that say nothing

const onnx::TensorProto *tensorOf(const NodeProto &node) {
  for (const onnx::AttributeProto &attribute : node.attribute())
    if (attribute.name() == "value" && attribute.has_t())
      return &attribute.t();
  return nullptr;
}

/// The nodes of a graph by what they read and make.
class Nodes {
public:
  explicit Nodes(const onnx::GraphProto &graph) {
    for (const NodeProto &node : graph.node()) {
      for (int i = 0; i < node.input_size(); ++i)
        readers[node.input(i)].push_back(
            {node.domain(), node.op_type(), static_cast<unsigned>(i),
             node.output_size() ? StringRef(node.output(0)) : StringRef(),
             node.input_size() == 2 ? StringRef(node.input(1 - i)) : StringRef()});
      if (node.output_size() == 1)
        makers[node.output(0)] = &node;
    }
  }

  std::vector<Reader> readersOf(StringRef value) const { return readers.lookup(value); }

  bool isLearnt(const NodeProto &maker, ArrayRef<int64_t> shape) const {
    const nn::OnnxWeight weight =
        learntAs(maker.output(0), shape, [this](StringRef value) { return readersOf(value); }).as;
    const bool isState =
        !isOnnx(maker, "Constant") && shape.size() > 1 && weight == nn::OnnxWeight::bias;
    return nn::isWeight(weight) && !isState;
  }

  /// One number that is added to the products of a layer, or is the addend of a Gemm: also one that
  /// is spread before. The rule for initializers decides whether it is a bias.
  bool mayBeBias(StringRef value, bool isScalar, bool isSpreadOnce = false) const {
    return any_of(readersOf(value), [&](const Reader &reader) {
      const bool isSpread = !isSpreadOnce && !isScalar && reader.input == 0 &&
                            (reader.opType == "Expand" || reader.opType == "Tile");
      return reader.domain.empty() &&
             ((reader.opType == "Gemm" && reader.input == 2) ||
              (reader.opType == "Add" && !isScalar && isSumOfProducts(reader)) ||
              (isSpread && mayBeBias(reader.output, isScalar, true)));
    });
  }

  std::unique_ptr<TensorBytes> sizesAt(const ModelFile &file, const std::string &name) const {
    std::string why;
    if (const NodeProto *maker = makers.lookup(name); maker && isOnnx(*maker, "Constant")) {
      const onnx::TensorProto *tensor = tensorOf(*maker);
      return tensor ? file.tensorOfNode(*tensor, why) : nullptr;
    }
    const TensorBytes *sizes = file.find(name);
    return sizes ? sharedCopy(*sizes, name) : nullptr;
  }

private:
  bool isSumOfProducts(const Reader &sum) const {
    const NodeProto *maker = makers.lookup(sum.other);
    return maker && (isOnnx(*maker, "MatMul") || isOnnx(*maker, "Gemm") || isOnnx(*maker, "Conv"));
  }

  StringMap<std::vector<Reader>> readers;
  StringMap<const NodeProto *> makers;
};

class WeightLifter {
public:
  WeightLifter(ModelFile &file, Report &report)
      : file(file), report(report), ofPyTorch(isFromPyTorch(file)), nodes(file.graph()) {}

  Changes run() {
    for (const NodeProto &node : file.graph().node())
      if (std::unique_ptr<TensorBytes> values = valuesOf(node)) {
        if (values->count > kLargest) {
          warn(node, values->count);
          continue;
        }
        repeat(*values);
        values->name = node.output(0);
        changes.push_back({.tensor = std::move(values),
                           .origin = "the value of a " + node.op_type() + " node",
                           .removed = &node});
      }
    return std::move(changes);
  }

private:
  // Null for all other nodes, and for what cannot be read: the importer says why. Numbers of
  // PyTorch's modules are Constant nodes, too.
  std::unique_ptr<TensorBytes> valuesOf(const NodeProto &node) const {
    std::string why;
    std::unique_ptr<TensorBytes> values;
    if (node.output_size() != 1)
      return nullptr;
    if (isOnnx(node, "Constant") && node.attribute_size() == 1)
      values = file.tensorOfAttribute(node.attribute(0), why);
    else if (isOnnx(node, "ConstantOfShape") && node.input_size() == 1 && !ofPyTorch)
      values = filled(node);
    if (!values || !isFloat(values->dataType) || values->count == 0)
      return nullptr;
    const bool isScalar = values->shape.empty();
    const bool isBias =
        values->count == 1 && !ofPyTorch && nodes.mayBeBias(node.output(0), isScalar);
    const bool isTensor = isOnnx(node, "Constant") && values->count > 1 && !ofPyTorch;
    const bool isWeight =
        !isScalar && !(values->count == 1 && ofPyTorch) && nodes.isLearnt(node, values->shape);
    return isBias || isTensor || isWeight ? std::move(values) : nullptr;
  }

  std::unique_ptr<TensorBytes> filled(const NodeProto &node) const {
    std::string why;
    const onnx::TensorProto *tensor = tensorOf(node);
    std::unique_ptr<TensorBytes> values = tensor ? file.tensorOfNode(*tensor, why) : nullptr,
                                 shape = nodes.sizesAt(file, node.input(0));
    if (!values || values->count != 1 || !shape || shape->dataType != onnx::TensorProto::INT64)
      return nullptr;
    values->shape.clear();
    for (int64_t i = 0; i < shape->count; ++i) {
      int64_t size;
      std::memcpy(&size, shape->bytes.data() + i * sizeof(size), sizeof(size));
      if (size <= 0 || MulOverflow(values->count, size, values->count))
        return nullptr;
      values->shape.push_back(size);
    }
    return values;
  }

  /// The one element of ConstantOfShape as often as the tensor has elements.
  static void repeat(TensorBytes &values) {
    const size_t width = elementBytes(values.dataType), all = values.count * width;
    if (values.bytes.size() == all)
      return;
    const std::string one(values.bytes.data(), width);
    values.storage.clear();
    while (values.storage.size() < all)
      values.storage += one;
    values.bytes = {values.storage.data(), values.storage.size()};
  }

  void warn(const NodeProto &node, int64_t count) {
    report.warning(
        Finding::unrecordedRoles,
        Subject{file.path(), node.name().empty() ? node.output(0) : node.name(), node.op_type(), 0},
        "fills a weight of " + llvm::Twine(count) + " elements, more than " +
            llvm::Twine(kLargest) + ": it stays a constant and is not trained",
        "keep the weight as an initializer");
  }

  ModelFile &file;
  Report &report;
  const bool ofPyTorch;
  const Nodes nodes;
  Changes changes;
};

void liftInside(onnx::GraphProto &body, Ledger &ledger) {
  const Nodes nodes(body);
  for (int i = body.node_size() - 1; i >= 0; --i) {
    const NodeProto &node = body.node(i);
    const onnx::TensorProto *tensor = isOnnx(node, "Constant") ? tensorOf(node) : nullptr;
    if (!tensor || node.output_size() != 1 || !isFloat(tensor->data_type()))
      continue;
    const SmallVector<int64_t> shape(tensor->dims().begin(), tensor->dims().end());
    if (all_of(shape, [](int64_t size) { return size == 1; }) || !nodes.isLearnt(node, shape))
      continue;
    onnx::TensorProto &made = *body.add_initializer();
    made = *tensor;
    made.set_name(node.output(0));
    ledger.fromNodes.insert(made.name());
    body.mutable_node()->DeleteSubrange(i, 1);
  }
}

} // namespace

void liftWeightsOfBodies(onnx::GraphProto &graph, Ledger &ledger) {
  for (NodeProto &node : *graph.mutable_node())
    for (onnx::AttributeProto &attribute : *node.mutable_attribute())
      if (attribute.has_g()) {
        liftWeightsOfBodies(*attribute.mutable_g(), ledger);
        if (isOnnx(node, "If") || isOnnx(node, "Loop") || isOnnx(node, "Scan"))
          liftInside(*attribute.mutable_g(), ledger);
      }
}

Changes weightsInNodes(ModelFile &file, const Ledger &ledger, Report &report) {
  return ledger.program.isRecorded() ? Changes() : WeightLifter(file, report).run();
}

} // namespace trainc::reader
