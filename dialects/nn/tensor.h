// SPDX-License-Identifier: Apache-2.0
//
// The value of a tensor known to the compiler: what constants are folded in, and what the
// reference interpreter computes with.
#pragma once

#include "dialects/elements/element_type.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include <memory>
#include <optional>
#include <vector>

namespace trainc::nn {

/// The most elements of a tensor: offsets of all of a model's tensors stay far below 2^63 bytes.
constexpr int64_t kLargestTensor = int64_t(1) << 40;

/// The number of elements; none where a size is negative or the product is above kLargestTensor,
/// zeros left out.
std::optional<int64_t> elementCount(llvm::ArrayRef<int64_t> shape);

/// Elements in row-major order, little endian, bool as 0 or 1. Where all are equal, one may stand
/// for all (a splat). Copies share the elements, which change only before they are shared.
class Tensor {
public:
  /// No tensor.
  Tensor() = default;
  /// Zeros.
  explicit Tensor(mlir::RankedTensorType type);
  static Tensor of(mlir::ElementsAttr elements);
  /// Refers to `bytes`, which must outlive it; they hold all elements.
  static Tensor viewOf(mlir::RankedTensorType type, llvm::ArrayRef<char> bytes);
  /// Values rounded, or wrapped, to the element type.
  static Tensor ofReals(mlir::RankedTensorType type, llvm::ArrayRef<double> values);
  static Tensor ofIntegers(mlir::RankedTensorType type, llvm::ArrayRef<int64_t> values);
  /// `element` with the bytes of one element, in all places.
  static Tensor splat(mlir::RankedTensorType type, llvm::ArrayRef<char> element);

  explicit operator bool() const { return bytes != nullptr; }
  mlir::RankedTensorType type() const { return tensorType; }
  llvm::ArrayRef<int64_t> shape() const { return tensorType.getShape(); }
  int64_t count() const { return tensorType.getNumElements(); }
  int64_t width() const { return elementBytes(tensorType.getElementType()); }
  bool isSplat() const { return onlyOne; }

  const char *at(int64_t index) const { return bytes + (onlyOne ? 0 : index * width()); }
  /// The elements of a tensor just made, to be filled in.
  char *data() { return owned->data(); }

  double real(int64_t index) const;
  int64_t integer(int64_t index) const;
  std::vector<double> reals() const;
  std::vector<int64_t> integers() const;

  /// Its elements in another shape of as many; for a splat in any shape.
  Tensor withShape(llvm::ArrayRef<int64_t> shape) const;
  /// Each index of `shape`, in order: the element at `offset` plus the sum of index times stride.
  Tensor moved(llvm::ArrayRef<int64_t> shape, int64_t offset,
               llvm::ArrayRef<int64_t> strides) const;
  /// A splat attribute where all elements are equal: MLIR keeps attributes for good.
  mlir::DenseElementsAttr attribute() const;

private:
  mlir::RankedTensorType tensorType;
  std::shared_ptr<std::vector<char>> owned; // null for a view
  const char *bytes = nullptr;
  bool onlyOne = false;
};

} // namespace trainc::nn
