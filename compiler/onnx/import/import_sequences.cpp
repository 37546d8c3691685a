// SPDX-License-Identifier: Apache-2.0
//
// ONNX's operators of sequences: while a model is imported, a sequence is a list of values, so that
// programs have none.
#include "compiler/onnx/import/built_in.h"
#include "compiler/onnx/import/graph_importer.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace mlir;

namespace trainc::reader {

static const nn::OnnxRefusal unknownSplit({"SplitToSequence"},
                                          "input 1 that is not known when the model is compiled");
static const nn::OnnxRefusal unknownPosition({"SequenceAt", "SequenceErase"},
                                             "input 1 that is not known when the model is "
                                             "compiled"),
    unknownPlace({"SequenceInsert"}, "input 2 that is not known when the model is compiled");

bool Importer::splitToSequence(const GraphNode &node, nn::Builder &at) {
  Value x = tensorOf(*find(node.inputs[0]), at);
  ArrayRef<int64_t> shape = nn::tensorType(x).getShape();
  ImportedNode view(*this, node, at);
  FailureOr<int64_t> found = nn::axisOf(view, static_cast<int64_t>(shape.size()), 0);
  if (failed(found))
    return false;
  int64_t axis = *found;
  auto split = view.integers(1);
  bool hasSplit = view.hasInput(1);
  if (hasSplit && !split)
    return succeeded(view.refuseUnknown(1, unknownSplit.told("split sizes")));
  bool single = !hasSplit || nn::tensorType(view.input(1)).getRank() == 0;
  int64_t size = shape[axis], chunk = !hasSplit ? 1 : split->empty() ? 0 : (*split)[0];
  SmallVector<int64_t> sizes;
  if (single && chunk > 0)
    for (int64_t at = 0; at < size; at += chunk)
      sizes.push_back(std::min(chunk, size - at));
  else if (!single)
    sizes = *split;
  ImportedValue result;
  result.isSequence = true;
  SmallVector<int64_t> squeezed(shape);
  squeezed.erase(squeezed.begin() + axis);
  int64_t start = 0;
  for (int64_t length : sizes) {
    if (length <= 0 || length > size - start)
      return succeeded(fail(node, "split sizes are not positive or do not sum to " + Twine(size)));
    ImportedValue element;
    element.tensor = at.slice(x, axis, start, length);
    if (!hasSplit && !node.integer("keepdims", 1))
      element.tensor = at.reshape(element.tensor, squeezed);
    result.sequence.push_back(std::move(element));
    start += length;
  }
  if (start != size)
    return succeeded(fail(node, "split sizes do not sum to " + Twine(size)));
  return define(node, 0, std::move(result));
}

/// An input that must be a sequence, or a tensor, as the elements of sequences are; null where it
/// is the other, which is reported.
ImportedValue *Importer::inputOf(const GraphNode &node, unsigned input, bool isSequence) {
  ImportedValue *value = find(node.inputs[input]);
  if (value->isSequence == isSequence)
    return value;
  (void)fail(node, "its input " + Twine(input) +
                       (isSequence ? " is not a sequence" : " is a sequence, not a tensor"));
  return nullptr;
}

/// A position in a sequence of that size, or with `mayEnd` after it; negative ones count from the
/// end. Null after errors.
std::optional<int64_t> Importer::positionOf(ImportedNode &view, const GraphNode &node,
                                            unsigned input, int64_t size, bool mayEnd,
                                            const nn::OnnxRefusal &unknown) {
  auto position = view.integers(input);
  if (!position) {
    (void)view.refuseUnknown(input, unknown.told("position"));
    return std::nullopt;
  }
  if (position->size() != 1) {
    (void)fail(node, "its position is not a single number");
    return std::nullopt;
  }
  const int64_t index = (*position)[0];
  if (index < -size || index >= size + static_cast<int64_t>(mayEnd)) {
    (void)fail(node,
               "position " + Twine(index) + " is out of range for a sequence of " + Twine(size));
    return std::nullopt;
  }
  return index < 0 ? index + size : index;
}

/// Imports an operator on values that are parts of what the file has.
bool Importer::importPart(const GraphNode &of, const onnx::NodeProto &proto,
                          ArrayRef<std::string> inputs, const std::string &output) {
  constexpr int64_t kOpset = 11; // with axes as attributes
  GraphNode part = of;
  part.proto = &proto;
  part.opset = kOpset;
  part.inputs.assign(inputs.begin(), inputs.end());
  part.outputs = {output};
  part.partOf = &of;
  if (!importOperator(part))
    return false;
  followSizes(part);
  return true;
}

/// For a value that the file does not have.
std::string Importer::ownName(const GraphNode &node, const Twine &part) {
  std::string name = (node.key() + "/" + part).str();
  while (find(name))
    name += '_';
  return name;
}

bool Importer::concatSequence(const GraphNode &node, nn::Builder &at) {
  ImportedValue *sequence = inputOf(node, 0, /*isSequence=*/true);
  if (!sequence)
    return false;
  const std::vector<ImportedValue> &elements = sequence->sequence;
  if (elements.empty())
    return succeeded(fail(node, "its sequence is empty"));
  const int64_t axis = node.integer("axis", 0), stacks = node.integer("new_axis", 0);
  if (stacks != 0 && stacks != 1)
    return succeeded(report.error(ExitCode::unreadableModel, graph.subject(node),
                                  "new_axis is " + Twine(stacks) + ", which is neither 0 nor 1"));
  ImportedNode view(*this, node, at);
  for (const ImportedValue &element : ArrayRef(elements).take_front(stacks ? elements.size() : 1)) {
    auto type = element.tensor ? nn::tensorType(element.tensor) : element.constant.type();
    if (failed(nn::dimensionOf(view, axis, type.getRank() + stacks)))
      return false;
  }
  onnx::NodeProto unsqueeze, concat;
  unsqueeze.set_op_type("Unsqueeze");
  setIntegers(unsqueeze, "axes", axis);
  concat.set_op_type("Concat");
  setInteger(concat, "axis", axis);
  const std::string element = ownName(node, "element");
  std::vector<std::string> names;
  bool good = true;
  for (size_t i = 0; i < elements.size() && good; ++i) {
    names.push_back(ownName(node, Twine(i)));
    values[stacks ? element : names.back()] = elements[i];
    if (stacks)
      good = importPart(node, unsqueeze, {element}, names.back());
  }
  good = good && importPart(node, concat, names, node.outputs[0]);
  values.erase(element);
  for (const std::string &name : names)
    values.erase(name);
  return good;
}

/// SequenceAt, and what gives a sequence one element more or less.
bool Importer::importElement(const GraphNode &node, nn::Builder &at) {
  const bool inserts = node.opType() == "SequenceInsert", erases = node.opType() == "SequenceErase";
  ImportedNode view(*this, node, at);
  ImportedValue *sequence = inputOf(node, 0, /*isSequence=*/true);
  if (!sequence)
    return false;
  const auto size = static_cast<int64_t>(sequence->sequence.size());
  const unsigned input = inserts ? 2 : 1;
  int64_t index = inserts ? size : size - 1; // where none is given
  if (inserts && !inputOf(node, 1, /*isSequence=*/false))
    return false;
  if (erases && size == 0)
    return succeeded(fail(node, "its sequence is empty"));
  if (view.hasInput(input)) {
    auto given =
        positionOf(view, node, input, size, inserts, inserts ? unknownPlace : unknownPosition);
    if (!given)
      return false;
    index = *given;
  }
  if (!inserts && !erases) {
    ImportedValue element = sequence->sequence[index];
    element.followsBatch |= element.constant && find(node.inputs[1])->followsBatch;
    return define(node, 0, std::move(element));
  }
  ImportedValue element = inserts ? *find(node.inputs[1]) : ImportedValue();
  ImportedValue result = takenOf(node, 0);
  if (inserts)
    result.sequence.insert(result.sequence.begin() + index, std::move(element));
  else
    result.sequence.erase(result.sequence.begin() + index);
  return define(node, 0, std::move(result));
}

bool Importer::importOfSequences(const GraphNode &node, nn::Builder &at, bool &handled) {
  handled = true;
  StringRef opType = node.opType();
  if (opType == "SplitToSequence")
    return splitToSequence(node, at);
  if (opType == "ConcatFromSequence")
    return concatSequence(node, at);
  ImportedValue result;
  result.isSequence = true;
  if (opType == "SequenceEmpty")
    return define(node, 0, std::move(result));
  if (opType == "SequenceConstruct") {
    for (unsigned i = 0; i < node.inputs.size(); ++i) {
      ImportedValue *element = inputOf(node, i, /*isSequence=*/false);
      if (!element)
        return false;
      result.sequence.push_back(*element);
    }
    return define(node, 0, std::move(result));
  }
  if (opType == "Identity" && node.inputs.size() == 1 && find(node.inputs[0])->isSequence)
    return define(node, 0, takenOf(node, 0));
  if (opType == "SequenceLength") {
    ImportedValue *sequence = inputOf(node, 0, /*isSequence=*/true);
    if (!sequence)
      return false;
    const auto length = static_cast<int64_t>(sequence->sequence.size());
    ImportedValue number;
    number.constant =
        nn::Tensor::ofIntegers(RankedTensorType::get({}, builder.getIntegerType(64)), {length});
    return define(node, 0, std::move(number));
  }
  handled = is_contained({"SequenceInsert", "SequenceErase", "SequenceAt"}, opType);
  return !handled || importElement(node, at);
}

/// Whether nothing that is imported after the node reads the value.
bool Importer::isLastUse(const GraphNode &node, StringRef value) const {
  auto isLater = [&](const Use &use) {
    return use.node->index > node.index && (!needed || needed->count(use.node));
  };
  return none_of(graph.uses(value), isLater) && !graph.isOutput(value);
}

/// A sequence without a copy where nothing reads it any more: loops make long ones, element by
/// element.
ImportedValue Importer::takenOf(const GraphNode &node, unsigned input) {
  const std::string &name = node.inputs[input];
  return isLastUse(node, name) ? std::move(*find(name)) : *find(name);
}

/// What loops make of long sequences is as long in each iteration.
void Importer::dropSequences(const GraphNode &node) {
  for (const std::string &input : node.inputs)
    if (ImportedValue *value = input.empty() ? nullptr : find(input);
        value && value->isSequence && isLastUse(node, input))
      value->sequence = {};
}

/// Whether the result is, or has, elements of a sequence.
bool Importer::isMadeOfElements(const GraphNode &node) {
  return node.domain.empty() &&
         (node.opType() == "SequenceAt" || node.opType() == "ConcatFromSequence");
}

} // namespace trainc::reader
