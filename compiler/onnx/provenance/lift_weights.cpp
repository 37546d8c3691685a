// SPDX-License-Identifier: Apache-2.0
//
// Problem: some exporters (paddle2onnx, spox) write weights as values of Constant nodes, and light
// model-zoo files as ConstantOfShape. PyTorch's TorchScript exporter does so for modules that were
// frozen; else it writes numbers of the module's code there. Parameters are initializers here.
//
// Method: a Constant of several floats becomes an initializer of the same name, and so does what
// ConstantOfShape fills where an operator learns it; then the rule for initializers decides. In a
// branch of an `If` what is learnt becomes one of the branch. In PyTorch's files only a Constant
// that an operator learns is lifted, and it stays untrained until --train-only chooses it.
#include "compiler/onnx/graph/graph.h"
#include "compiler/onnx/provenance/separation.h"
#include "dialects/nn/onnx/onnx_node.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <cstring>
#include <set>

using namespace llvm;

namespace trainc::reader {

using onnx::NodeProto;

namespace {

constexpr int64_t kLargest = int64_t{1} << 28; // elements; weights that say nothing

/// Which nodes of a graph use a value.
class Users {
public:
  explicit Users(const onnx::GraphProto &graph) {
    for (const NodeProto &node : graph.node())
      for (int i = 0; i < node.input_size(); ++i)
        users[node.input(i)].push_back({&node, i});
  }

  // By an operator, or by one after a transposition. What ConstantOfShape fills is a weight for
  // one axis or two factors; else it is a state to begin with.
  bool isLearnt(const NodeProto &maker, const std::string &value, ArrayRef<int64_t> shape) const {
    auto found = users.find(value);
    return found != users.end() && any_of(found->second, [&](const auto &user) {
             auto [node, index] = user;
             if (isOnnx(*node, "Transpose") && node->output_size() == 1 && shape.size() == 2)
               return isLearnt(maker, node->output(0), {shape[1], shape[0]});
             nn::OnnxWeight weight = nn::onnxWeight(node->domain(), node->op_type(), index, shape);
             bool isState = isOnnx(maker, "ConstantOfShape") && shape.size() > 1 &&
                            weight == nn::OnnxWeight::bias;
             return nn::isWeight(weight) && !isState;
           });
  }

  ArrayRef<std::pair<const NodeProto *, int>> of(const std::string &value) const {
    auto found = users.find(value);
    if (found == users.end())
      return {};
    return found->second;
  }

private:
  std::map<std::string, std::vector<std::pair<const NodeProto *, int>>> users;
};

const onnx::TensorProto *tensorOf(const NodeProto &node) {
  for (const onnx::AttributeProto &attribute : node.attribute())
    if (attribute.name() == "value" && attribute.has_t())
      return &attribute.t();
  return nullptr;
}

class WeightLifter {
public:
  WeightLifter(ModelFile &file, Separation &separation, Report &report)
      : file(file), separation(separation), report(report), ofPyTorch(isFromPyTorch(file)),
        users(file.graph()) {
    for (const NodeProto &node : file.graph().node())
      if (node.output_size() == 1)
        makers[node.output(0)] = &node;
    for (int i = 0; i < file.graph().initializer_size(); ++i)
      initializers[file.graph().initializer(i).name()] = i;
  }

