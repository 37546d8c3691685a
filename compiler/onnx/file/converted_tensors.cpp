// SPDX-License-Identifier: Apache-2.0
#include "compiler/onnx/file/converted_tensors.h"
#include "runtime/files/conversion.h"
#include "runtime/kernels/narrow_float.h"
#include "llvm/ADT/STLExtras.h"
#include <cstring>
#include <optional>

using namespace llvm;

namespace trainc::reader {

using onnx::TensorProto;

bool isHalf(int32_t dataType) {
  return dataType == TensorProto::FLOAT16 || dataType == TensorProto::BFLOAT16;
}

int32_t typeCastTo(const onnx::NodeProto &node) {
  for (const onnx::AttributeProto &attribute : node.attribute())
    if (isOnnx(node, "Cast") && attribute.name() == "to")
      return static_cast<int32_t>(attribute.i());
  return TensorProto::UNDEFINED;
}

static void sortReaders(const onnx::GraphProto &graph, std::set<std::string> &cast,
                        std::set<std::string> &others) {
  for (const onnx::NodeProto &node : graph.node()) {
    (isFloat(typeCastTo(node)) ? cast : others).insert(node.input().begin(), node.input().end());
    for (const onnx::AttributeProto &attribute : node.attribute())
      if (attribute.has_g())
        sortReaders(attribute.g(), cast, others);
  }
  for (const onnx::ValueInfoProto &output : graph.output())
    others.insert(output.name());
}

std::set<std::string> namesOnlyCast(const onnx::GraphProto &graph) {
  std::set<std::string> cast, others;
  sortReaders(graph, cast, others);
  for (const onnx::ValueInfoProto &input : graph.input()) // it may be fed with other values
    others.insert(input.name());
  for (const std::string &name : others)
    cast.erase(name);
  return cast;
}

void widenHalves(TensorBytes &halves, int32_t halfType) {
  std::string floats(static_cast<size_t>(halves.count) * sizeof(float), '\0');
  convert(halfType == TensorProto::FLOAT16 ? file_type::f16 : file_type::bf16, halves.bytes.data(),
          data_type::f32, floats.data(), halves.count);
  halves.dataType = TensorProto::FLOAT;
  halves.storage = std::move(floats);
  halves.bytes = {halves.storage.data(), halves.storage.size()};
}

template <typename Half> static std::string narrowed(StringRef floats) {
  std::string halves(floats.size() / sizeof(float) * sizeof(Half), '\0');
  for (size_t i = 0; i * sizeof(float) < floats.size(); ++i) {
    float value;
    std::memcpy(&value, floats.data() + i * sizeof value, sizeof value);
    const Half half(value);
    std::memcpy(&halves[i * sizeof half], &half, sizeof half);
  }
  return halves;
}

std::string narrowedFloats(StringRef floats, int32_t halfType) {
  return halfType == TensorProto::FLOAT16 ? narrowed<float16>(floats) : narrowed<bfloat16>(floats);
}

/// Elements before each of the values, ascending; nothing where they are not places of the tensor.
static std::optional<std::vector<int64_t>> placesOf(const TensorBytes &indices,
                                                    ArrayRef<int64_t> shape, int64_t values) {
  const auto rank = static_cast<int64_t>(shape.size());
  const bool areLinear = indices.shape.size() == 1 && indices.count == values;
  const bool areTuples = indices.shape.size() == 2 && indices.shape[0] == values &&
                         indices.shape[1] == rank && rank > 0;
  if (indices.dataType != TensorProto::INT64 || !(areLinear || areTuples))
    return std::nullopt;
  auto index = [&](int64_t i) {
    int64_t number;
    std::memcpy(&number, indices.bytes.data() + i * sizeof number, sizeof number);
    return number;
  };
  int64_t elements = 1;
  for (int64_t size : shape)
    elements *= size;
  std::vector<int64_t> places;
  for (int64_t i = 0; i < values; ++i) {
    int64_t place = areLinear ? index(i) : 0;
    for (int64_t axis = 0; areTuples && axis < rank; ++axis) {
      const int64_t at = index(i * rank + axis);
      if (at < 0 || at >= shape[axis])
        return std::nullopt;
      place = place * shape[axis] + at;
    }
    if (place < 0 || place >= elements || (!places.empty() && place <= places.back()))
      return std::nullopt;
    places.push_back(place);
  }
  return places;
}

std::unique_ptr<TensorBytes> denseTensor(const onnx::SparseTensorProto &sparse, int64_t &bytesLeft,
                                         std::string &why) {
  std::unique_ptr<TensorBytes> values = tensorBytes(sparse.values(), why);
  if (!values)
    return nullptr;
  std::unique_ptr<TensorBytes> indices = tensorBytes(sparse.indices(), why);
  if (!indices) {
    why = "is sparse, and the tensor of its indices " + why;
    return nullptr;
  }
  const int64_t width = elementBytes(values->dataType);
  int64_t bytes = width;
  for (int64_t size : sparse.dims()) {
    if (size < 0 || (size > 0 && bytes > bytesLeft / size)) {
      why = "is sparse, and with the other ones would have more than 2 GiB when it is dense";
      return nullptr;
    }
    bytes *= size;
  }
  bytesLeft -= bytes;
  const std::vector<int64_t> shape(sparse.dims().begin(), sparse.dims().end());
  std::optional<std::vector<int64_t>> places = placesOf(*indices, shape, values->count);
  if (!places) {
    why = "is sparse, and its indices are not ascending places of a tensor of its shape";
    return nullptr;
  }
  std::string dense(bytes, '\0');
  for (auto [i, place] : llvm::enumerate(*places))
    std::memcpy(&dense[place * width], values->bytes.data() + i * width, width);
  return ownTensor(sparse.values().name(), values->dataType, shape, std::move(dense));
}

} // namespace trainc::reader
