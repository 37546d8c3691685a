// SPDX-License-Identifier: Apache-2.0
//
// The registry of ONNX importers, filled by static objects before main.
#include "dialects/nn/onnx/onnx_node.h"
#include "llvm/ADT/StringExtras.h"
#include <map>

using namespace mlir;

namespace trainc::nn {

using Key = std::pair<std::string, std::string>; // domain, operator

struct Entry {
  OnnxImporter importer;
  OnnxWeightRule weights;
  OnnxSupport support = {};
};

// A function's static: registrations of other files may run before this file's own statics.
static std::map<Key, std::map<int64_t, Entry>> &registry() {
  static std::map<Key, std::map<int64_t, Entry>> importers;
  return importers;
}

OnnxRegistration::OnnxRegistration(StringRef opType, int64_t since, OnnxImporter importer,
                                   OnnxWeightRule weights, StringRef domain) {
  Entry &entry = registry()[{domain.str(), opType.str()}][since];
  entry = {std::move(importer), std::move(weights), {}};
  support = &entry.support;
}

OnnxRegistration &OnnxRegistration::gradientOf(ArrayRef<unsigned> inputs) {
  support->gradient.emplace(inputs);
  return *this;
}

OnnxRegistration &OnnxRegistration::takes(StringRef attribute, ArrayRef<StringRef> words) {
  support->words.push_back({attribute, SmallVector<StringRef>(words)});
  return *this;
}

OnnxRegistration &OnnxRegistration::mustKnow(unsigned input, StringRef what) {
  support->known.push_back({input, what});
  return *this;
}

OnnxRegistration &OnnxRegistration::takesFloats() {
  support->floatsOnly = true;
  return *this;
}

OnnxRegistration &OnnxRegistration::means(std::string text) {
  support->meaning = std::move(text);
  return *this;
}

const OnnxSupport &onnxSupport(StringRef domain, StringRef opType) {
  static const OnnxSupport all;
  auto found = registry().find({domain.str(), opType.str()});
  return found == registry().end() ? all : found->second.rbegin()->second.support;
}

LogicalResult checkSupport(OnnxNode &node, const OnnxSupport &support) {
  for (const OnnxSupport::Words &words : support.words) {
    std::string word = node.string(words.attribute, words.allowed.front());
    if (!llvm::is_contained(words.allowed, word))
      return node.error(words.attribute + " '" + word + "' is not supported, only " +
                        llvm::join(ArrayRef(words.allowed).drop_back(), ", ") + " and " +
                        words.allowed.back());
  }
  for (const OnnxSupport::Known &known : support.known)
    if (node.hasInput(known.input) && !node.constant(known.input))
      return node.refuseUnknown(known.input, known.what);
  if (support.floatsOnly && !isa<FloatType>(tensorType(node.input(0)).getElementType()))
    return node.error("its operand is not of a float type", "insert a Cast before the node");
  return success();
}

OnnxWeight onnxWeight(StringRef domain, StringRef opType, unsigned input, ArrayRef<int64_t> shape) {
  auto found = registry().find({domain.str(), opType.str()});
  if (found == registry().end())
    return OnnxWeight::none;
  const OnnxWeightRule &rule = found->second.rbegin()->second.weights;
  return rule ? rule(input, shape) : OnnxWeight::none;
}

OnnxImporter findOnnxImporter(StringRef domain, StringRef opType, int64_t opset, int64_t *oldest) {
  if (oldest)
    *oldest = 0;
  auto found = registry().find({domain.str(), opType.str()});
  if (found == registry().end())
    return nullptr;
  const auto &versions = found->second;
  if (oldest)
    *oldest = versions.begin()->first;
  auto above = versions.upper_bound(opset);
  return above == versions.begin() ? nullptr : std::prev(above)->second.importer;
}

std::vector<std::string> listOnnxImporters() {
  std::vector<std::string> result;
  for (const auto &[key, versions] : registry())
    for (const auto &[since, entry] : versions)
      result.push_back(key.first + ":" + key.second + ":" + std::to_string(since));
  return result;
}

static LogicalResult refuseSeveral(OnnxNode &node, const llvm::Twine &what, int64_t count) {
  return node.error("its " + what + " has " + llvm::Twine(count) + " elements, expected one");
}

FailureOr<double> OnnxNode::knownNumber(unsigned input, const llvm::Twine &what) {
  Tensor value = constant(input);
  if (!value)
    return refuseUnknown(input, what);
  if (value.count() != 1)
    return refuseSeveral(*this, what, value.count());
  return value.real(0);
}

FailureOr<int64_t> OnnxNode::knownInteger(unsigned input, const llvm::Twine &what) {
  auto values = integers(input);
  if (!values)
    return refuseUnknown(input, what);
  if (values->size() != 1)
    return refuseSeveral(*this, what, static_cast<int64_t>(values->size()));
  return values->front();
}

std::optional<SmallVector<int64_t>> OnnxNode::integers(unsigned index) {
  Tensor value = constant(index);
  if (!value || !isa<IntegerType>(value.type().getElementType()))
    return std::nullopt;
  std::vector<int64_t> integers = value.integers();
  return SmallVector<int64_t>(integers.begin(), integers.end());
}

Value OnnxNode::integerLiteral(ArrayRef<int64_t> values, ArrayRef<int64_t> shape) {
  auto type = RankedTensorType::get(shape, builder().op().getI64Type());
  return literal(Tensor::ofIntegers(type, values));
}

FailureOr<int64_t> axisOf(OnnxNode &node, int64_t rank, int64_t otherwise) {
  return dimensionOf(node, node.integer("axis", otherwise), rank);
}

FailureOr<int64_t> dimensionOf(OnnxNode &node, int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank)
    return node.error("axis " + Twine(axis) + " is out of range for rank " + Twine(rank));
  return axis < 0 ? axis + rank : axis;
}

FailureOr<int64_t> countElements(OnnxNode &node, ArrayRef<int64_t> sizes) {
  if (auto count = elementCount(sizes))
    return *count;
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::interleaveComma(sizes, stream);
  if (llvm::any_of(sizes, [](int64_t size) { return size < 0; }))
    return node.error("makes a tensor of the sizes [" + text + "], of which one is negative");
  return node.error("makes a tensor of the sizes [" + text + "], above the largest, 2^40 elements");
}

} // namespace trainc::nn
