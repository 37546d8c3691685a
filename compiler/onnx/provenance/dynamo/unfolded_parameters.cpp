// SPDX-License-Identifier: Apache-2.0
//
// Problem: PyTorch's default exporter computes what it can, also from parameters. Two such
// functions can be undone without a loss: 1 + weight, and a token that is spread over the batch.
//
// Method: the record says what an initializer was made from, and its values must agree. The
// parameter becomes an initializer, and a node computes the value again.
#include "compiler/onnx/graph/graph.h"
#include "compiler/onnx/provenance/parameters.h"
#include "compiler/onnx/provenance/separation.h"
#include "dialects/nn/onnx/onnx_node.h"
#include "llvm/ADT/STLExtras.h"
#include <cstring>

using namespace llvm;

namespace trainc::reader {

using nn::OnnxWeight;
using onnx::NodeProto;

namespace {

class Unfolder {
public:
  Unfolder(ModelFile &file, Separation &separation)
      : file(file), separation(separation), program(separation.program) {
    for (const auto &tensor : file.graph().initializer())
      names.insert(tensor.name());
  }

  void run() {
    for (int i = 0, count = file.graph().initializer_size(); i < count; ++i) {
      unfoldSum(i);
      unfoldExpansion(i);
    }
  }

private:
  /// The one parameter that an initializer was computed from; "" where there is not one.
  std::string originOf(StringRef name) const {
    std::string origin;
    for (const std::string &source : program.sourcesOf(name))
      if (program.isParameter(source)) {
        if (!origin.empty())
          return "";
        origin = source;
      }
    return origin;
  }

  // Beside the parameter: were there none, it would be added to itself.
  static bool isSummand(StringRef base) { return base == "val" || base == "scalar_tensor_default"; }

  // Scales such as Gemma's are stored as their distance from one. The exporter computes the sum;
  // the weight itself can be had back from it without a loss, and with it the module's decay.
  void unfoldSum(int index) {
    const TensorBytes &sum = file.initializer(index);
    std::string name = sum.name;
    const std::vector<std::string> sources = program.sourcesOf(name).vec();
    bool isSum =
        baseName(name) == "add" &&
        all_of(sources,
               [&](StringRef source) {
                 StringRef base = baseName(source);
                 return program.isParameter(source) || isSummand(base) || isRearrangement(base);
               }) &&
        any_of(sources, [&](StringRef source) {
          return !program.isParameter(source) && isSummand(baseName(source));
        });
    const std::string parameter = originOf(name);
    if (parameter.empty() || !isSum || names.contains(parameter) ||
        sum.dataType != onnx::TensorProto::FLOAT || !scalesOnly(name, sum.shape))
      return;
    bool reshaped = any_of(sources, [&](StringRef source) {
      return !program.isParameter(source) && isRearrangement(baseName(source));
    });
    const std::string own = parameter + (reshaped ? kReshaped : "");
    std::string differences;
    if (!subtractOne(sum, differences))
      return;
    separation.origin[own] = "the exporter computed 1 + it: apart again";
    auto weight = ownTensor(own, sum.dataType, sum.shape, std::move(differences));
    addSum(own, name);
    file.replaceInitializer(index, std::move(weight));
    if (reshaped)
      program.addSources(own, {parameter});
    else
      program.addKind(own, "PARAMETER");
  }

  bool scalesOnly(const std::string &name, ArrayRef<int64_t> shape) const {
    for (const NodeProto &node : file.graph().node())
      for (int i = 0; i < node.input_size(); ++i)
        if (node.input(i) == name &&
            nn::onnxWeight(node.domain(), node.op_type(), i, shape) != OnnxWeight::scale)
          return false;
    return true;
  }

  // False where one added to the differences does not give the sums back.
  static bool subtractOne(const TensorBytes &sum, std::string &storage) {
    storage.resize(sum.bytes.size());
    for (int64_t i = 0; i < sum.count; ++i) {
      float value, difference;
      std::memcpy(&value, sum.bytes.data() + i * sizeof(float), sizeof(float));
      difference = value - 1;
      if (1 + difference != value)
        return false;
      std::memcpy(storage.data() + i * sizeof(float), &difference, sizeof(float));
    }
    return true;
  }

  void addSum(const std::string &weight, const std::string &sum) {
    const std::string one = weight + ".one";
    const float number = 1;
    addConstant(one, onnx::TensorProto::FLOAT, {}, bytesOf(&number, 1), "of 1 + " + weight);
    addNode("Add", {weight, one}, sum);
  }

