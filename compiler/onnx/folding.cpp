// SPDX-License-Identifier: Apache-2.0
//
// The registry of folding rules and what the rules share.
#include "compiler/onnx/folding.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>

using namespace llvm;

namespace trainc::reader {

static std::map<std::string, FoldRule> &rules() {
  static std::map<std::string, FoldRule> registry;
  return registry;
}

FoldRegistration::FoldRegistration(std::initializer_list<StringRef> opTypes, FoldRule rule) {
  for (StringRef opType : opTypes)
    rules()[opType.str()] = rule;
}

bool canFold(const GraphNode &node) {
  return node.domain.empty() && rules().count(node.proto->op_type());
}

Folded fold(const GraphNode &node, ArrayRef<Constant> inputs) {
  auto found = rules().find(node.proto->op_type());
  if (!node.domain.empty() || found == rules().end())
    return std::nullopt;
  return found->second({node, inputs});
}

std::optional<SmallVector<int64_t>> FoldNode::integers(unsigned index, StringRef attribute) const {
  if (!has(index))
    return node.integers(attribute);
  if (input(index).isReal())
    return std::nullopt;
  const auto &values = input(index).integers;
  return SmallVector<int64_t>(values.begin(), values.end());
}

std::optional<SmallVector<int64_t>> broadcastShape(ArrayRef<int64_t> a, ArrayRef<int64_t> b) {
  SmallVector<int64_t> result(std::max(a.size(), b.size()), 1);
  for (ArrayRef<int64_t> shape : {a, b})
    for (size_t i = 0; i < shape.size(); ++i) {
      int64_t &size = result[result.size() - shape.size() + i];
      if (size == 1)
        size = shape[i];
      else if (shape[i] != 1 && shape[i] != size)
        return std::nullopt;
    }
  return result;
}

SmallVector<int64_t> stridesOf(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;)
    strides[i - 1] = strides[i] * shape[i];
  return strides;
}

Constant gatherStrided(const HostTensor &source, ArrayRef<int64_t> shape, int64_t offset,
                       ArrayRef<int64_t> strides) {
  auto result = makeHostTensor(source.element, shape);
  if (!result)
    return nullptr;
  SmallVector<int64_t> index(shape.size(), 0);
  int64_t count = result->count(), at = offset;
  for (int64_t i = 0; i < count; ++i) {
    if (source.isReal())
      result->reals[i] = source.reals[at];
    else
      result->integers[i] = source.integers[at];
    for (size_t d = shape.size(); d-- > 0;) { // the next index, like an odometer
      at += strides[d];
      if (++index[d] < shape[d])
        break;
      at -= strides[d] * shape[d];
      index[d] = 0;
    }
  }
  return result;
}

Constant broadcastConstant(const Constant &source, ArrayRef<int64_t> shape) {
  if (ArrayRef<int64_t>(source->shape) == shape)
    return source;
  SmallVector<int64_t> own = stridesOf(source->shape), strides(shape.size(), 0);
  size_t lead = shape.size() - source->shape.size();
  for (size_t i = 0; i < source->shape.size(); ++i)
    strides[lead + i] = source->shape[i] == 1 ? 0 : own[i];
  return gatherStrided(*source, shape, 0, strides);
}

std::optional<int64_t> normalAxis(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank)
    return std::nullopt;
  return axis < 0 ? axis + rank : axis;
}

Constant reshaped(const HostTensor &source, ArrayRef<int64_t> shape) {
  auto result = std::make_shared<HostTensor>(source);
  result->shape.assign(shape.begin(), shape.end());
  return result;
}

Constant converted(const HostTensor &source, Element element) {
  auto result = makeHostTensor(element, source.shape);
  if (!result)
    return nullptr;
  for (int64_t i = 0, count = result->count(); i < count; ++i) {
    if (result->isReal()) {
      result->setReal(i, source.real(i));
      continue;
    }
    double real = source.isReal() ? source.reals[i] : 0;
    int64_t value = !source.isReal()                                 ? source.integers[i]
                    : !std::isfinite(real) || std::fabs(real) > 9e18 ? INT64_MIN // as x86 does
                                                                     : static_cast<int64_t>(real);
    if (element == Element::boolean)
      value = source.isReal() ? real != 0 : value != 0;
    result->integers[i] = value;
  }
  return result;
}

} // namespace trainc::reader