  void run() {
    for (const auto &[name, index] : initializers)
      note(name, placeOf(name, file.initializer(index).shape));
    auto &nodes = *file.editableGraph().mutable_node();
    std::vector<int> lifted;
    for (int i = 0; i < nodes.size(); ++i) {
      std::unique_ptr<TensorBytes> values = valuesOf(nodes[i]);
      if (!values)
        continue;
      Place place = placeOf(nodes[i].output(0), values->shape);
      bool learnt =
          place == Place::bias || users.isLearnt(nodes[i], nodes[i].output(0), values->shape);
      if (place == Place::other && values->count == 1 &&
          mayBeBias(nodes[i].output(0), values->shape.empty()))
        place = Place::unclear;
      bool isNumber = values->count == 1 && place == Place::other;
      if (!learnt && (isNumber || !isOnnx(nodes[i], "Constant")))
        continue;
      if (ofPyTorch && (!learnt || values->count == 1 || !isOnnx(nodes[i], "Constant")))
        continue;
      if (values->count > kLargest) {
        report.warning(Finding::mayBeParameter,
                       Subject{file.path(),
                               nodes[i].name().empty() ? nodes[i].output(0) : nodes[i].name(),
                               nodes[i].op_type(), 0},
                       "fills a weight of " + llvm::Twine(values->count) + " elements, more than " +
                           llvm::Twine(kLargest) + ": it stays a constant and is not trained",
                       "keep the weight as an initializer");
        continue;
      }
      repeat(*values);
      values->name = nodes[i].output(0);
      separation.origin[values->name] = "the value of a " + nodes[i].op_type() + " node";
      note(values->name, place);
      if (!learnt || ofPyTorch)
        separation.unlearnt.insert(values->name);
      file.addInitializer(std::move(values));
      lifted.push_back(i);
    }
    for (int index : llvm::reverse(lifted))
      nodes.DeleteSubrange(index, 1);
  }

private:
  SmallVector<int64_t> shapeOf(const std::string &weight) const {
    if (auto found = initializers.find(weight); found != initializers.end())
      return file.initializer(found->second).shape;
    auto maker = makers.find(weight);
    const onnx::TensorProto *tensor = maker != makers.end() ? tensorOf(*maker->second) : nullptr;
    return tensor ? SmallVector<int64_t>(tensor->dims().begin(), tensor->dims().end())
                  : SmallVector<int64_t>();
  }

  /// What one element stands for.
  enum class Place { other, bias, unclear };

  // The weight of a layer with one output that a value is added to; "" for any other use.
  std::string layerBefore(const NodeProto &sum, const std::string &value) const {
    if (!isOnnx(sum, "Add") || sum.input_size() != 2)
      return "";
    auto maker = makers.find(sum.input(sum.input(0) == value));
    if (maker == makers.end() || maker->second->input_size() != 2)
      return "";
    const std::string &weight = maker->second->input(1);
    return outputsOf(*maker->second, shapeOf(weight)) == 1 ? weight : "";
  }

  // Only added to the products with one such weight: its bias. Where other products or uses have
  // the same number, it may be either.
  Place placeOf(const std::string &value, ArrayRef<int64_t> shape) const {
    std::set<std::string> weights;
    if (!shape.empty() && all_of(shape, [](int64_t size) { return size == 1; }))
      for (const auto &[node, index] : users.of(value))
        weights.insert(layerBefore(*node, value));
    bool isElsewhere = weights.erase("");
    if (weights.empty())
      return Place::other;
    return weights.size() == 1 && !isElsewhere ? Place::bias : Place::unclear;
  }

  // The addend of a Gemm, or one that is spread before it is added to products.
  bool mayBeBias(const std::string &value, bool isScalar) const {
    return any_of(users.of(value), [&](const auto &user) {
      auto [node, index] = user;
      if (isOnnx(*node, "Gemm") && index == 2)
        return true;
      bool isSpread = !isScalar && index == 0 && node->output_size() == 1 &&
                      (isOnnx(*node, "Expand") || isOnnx(*node, "Tile"));
      const std::string spread = isSpread ? node->output(0) : "";
      return isSpread && any_of(users.of(spread), [&](const auto &next) {
               auto [sum, place] = next;
               return isOnnx(*sum, "Gemm") ? place == 2 : isSumOfProducts(*sum, spread);
             });
    });
  }

  bool isSumOfProducts(const NodeProto &sum, const std::string &value) const {
    if (!isOnnx(sum, "Add") || sum.input_size() != 2)
      return false;
    auto maker = makers.find(sum.input(sum.input(0) == value));
    return maker != makers.end() &&
           (isOnnx(*maker->second, "MatMul") || isOnnx(*maker->second, "Gemm") ||
            isOnnx(*maker->second, "Conv"));
  }

  void note(const std::string &value, Place place) {
    if (place == Place::bias)
      separation.biasesOfOne.insert(value);
    else if (place == Place::unclear)
      separation.unclearNumbers.insert(value);
  }

