// SPDX-License-Identifier: Apache-2.0
//
// Questions about the values of mapped tensors. All stop at the first element that answers them,
// so that large weights are not paged in without need.
#include "compiler/onnx/parameters/claims.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/bit.h"
#include <cmath>
#include <cstring>

using namespace llvm;

namespace trainc::reader {

static uint64_t bitsAt(const TensorBytes &tensor, int64_t index, int64_t width) {
  uint64_t bits = 0;
  std::memcpy(&bits, tensor.bytes.data() + index * width, width);
  return bits;
}

std::optional<bool> isTransposeOf(const TensorBytes &a, const TensorBytes &b) {
  if (a.dataType != b.dataType || a.count != b.count)
    return std::nullopt;
  if (a.shape == b.shape && std::memcmp(a.bytes.data(), b.bytes.data(), a.bytes.size()) == 0)
    return false;
  if (a.shape.size() != 2 || b.shape.size() != 2 || a.shape[0] != b.shape[1] ||
      a.shape[1] != b.shape[0])
    return std::nullopt;
  constexpr int64_t kBlock = 64; // elements; a block of both fits in the cache
  int64_t width = elementBytes(a.dataType), rows = a.shape[0], columns = a.shape[1];
  for (int64_t top = 0; top < rows; top += kBlock)
    for (int64_t left = 0; left < columns; left += kBlock)
      for (int64_t i = top; i < std::min(rows, top + kBlock); ++i)
        for (int64_t j = left; j < std::min(columns, left + kBlock); ++j)
          if (bitsAt(a, i * columns + j, width) != bitsAt(b, j * rows + i, width))
            return std::nullopt;
  return true;
}

bool isUniform(const TensorBytes &tensor) {
  size_t width = static_cast<size_t>(elementBytes(tensor.dataType));
  return tensor.bytes.size() <= width ||
         std::memcmp(tensor.bytes.data(), tensor.bytes.data() + width,
                     tensor.bytes.size() - width) == 0;
}

// By blocks: a loop without an exit is computed with vectors.
template <typename Bits> static bool hasUnsound(const TensorBytes &tensor, Bits infinity) {
  constexpr Bits kSign = ~(~Bits(0) >> 1);
  constexpr int64_t kBlock = 4096; // elements
  for (int64_t start = 0; start < tensor.count; start += kBlock) {
    bool found = false;
    for (int64_t i = start; i < std::min(tensor.count, start + kBlock); ++i) {
      Bits bits;
      std::memcpy(&bits, tensor.bytes.data() + i * sizeof bits, sizeof bits);
      found |= ((bits & infinity) == infinity) & (bits != (kSign | infinity));
    }
    if (found)
      return true;
  }
  return false;
}

bool isSound(const TensorBytes &tensor) {
  return isDouble(tensor.dataType) ? !hasUnsound<uint64_t>(tensor, 0x7ff0000000000000)
                                   : !hasUnsound<uint32_t>(tensor, 0x7f800000);
}

// Of vectors of so many elements, `stride` apart: whether at most so many were there before.
static bool vectorsDiffer(const TensorBytes &tensor, int64_t length, int64_t stride,
                          int64_t allowed = 0) {
  const int64_t width = elementBytes(tensor.dataType);
  llvm::StringSet<> vectors;
  for (int64_t i = 0; i < tensor.count / length; ++i) {
    std::string vector;
    for (int64_t k = 0; k < length; ++k) {
      const int64_t at = (i / stride * length + k) * stride + i % stride;
      vector.append(tensor.bytes.data() + at * width, width);
    }
    if (!vectors.insert(vector).second && --allowed < 0)
      return false;
  }
  return true;
}

bool rowsDiffer(const TensorBytes &tensor, bool anywhere) {
  if (tensor.shape.empty() || tensor.count == 0)
    return false;
  if (!anywhere)
    return vectorsDiffer(tensor, tensor.shape.back(), 1);
  int64_t stride = tensor.count, axes = 0;
  for (int64_t size : tensor.shape) {
    stride /= size;
    if (size == 1)
      continue;
    ++axes;
    if (!vectorsDiffer(tensor, size, stride))
      return false;
  }
  // A row may be one element. Many random numbers are there again by chance, but not so often.
  return vectorsDiffer(tensor, 1, 1, axes > 1 ? tensor.count / 4 : 0);
}

bool columnsDiffer(const TensorBytes &tensor) {
  if (tensor.shape.empty() || tensor.count == 0)
    return false;
  const int64_t columns = tensor.shape.back();
  return vectorsDiffer(tensor, tensor.count / columns, columns);
}

bool hasAllDigits(const TensorBytes &tensor) {
  // Of the significand: f16 lacks 13 bits of f32's, f32 29 of f64's.
  constexpr uint64_t kBelowHalf = (1 << 13) - 1, kBelowSingle = (1 << 29) - 1;
  const bool areDouble = isDouble(tensor.dataType);
  for (int64_t i = 0; i < tensor.count; ++i) {
    const uint64_t bits = bitsAt(tensor, i, areDouble ? 8 : 4);
    const double value = areDouble ? bit_cast<double>(bits) : bit_cast<float>(uint32_t(bits));
    if (value != std::trunc(value) && (bits & (areDouble ? kBelowSingle : kBelowHalf)))
      return true;
  }
  return false;
}

} // namespace trainc::reader
