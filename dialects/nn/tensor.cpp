// SPDX-License-Identifier: Apache-2.0
//
// Storage of tensors, as the table of element types says that they lie in memory.
#include "dialects/nn/tensor.h"
#include "dialects/errors/internal_error.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include <cstring>

using namespace mlir;

namespace trainc::nn {

// Calls `function` with a zero of the C++ type that holds an element.
template <typename Function> static auto withElementType(Type type, Function function) {
  return withHostType(elementTypeOf(type).stored, function);
}

std::optional<int64_t> elementCount(ArrayRef<int64_t> shape) {
  int64_t nonzero = 1; // the product without zeros: what strides are made of
  for (int64_t size : shape) {
    if (size < 0 || size > kLargestTensor / nonzero)
      return std::nullopt;
    nonzero *= std::max<int64_t>(size, 1);
  }
  return llvm::is_contained(shape, 0) ? 0 : nonzero;
}

template <typename Element> static Element load(const char *from) {
  Element element;
  std::memcpy(&element, from, sizeof element);
  return element;
}

Tensor::Tensor(RankedTensorType type) : tensorType(type) {
  owned = std::make_shared<std::vector<char>>(std::max<int64_t>(1, count()) * width());
  bytes = owned->data();
}

Tensor Tensor::splat(RankedTensorType type, ArrayRef<char> element) {
  Tensor result;
  result.tensorType = type;
  result.owned = std::make_shared<std::vector<char>>(element.begin(), element.end());
  result.bytes = result.owned->data();
  result.onlyOne = true;
  return result;
}

Tensor Tensor::viewOf(RankedTensorType type, ArrayRef<char> bytes) {
  Tensor result;
  result.tensorType = type;
  result.bytes = bytes.data();
  return result;
}

Tensor Tensor::of(ElementsAttr elements) {
  auto type = cast<RankedTensorType>(elements.getType());
  auto dense = dyn_cast<DenseElementsAttr>(elements);
  if (!dense) {
    auto resource = dyn_cast<DenseResourceElementsAttr>(elements);
    AsmResourceBlob *blob = resource ? resource.getRawHandle().getBlob() : nullptr;
    if (!blob)
      internalError("a constant without its elements");
    Tensor result(type);
    ArrayRef<char> bytes = blob->getData();
    const bool packed = type.getElementType().isInteger(1); // bits
    for (int64_t i = 0, end = packed ? result.count() : 0; i < end; ++i)
      result.data()[i] = static_cast<char>((bytes[i / 8] >> (i % 8)) & 1);
    if (!packed)
      llvm::copy(bytes, result.data());
    return result;
  }
  if (type.getElementType().isInteger(1)) { // packed bits
    SmallVector<int64_t> values;
    for (bool value : dense.getValues<bool>()) {
      values.push_back(value);
      if (dense.isSplat())
        break;
    }
    char one = !values.empty() && values[0];
    return dense.isSplat() ? splat(type, one) : ofIntegers(type, values);
  }
  if (dense.isSplat())
    return splat(type, dense.getRawData());
  Tensor result(type);
  llvm::copy(dense.getRawData(), result.data());
  return result;
}

template <typename Value> static void store(ArrayRef<Value> values, Type element, char *data) {
  withElementType(element, [&](auto zero) {
    using Element = decltype(zero);
    for (size_t i = 0; i < values.size(); ++i) {
      auto converted = static_cast<Element>(values[i]);
      std::memcpy(data + i * sizeof(Element), &converted, sizeof(Element));
    }
  });
}

Tensor Tensor::ofReals(RankedTensorType type, ArrayRef<double> values) {
  Tensor result(type);
  store(values, type.getElementType(), result.data());
  return result;
}

Tensor Tensor::ofIntegers(RankedTensorType type, ArrayRef<int64_t> values) {
  Tensor result(type);
  store(values, type.getElementType(), result.data());
  return result;
}

double Tensor::real(int64_t index) const {
  return withElementType(tensorType.getElementType(), [&](auto zero) {
    return static_cast<double>(load<decltype(zero)>(at(index)));
  });
}

int64_t Tensor::integer(int64_t index) const {
  return withElementType(tensorType.getElementType(), [&](auto zero) {
    return static_cast<int64_t>(load<decltype(zero)>(at(index)));
  });
}

template <typename Value> static std::vector<Value> valuesOf(const Tensor &tensor) {
  std::vector<Value> values(tensor.count());
  withElementType(tensor.type().getElementType(), [&](auto zero) {
    const char *from = tensor.at(0);
    const size_t step = tensor.isSplat() ? 0 : sizeof zero;
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<Value>(load<decltype(zero)>(from + i * step));
  });
  return values;
}

std::vector<double> Tensor::reals() const { return valuesOf<double>(*this); }
std::vector<int64_t> Tensor::integers() const { return valuesOf<int64_t>(*this); }

Tensor Tensor::withShape(ArrayRef<int64_t> shape) const {
  Tensor result = *this;
  result.tensorType = tensorType.clone(shape);
  return result;
}

Tensor Tensor::moved(ArrayRef<int64_t> shape, int64_t offset, ArrayRef<int64_t> strides) const {
  if (isSplat())
    return withShape(shape);
  Tensor result(tensorType.clone(shape));
  int64_t total = result.count(), bytesEach = width(), from = offset;
  int64_t run = shape.empty() ? 1 : shape.back(), step = shape.empty() ? 1 : strides.back();
  SmallVector<int64_t> index(shape.size(), 0);
  for (int64_t to = 0; to < total; to += run) {
    if (step == 1)
      std::memcpy(result.data() + to * bytesEach, at(from), run * bytesEach);
    else
      for (int64_t i = 0; i < run; ++i)
        std::memcpy(result.data() + (to + i) * bytesEach, at(from + i * step), bytesEach);
    for (size_t d = shape.empty() ? 0 : shape.size() - 1; d-- > 0;) { // the next index
      from += strides[d];
      if (++index[d] < shape[d])
        break;
      from -= strides[d] * shape[d];
      index[d] = 0;
    }
  }
  return result;
}

DenseElementsAttr Tensor::attribute() const {
  int64_t each = width(), elements = count();
  bool equal =
      elements > 0 && (isSplat() || std::memcmp(bytes, bytes + each, (elements - 1) * each) == 0);
  ArrayRef<char> raw(bytes, (equal ? 1 : elements) * each);
  if (!tensorType.getElementType().isInteger(1))
    return DenseElementsAttr::getFromRawBuffer(tensorType, raw);
  SmallVector<bool> values(raw.begin(), raw.end());
  return DenseElementsAttr::get(tensorType, ArrayRef<bool>(values));
}

} // namespace trainc::nn
