// SPDX-License-Identifier: Apache-2.0
//
// Conversions of host tensors from the file's bytes and to attributes.
#include "compiler/onnx/host_tensor.h"
#include "llvm/ADT/STLExtras.h"
#include <cstring>

using namespace llvm;
using namespace mlir;

namespace trainc::reader {

using onnx::TensorProto;

int64_t elementCount(ArrayRef<int64_t> shape) {
  int64_t result = 1;
  for (int64_t size : shape)
    if (size < 0 || (size && result > INT64_MAX / size))
      return INT64_MAX;
    else
      result *= size;
  return result;
}

int64_t HostTensor::count() const { return elementCount(shape); }

std::shared_ptr<HostTensor> makeHostTensor(Element element, ArrayRef<int64_t> shape) {
  int64_t count = elementCount(shape);
  if (count > kLargestHostTensor)
    return nullptr;
  auto result = std::make_shared<HostTensor>();
  result->element = element;
  result->shape.assign(shape.begin(), shape.end());
  if (result->isReal())
    result->reals.resize(count);
  else
    result->integers.resize(count);
  return result;
}

Constant makeIntegers(ArrayRef<int64_t> values) {
  auto result = std::make_shared<HostTensor>();
  result->shape.push_back(values.size());
  result->integers.assign(values.begin(), values.end());
  return result;
}

Constant makeInteger(int64_t value) {
  auto result = std::make_shared<HostTensor>();
  result->integers.push_back(value);
  return result;
}

template <typename Source, typename Target>
static void copyAs(ArrayRef<char> bytes, std::vector<Target> &values) {
  for (size_t i = 0; i < values.size(); ++i) {
    Source value;
    std::memcpy(&value, bytes.data() + i * sizeof(Source), sizeof(Source));
    values[i] = static_cast<Target>(value);
  }
}

static void copyIntegers(const TensorBytes &source, std::vector<int64_t> &values) {
  switch (source.dataType) {
  case TensorProto::INT64:
  case TensorProto::UINT64:
    return copyAs<int64_t>(source.bytes, values);
  case TensorProto::INT32:
    return copyAs<int32_t>(source.bytes, values);
  case TensorProto::UINT32:
    return copyAs<uint32_t>(source.bytes, values);
  case TensorProto::INT16:
    return copyAs<int16_t>(source.bytes, values);
  case TensorProto::UINT16:
    return copyAs<uint16_t>(source.bytes, values);
  case TensorProto::INT8:
    return copyAs<int8_t>(source.bytes, values);
  default:
    return copyAs<uint8_t>(source.bytes, values);
  }
}

Constant hostTensor(const TensorBytes &bytes) {
  auto result = makeHostTensor(elementOf(bytes.dataType), bytes.shape);
  if (!result)
    return nullptr;
  if (result->element == Element::f32)
    copyAs<float>(bytes.bytes, result->reals);
  else if (result->element == Element::f64)
    copyAs<double>(bytes.bytes, result->reals);
  else
    copyIntegers(bytes, result->integers);
  if (result->element == Element::boolean)
    for (int64_t &value : result->integers)
      value = value != 0;
  return result;
}

Type elementType(MLIRContext &context, Element element) {
  switch (element) {
  case Element::f32:
    return Float32Type::get(&context);
  case Element::f64:
    return Float64Type::get(&context);
  case Element::boolean:
    return IntegerType::get(&context, 1);
  default:
    return IntegerType::get(&context, 64);
  }
}

// Equal values throughout become a splat: MLIR keeps attributes for good.
template <typename Value, typename Source>
static DenseElementsAttr denseOf(RankedTensorType type, const std::vector<Source> &values) {
  bool splat = !values.empty() && all_of(values, [&](const Source &value) {
    return std::memcmp(&value, &values[0], sizeof(Source)) == 0;
  });
  SmallVector<Value> converted;
  converted.reserve(splat ? 1 : values.size());
  for (const Source &value : ArrayRef<Source>(values).take_front(splat ? 1 : values.size()))
    converted.push_back(static_cast<Value>(value));
  return DenseElementsAttr::get(type, ArrayRef<Value>(converted));
}

DenseElementsAttr attributeOf(MLIRContext &context, const HostTensor &tensor) {
  auto type = RankedTensorType::get(tensor.shape, elementType(context, tensor.element));
  switch (tensor.element) {
  case Element::f32:
    return denseOf<float>(type, tensor.reals);
  case Element::f64:
    return denseOf<double>(type, tensor.reals);
  case Element::boolean:
    return denseOf<bool>(type, tensor.integers);
  default:
    return denseOf<int64_t>(type, tensor.integers);
  }
}

} // namespace trainc::reader