  // Floats, with axes or the addend of a Gemm; null for all other nodes, and for what cannot be
  // read: the importer says why.
  std::unique_ptr<TensorBytes> valuesOf(const NodeProto &node) const {
    const onnx::TensorProto *tensor = tensorOf(node);
    std::string why;
    std::unique_ptr<TensorBytes> values;
    if (node.output_size() != 1)
      return nullptr;
    if (isOnnx(node, "Constant"))
      values =
          node.attribute_size() == 1 ? file.tensorOfAttribute(node.attribute(0), why) : nullptr;
    else if (tensor && isOnnx(node, "ConstantOfShape") && node.input_size() == 1)
      values = filled(*tensor, node.input(0));
    bool hasElements = values && isFloat(values->dataType) && values->count > 0;
    bool isNumber = hasElements && values->shape.empty();
    return hasElements && (!isNumber || mayBeBias(node.output(0), /*isScalar=*/true))
               ? std::move(values)
               : nullptr;
  }

  std::unique_ptr<TensorBytes> filled(const onnx::TensorProto &tensor,
                                      const std::string &shapeName) const {
    std::string why;
    std::unique_ptr<TensorBytes> values = file.tensorOfNode(tensor, why), node;
    const TensorBytes *shape = nullptr;
    if (auto found = initializers.find(shapeName); found != initializers.end())
      shape = &file.initializer(found->second);
    else if (auto maker = makers.find(shapeName);
             maker != makers.end() && isOnnx(*maker->second, "Constant"))
      if (const onnx::TensorProto *tensor = tensorOf(*maker->second))
        shape = (node = file.tensorOfNode(*tensor, why)).get();
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

  /// Its one element, of ConstantOfShape, as often as it has elements.
  static void repeat(TensorBytes &values) {
    size_t width = elementBytes(values.dataType), all = values.count * width;
    if (values.bytes.size() == all)
      return;
    std::string one(values.bytes.data(), width);
    values.storage.clear();
    while (values.storage.size() < all)
      values.storage += one;
    values.bytes = {values.storage.data(), values.storage.size()};
  }

  ModelFile &file;
  Separation &separation;
  Report &report;
  const bool ofPyTorch;
  Users users;
  std::map<std::string, const NodeProto *> makers;
  std::map<std::string, int> initializers;
};

void liftInside(onnx::GraphProto &branch) {
  Users users(branch);
  auto &nodes = *branch.mutable_node();
  std::vector<int> lifted;
  for (int i = 0; i < nodes.size(); ++i) {
    const onnx::TensorProto *tensor = isOnnx(nodes[i], "Constant") ? tensorOf(nodes[i]) : nullptr;
    if (!tensor || nodes[i].output_size() != 1 || !isFloat(tensor->data_type()))
      continue;
    SmallVector<int64_t> shape(tensor->dims().begin(), tensor->dims().end());
    bool isNumber = all_of(shape, [](int64_t size) { return size == 1; });
    if (isNumber || !users.isLearnt(nodes[i], nodes[i].output(0), shape))
      continue;
    onnx::TensorProto &made = *branch.add_initializer();
    made = *tensor;
    made.set_name(nodes[i].output(0));
    lifted.push_back(i);
  }
  for (int index : llvm::reverse(lifted))
    nodes.DeleteSubrange(index, 1);
}

void liftInBranches(onnx::GraphProto &graph) {
  for (NodeProto &node : *graph.mutable_node())
    for (onnx::AttributeProto &attribute : *node.mutable_attribute())
      if (attribute.has_g()) {
        liftInBranches(*attribute.mutable_g());
        if (isOnnx(node, "If") || isOnnx(node, "Loop") || isOnnx(node, "Scan"))
          liftInside(*attribute.mutable_g());
      }
}

} // namespace

void liftWeightsOfBranches(ModelFile &file) {
  if (!isFromPyTorch(file))
    liftInBranches(file.editableGraph());
}

void liftWeights(ModelFile &file, Separation &separation, Report &report) {
  if (!separation.program.isRecorded())
    WeightLifter(file, separation, report).run();
}

} // namespace trainc::reader
