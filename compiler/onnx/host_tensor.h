// SPDX-License-Identifier: Apache-2.0
//
// A tensor known while the model is read: shape arithmetic, axes, masks, tables.
#pragma once

#include "compiler/onnx/model_file.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include <memory>

namespace trainc::reader {

/// Largest tensor that is computed on the host, in elements; a mask of 4096 x 4096 fits.
constexpr int64_t kLargestHostTensor = int64_t(1) << 24;

/// Values of f32 are kept as doubles and rounded to f32 after each operation, which for
/// + - * / and sqrt gives the f32 result exactly. Integers of all widths are i64; booleans 0 and 1.
struct HostTensor {
  Element element = Element::i64;
  llvm::SmallVector<int64_t> shape;
  std::vector<double> reals;
  std::vector<int64_t> integers;

  bool isReal() const { return element == Element::f32 || element == Element::f64; }
  int64_t rank() const { return static_cast<int64_t>(shape.size()); }
  int64_t count() const;
  double real(int64_t index) const {
    return isReal() ? reals[index] : static_cast<double>(integers[index]);
  }
  void setReal(int64_t index, double value) {
    reals[index] = element == Element::f32 ? static_cast<float>(value) : value;
  }
};

using Constant = std::shared_ptr<const HostTensor>;

int64_t elementCount(llvm::ArrayRef<int64_t> shape);

/// A zero tensor; null where it would be too large.
std::shared_ptr<HostTensor> makeHostTensor(Element element, llvm::ArrayRef<int64_t> shape);
Constant makeIntegers(llvm::ArrayRef<int64_t> values);
Constant makeInteger(int64_t value);

/// From the file's bytes; null where too large.
Constant hostTensor(const TensorBytes &bytes);

mlir::Type elementType(mlir::MLIRContext &context, Element element);
mlir::DenseElementsAttr attributeOf(mlir::MLIRContext &context, const HostTensor &tensor);

} // namespace trainc::reader
