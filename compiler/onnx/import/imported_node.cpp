// SPDX-License-Identifier: Apache-2.0
//
// What an importer of one operator sees of its node.
#include "compiler/onnx/import/graph_importer.h"
#include "compiler/onnx/parameters/ledger.h"
#include "dialects/nn/onnx/onnx_types.h"

using namespace llvm;
using namespace mlir;

namespace trainc::reader {

std::vector<std::pair<std::string, nn::AttributeKind>> ImportedNode::attributeKinds() const {
  std::vector<std::pair<std::string, nn::AttributeKind>> kinds;
  for (const onnx::AttributeProto &attribute : node.proto->attribute())
    kinds.emplace_back(attribute.name(), attribute.type() == onnx::AttributeProto::INT
                                             ? nn::AttributeKind::integer
                                         : attribute.type() == onnx::AttributeProto::FLOAT
                                             ? nn::AttributeKind::real
                                             : nn::AttributeKind::other);
  return kinds;
}

std::vector<InputType> ImportedNode::inputTypes() const {
  auto inWords = [](Type type) {
    std::string text;
    raw_string_ostream(text) << type;
    return type.isInteger(1) ? "bool" : text;
  };
  std::vector<InputType> types(node.inputs.size());
  for (auto [name, type] : zip(node.inputs, types)) {
    const ImportedValue *value = name.empty() ? nullptr : importer.find(name);
    if (value && value->constant)
      type = {inWords(value->constant.type().getElementType()), true};
    else if (value && value->tensor)
      type = {inWords(nn::tensorType(value->tensor).getElementType()), false};
  }
  return types;
}

bool ImportedNode::outputUsed(unsigned index) const {
  return index < node.outputs.size() && !node.outputs[index].empty() &&
         importer.isRead(node.outputs[index]);
}

LogicalResult ImportedNode::alignSecond() {
  const bool hasSlopes = node.opType() == "PRelu";
  const Declaration *declared = findDeclaration(node.opType(), node.opset);
  if (node.opset >= 7 || !node.domain.empty() || node.inputs.size() != 2 || !declared ||
      !(hasSlopes || StringRef(declared->attributes).contains("broadcast:")))
    return success();
  auto shapeOf = [&](unsigned index) {
    const ImportedValue &value = *importer.find(node.inputs[index]);
    return to_vector(value.constant ? value.constant.shape()
                                    : nn::tensorType(value.tensor).getShape());
  };
  SmallVector<int64_t> whole = shapeOf(0), part = shapeOf(1);
  const auto rank = static_cast<int64_t>(whole.size()), own = static_cast<int64_t>(part.size());
  if (part == whole || (hasSlopes && own != 1))
    return success();
  auto differ = [&](const Twine &why, const Twine &advice) {
    return error("its operands have the shapes " + shapeText(whole) + " and " + shapeText(part) +
                     why,
                 advice);
  };
  if (!hasSlopes && node.integer("broadcast", 0) == 0)
    return differ(", which before operator set 7 must be equal where broadcast is 0",
                  "an export with a newer opset_version");
  if (all_of(part, [](int64_t size) { return size == 1; })) {
    secondShape.emplace();
    return success();
  }
  const int64_t axis = node.integer("axis", rank - own);
  const int64_t first = hasSlopes                            ? std::min<int64_t>(1, rank - own)
                        : node.attribute("axis") && axis < 0 ? axis + rank
                                                             : axis;
  bool fits = first >= 0 && first <= rank - own;
  for (int64_t i = 0; fits && i < own; ++i)
    fits = part[i] == 1 || part[i] == whole[first + i];
  if (!fits)
    return differ(", of which the second is no part of the first from dimension " + Twine(first) +
                      " on",
                  "an export with a newer opset_version");
  secondShape = part;
  secondShape->append(rank - own - first, 1);
  return success();
}

Value ImportedNode::input(unsigned index) {
  if (hasInput(index)) {
    ImportedValue &value = *importer.find(node.inputs[index]);
    auto aligned = [&](Value operand) {
      return index == 1 && secondShape ? nodeBuilder.reshape(operand, *secondShape) : operand;
    };
    if (!workplace)
      return aligned(
          importer.besideSamples(node, importer.tensorOf(value, nodeBuilder), nodeBuilder));
    Value &argument = known[index];
    if (!argument)
      argument = aligned(workplace->add(value.constant, nodeBuilder.location()));
    return argument;
  }
  // Importers of operators newer than the declarations may meet this; import goes on to report
  // more.
  (void)error("input " + Twine(index) + " is missing");
  return nodeBuilder.constant(0, RankedTensorType::get({}, nodeBuilder.op().getF32Type()));
}

nn::Tensor ImportedNode::constant(unsigned index) {
  if (!hasInput(index))
    return nn::Tensor();
  nn::Tensor known = importer.find(node.inputs[index])->constant;
  return index == 1 && known ? importer.shapeForBatch(node, known) : known;
}

Value ImportedNode::literal(const nn::Tensor &value) {
  return workplace ? workplace->add(value, nodeBuilder.location())
                   : nodeBuilder.constant(value.attribute());
}

std::optional<SmallVector<double>> ImportedNode::reals(StringRef name) const {
  const onnx::AttributeProto *found = node.attribute(name);
  if (!found)
    return std::nullopt;
  return SmallVector<double>(found->floats().begin(), found->floats().end());
}

std::optional<SmallVector<std::string>> ImportedNode::strings(StringRef name) const {
  const onnx::AttributeProto *found = node.attribute(name);
  if (!found)
    return std::nullopt;
  return SmallVector<std::string>(found->strings().begin(), found->strings().end());
}

nn::Tensor ImportedNode::tensor(StringRef name) const {
  const onnx::AttributeProto *found = node.attribute(name);
  FailureOr<nn::Tensor> tensor = found ? importer.tensorOfAttribute(node, *found) : nn::Tensor();
  refused |= failed(tensor);
  return tensor.value_or(nn::Tensor());
}

LogicalResult ImportedNode::error(const Twine &message, const Twine &advice) {
  refused = true;
  return importer.fail(node, message, advice);
}

LogicalResult ImportedNode::refuseUnknown(unsigned input, const Twine &what) {
  if (!hasInput(input)) // of an operator set that has an attribute instead
    return error("its " + what + " are not given");
  Unknown cause = importer.whyUnknown(node.inputs[input]);
  return error("its " + what + " must be known when the model is compiled, but " + cause.why,
               cause.advice);
}

nn::BatchNormMode ImportedNode::batchNormMode() const { return importer.modeOf(node); }

Value ImportedNode::buffer(unsigned index) {
  Value *newest = hasInput(index) ? importer.bufferOf(node.inputs[index]) : nullptr;
  return newest ? *newest : Value();
}

void ImportedNode::replaceBuffer(unsigned index, Value value) {
  *importer.bufferOf(node.inputs[index]) = value;
}

void ImportedNode::warning(StringRef name, const Twine &message, const Twine &advice) {
  importer.warn(node, name, message, advice);
}

} // namespace trainc::reader
