// SPDX-License-Identifier: Apache-2.0
//
// Problem: PyTorch's default exporter computes what it can, also from parameters. Three such
// functions can be undone without a loss: 1 + weight, as Gemma's norms have it; a token that is
// spread over the batch; the row of a table that every token has, such as that of a text's type.
//
// Method: the record says what an initializer was made from, and its values must agree. The
// parameter becomes an initializer, and a node computes the value again.
#include "compiler/onnx/parameters/claims.h"
#include "llvm/ADT/STLExtras.h"
#include <cstring>

using namespace llvm;

namespace trainc::reader {

using onnx::NodeProto;

namespace {

class Unfolder {
public:
  Unfolder(const ModelFile &file, const ExportedProgram &program) : file(file), program(program) {
    for (const auto &tensor : file.graph().initializer())
      names.insert(tensor.name());
  }

  Changes run() {
    for (int i = 0, count = file.graph().initializer_size(); i < count; ++i) {
      std::vector<std::string> parameters, others;
      for (const std::string &source : program.sourcesOf(file.graph().initializer(i).name()))
        (program.isParameter(source) ? parameters : others).push_back(source);
      if (parameters.size() != 1 || names.contains(parameters[0]))
        continue;
      unfoldSum(i, parameters[0], others);
      unfoldExpansion(i, parameters[0], others);
    }
    return std::move(changes);
  }

private:
  // Beside the parameter: were there none, it would be added to itself.
  static bool isSummand(StringRef value) {
    return baseName(value) == "val" || baseName(value) == "scalar_tensor_default";
  }

  // The weight can be had back from the sum, and with it the module's decay.
  void unfoldSum(int number, const std::string &parameter, ArrayRef<std::string> others) {
    const TensorBytes &sum = file.initializer(number);
    std::string differences;
    const bool isSum = baseName(sum.name) == "add" && any_of(others, isSummand) &&
                       all_of(others, [](StringRef source) {
                         return isSummand(source) || isMadeBy(source, kRearranges);
                       });
    if (!isSum || sum.dataType != onnx::TensorProto::FLOAT || !scalesOnly(sum) ||
        !subtractOne(sum, differences))
      return;
    const bool isReshaped =
        any_of(others, [](StringRef source) { return isMadeBy(source, kRearranges); });
    const std::string own = parameter + (isReshaped ? kReshaped : "");
    if (!names.insert(own).second)
      return;
    const float one = 1;
    addConstant(own + ".one", onnx::TensorProto::FLOAT, {}, bytesOf(&one, 1), "of 1 + " + own);
    changes.push_back({.tensor = ownTensor(own, sum.dataType, sum.shape, std::move(differences)),
                       .replaces = number,
                       .origin = "the exporter computed 1 + it: apart again",
                       .node = node("Add", {own, own + ".one"}, sum.name)});
    if (isReshaped)
      changes.back().sources = {parameter};
    else
      changes.back().kind = "PARAMETER";
  }

  bool scalesOnly(const TensorBytes &tensor) const {
    for (const NodeProto &node : file.graph().node())
      for (int i = 0; i < node.input_size(); ++i)
        if (node.input(i) == tensor.name &&
            weightOf(node, i, tensor.shape) != nn::OnnxWeight::scale)
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

  // What is the same along an axis is there once again. A parameter that starts as one number is
  // the same along its own axes, too.
  void unfoldExpansion(int number, const std::string &parameter, ArrayRef<std::string> others) {
    const TensorBytes &spread = file.initializer(number);
    const bool isRow = isRepeatedRow(spread.name, others);
    const bool isSpread =
        isRow || (baseName(spread.name) == "expand" && all_of(others, [](StringRef source) {
                    return isMadeBy(source, kNumbers | kKeepsOrder);
                  }));
    const std::string own = parameter + (isRow ? kRow : kReshaped);
    if (!isSpread || !isFloat(spread.dataType) || isUniform(spread))
      return;
    std::unique_ptr<TensorBytes> once = withoutRepetition(spread, own);
    if (!once || isUniform(*once) || (isRow && once->count != once->shape.back()) ||
        !names.insert(own).second)
      return;
    const SmallVector<int64_t> sizes = spread.shape;
    addConstant(own + ".sizes", onnx::TensorProto::INT64, {static_cast<int64_t>(sizes.size())},
                bytesOf(sizes.data(), sizes.size()), "of the axes of " + spread.name);
    changes.push_back({.tensor = std::move(once),
                       .replaces = number,
                       .origin = "the exporter spread it over an axis: apart again",
                       .sources = {parameter},
                       .node = node("Expand", {own, own + ".sizes"}, spread.name)});
  }

  // Rows that a lookup chose by a repeated number; nothing was computed of the table before.
  bool isRepeatedRow(const std::string &name, ArrayRef<std::string> others) const {
    return baseName(name) == "embedding" &&
           all_of(others,
                  [&](StringRef source) {
                    return program.isBuffer(source) || baseName(source) == "gather" ||
                           isMadeBy(source, kNumbers | kRepeats | kRearranges | kChooses | kCasts);
                  }) &&
           any_of(others, [](StringRef source) { return isMadeBy(source, kRepeats | kFills); }) &&
           none_of(others, [](StringRef source) { return baseName(source) == "arange"; });
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

  template <typename Number> static std::string bytesOf(const Number *numbers, size_t count) {
    return {reinterpret_cast<const char *>(numbers), count * sizeof(Number)};
  }

  void addConstant(const std::string &name, int type, ArrayRef<int64_t> shape, std::string values,
                   std::string reason) {
    changes.push_back(
        {.tensor = ownTensor(name, type, shape, std::move(values)), .origin = std::move(reason)});
  }

  static NodeProto node(const char *opType, ArrayRef<std::string> inputs,
                        const std::string &output) {
    NodeProto node;
    node.set_op_type(opType);
    node.set_name(output);
    for (const std::string &input : inputs)
      node.add_input(input);
    node.add_output(output);
    return node;
  }

  const ModelFile &file;
  const ExportedProgram &program;
  llvm::StringSet<> names; // of initializers
  Changes changes;
};

} // namespace

Changes unfoldedParameters(const ModelFile &file, const Ledger &ledger) {
  return ledger.program.isRecorded() ? Unfolder(file, ledger.program).run() : Changes();
}

} // namespace trainc::reader