  template <typename Number> static std::string bytesOf(const Number *numbers, size_t count) {
    return {reinterpret_cast<const char *>(numbers), count * sizeof(Number)};
  }

  void addConstant(const std::string &name, int type, ArrayRef<int64_t> shape, std::string values,
                   const std::string &reason) {
    separation.origin[name] = reason;
    file.addInitializer(ownTensor(name, type, shape, std::move(values)));
  }

  // Before the first node that uses its output.
  void addNode(const char *opType, ArrayRef<std::string> inputs, const std::string &output) {
    const auto &nodes = file.graph().node();
    int user = 0;
    while (user < nodes.size() && !is_contained(nodes[user].input(), output))
      ++user;
    NodeProto node;
    node.set_op_type(opType);
    node.set_name(output);
    for (const std::string &input : inputs)
      node.add_input(input);
    node.add_output(output);
    insertNode(file.editableGraph(), std::move(node), user);
  }

  // A token that every sample begins with is spread over the batch, which the exporter computed:
  // what is the same along an axis is there once again. A parameter that starts as one number is
  // the same along its own axes, too. So is the row of a table that every token has, such as that
  // of the type of a text without a second one.
  void unfoldExpansion(int index) {
    const TensorBytes &spread = file.initializer(index);
    const std::string name = spread.name;
    ArrayRef<std::string> sources = program.sourcesOf(name);
    const bool isRow = isRepeatedRow(name);
    bool isSpread =
        isRow || (baseName(name) == "expand" && all_of(sources, [&](StringRef source) {
                    StringRef base = baseName(source);
                    return program.isParameter(source) || isNumber(base) || keepsOrder(base);
                  }));
    const std::string parameter = originOf(name), own = parameter + (isRow ? kRow : kReshaped);
    if (!isSpread || parameter.empty() || isUniform(spread) || !isFloat(spread.dataType))
      return;
    std::unique_ptr<TensorBytes> once = withoutRepetition(spread, own);
    if (!once || names.contains(parameter) || names.contains(own) || mayBeWritten(*once) ||
        (isRow && once->count != once->shape.back()))
      return;
    SmallVector<int64_t> sizes = spread.shape;
    separation.origin[own] = "the exporter spread it over an axis: apart again";
    addConstant(own + ".sizes", onnx::TensorProto::INT64, {static_cast<int64_t>(sizes.size())},
                bytesOf(sizes.data(), sizes.size()), "of the axes of " + name);
    addNode("Expand", {own, own + ".sizes"}, name);
    file.replaceInitializer(index, std::move(once));
    program.addSources(own, {parameter});
    names.insert(own);
  }

  // Rows that a lookup chose by a repeated number; nothing was computed of the table before.
  bool isRepeatedRow(const std::string &name) const {
    ArrayRef<std::string> sources = program.sourcesOf(name);
    auto isOfNumbers = [&](StringRef source) {
      StringRef base = baseName(source);
      return program.isParameter(source) || program.isBuffer(source) || isNumber(base) ||
             isRepetition(base) || isRearrangement(base) || isChoice(base) || isCast(base) ||
             base == "gather";
    };
    return baseName(name) == "embedding" && all_of(sources, isOfNumbers) &&
           any_of(sources,
                  [](StringRef source) {
                    StringRef base = baseName(source);
                    return isRepetition(base) || isFill(base);
                  }) &&
           none_of(sources, [](StringRef source) { return baseName(source) == "arange"; });
  }

  // With 1 for the leading axes along which all is the same; null where none is.
  static std::unique_ptr<TensorBytes> withoutRepetition(const TensorBytes &tensor,
                                                        const std::string &name) {
    SmallVector<int64_t> shape = tensor.shape;
    ArrayRef<char> bytes = tensor.bytes;
    for (int64_t &size : shape) {
      const size_t each = size > 0 ? bytes.size() / size : 0;
      for (int64_t i = 1; i < size; ++i)
        if (bytes.slice(i * each, each) != bytes.take_front(each))
          return shape == tensor.shape
                     ? nullptr
                     : ownTensor(name, tensor.dataType, shape, {bytes.data(), bytes.size()});
      bytes = bytes.take_front(each);
      size = 1;
    }
    return nullptr; // one number
  }

  ModelFile &file;
  Separation &separation;
  ExportedProgram &program;
  llvm::StringSet<> names; // of initializers
};

} // namespace

void unfoldParameters(ModelFile &file, Separation &separation) {
  if (separation.program.isRecorded())
    Unfolder(file, separation).run();
}

} // namespace trainc::reader
