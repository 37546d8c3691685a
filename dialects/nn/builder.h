// SPDX-License-Identifier: Apache-2.0
//
// Shorthand for building nn operations at one location: what gradients,
// decompositions, importers and losses are written in.
#pragma once

#include "dialects/nn/nn.h"

namespace trainc::nn {

/// The shape that both broadcast to by NumPy's rule; nullopt where they do not fit.
std::optional<llvm::SmallVector<int64_t>> broadcastShapes(llvm::ArrayRef<int64_t> a,
                                                          llvm::ArrayRef<int64_t> b);

/// `value` in every element, rounded to the element type.
mlir::DenseElementsAttr splatAttribute(double value, mlir::RankedTensorType type);

class Builder {
public:
  Builder(mlir::OpBuilder &builder, mlir::Location location) : builder(builder), loc(location) {}

  mlir::OpBuilder &op() { return builder; }
  mlir::Location location() const { return loc; }

  template <typename Op, typename... Args> mlir::Value create(Args &&...args) {
    return builder.create<Op>(loc, std::forward<Args>(args)...)->getResult(0);
  }

  /// `value` as what plays `role` in this builder's node: what dumps and emitted code call it. A
  /// value that another node made keeps its name.
  mlir::Value named(llvm::StringRef role, mlir::Value value);

  /// A splat of `value` with the shape and element type of `type`.
  mlir::Value constant(double value, mlir::Type type);
  mlir::Value constant(mlir::ElementsAttr elements);

  // Pointwise; operands have one shape.
  mlir::Value add(mlir::Value a, mlir::Value b) { return create<AddOp>(a, b); }
  mlir::Value sub(mlir::Value a, mlir::Value b) { return create<SubOp>(a, b); }
  mlir::Value mul(mlir::Value a, mlir::Value b) { return create<MulOp>(a, b); }
  mlir::Value div(mlir::Value a, mlir::Value b) { return create<DivOp>(a, b); }
  mlir::Value neg(mlir::Value x) { return create<NegOp>(x); }
  mlir::Value exp(mlir::Value x) { return create<ExpOp>(x); }
  mlir::Value log(mlir::Value x) { return create<LogOp>(x); }
  mlir::Value select(mlir::Value condition, mlir::Value a, mlir::Value b) {
    return create<SelectOp>(condition, a, b);
  }
  mlir::Value scale(mlir::Value x, double factor) { return mul(x, constant(factor, x.getType())); }
  mlir::Value cast(mlir::Value x, mlir::Type elementType); // x itself where nothing changes

  // Shape. Each returns its operand where nothing would change.
  mlir::Value reshape(mlir::Value x, llvm::ArrayRef<int64_t> shape);
  mlir::Value transpose(mlir::Value x, llvm::ArrayRef<int64_t> permutation);
  /// Two dimensions in each other's place: its own inverse.
  mlir::Value exchange(mlir::Value x, int64_t a, int64_t b);
  /// One dimension at another place among the others.
  mlir::Value move(mlir::Value x, int64_t from, int64_t to);
  mlir::Value broadcast(mlir::Value x, llvm::ArrayRef<int64_t> dimensions,
                        llvm::ArrayRef<int64_t> shape);
  /// Broadcast by NumPy's rule: aligned at the last dimension.
  mlir::Value broadcastTo(mlir::Value x, llvm::ArrayRef<int64_t> shape);
  /// Brings operands to one shape by NumPy's rule; emits an error and fails where they do not fit.
  mlir::LogicalResult unify(llvm::MutableArrayRef<mlir::Value> operands);
  /// `size` elements along one dimension, from `start`.
  mlir::Value slice(mlir::Value x, int64_t dimension, int64_t start, int64_t size,
                    int64_t stride = 1);
  /// Undoes a reduction: puts x back along the reduced dimensions of `shape`.
  mlir::Value expand(mlir::Value x, llvm::ArrayRef<int64_t> reducedDimensions,
                     llvm::ArrayRef<int64_t> shape);

  // Reductions; negative dimensions count from the end.
  mlir::Value reduceSum(mlir::Value x, llvm::ArrayRef<int64_t> dimensions);
  mlir::Value reduceMax(mlir::Value x, llvm::ArrayRef<int64_t> dimensions);
  /// The mean is called `role`, the sum `role`_sum.
  mlir::Value reduceMean(mlir::Value x, llvm::ArrayRef<int64_t> dimensions,
                         llvm::StringRef role = "mean");

  mlir::Value matmul(mlir::Value a, mlir::Value b, bool transposeA = false,
                     bool transposeB = false);

private:
  mlir::OpBuilder &builder;
  mlir::Location loc;
};

} // namespace trainc::nn
