// SPDX-License-Identifier: Apache-2.0
//
// Sizes of attention, and the calls that it and its gradient become.
#pragma once

#include "dialects/nn/joined_parts.h"
#include "dialects/nn/library_step.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

namespace trainc::nn {

/// That an attention may have.
constexpr size_t kMostMasks = 2;

/// Sizes of nn.attention, also of its gradient.
struct AttentionSizes {
  llvm::SmallVector<int64_t> batch; // the last are the heads
  int64_t queries, keys, size, valueSize;
  int64_t sharing;                 // heads of queries for one of keys
  int64_t reach;                   // query i sees keys up to i + reach
  int64_t stream = 0, dropped = 0; // of its dropout; none where `dropped` is 0

  template <typename Op> explicit AttentionSizes(Op op) {
    llvm::ArrayRef<int64_t> q = op.getQ().getType().getShape(), k = op.getK().getType().getShape();
    batch.assign(q.begin(), q.end() - 2);
    queries = q[q.size() - 2];
    keys = k[k.size() - 2];
    size = q.back();
    valueSize = op.getV().getType().getShape().back();
    sharing = batch.back() / k[k.size() - 3];
    reach = op.getReach() ? static_cast<int64_t>(*op.getReach()) : keys;
    if (op.getDropped()) {
      stream = static_cast<int64_t>(*op.getStream());
      dropped = static_cast<int64_t>(*op.getDropped());
    }
  }

  int64_t heads() const { return mlir::computeProduct(batch); }
  llvm::SmallVector<int64_t> scores() const;
  /// How many keys a query sees.
  int64_t visible(int64_t query) const;
  /// Pairs of query and key that see each other, of all heads.
  double visiblePairs() const;
  /// What the dropout costs for each of them.
  double flopsOfDropout() const;
};

/// Collects the step of an attention: what it reads and writes, in the order of the runtime's
/// function.
class AttentionStep {
public:
  AttentionStep(StepBuilder &builder, mlir::Operation *op, AttentionSizes of)
      : builder(builder), op(op), sizes(std::move(of)), scores(sizes.scores()) {}

  /// Matrices of each head of queries, or of keys.
  void reads(mlir::Value tensor, bool ofKeys = false);
  void writes(mlir::Value tensor, bool ofKeys = false);
  /// A contiguous tensor.
  void readsWhole(mlir::Value tensor);
  void writesWhole(mlir::Value tensor);
  /// Masks, then a key.
  void readsRest(mlir::ValueRange masksAndKey);
  void writesMask(mlir::Value gradient);

  /// Builds the step. `roles` name the results.
  llvm::SmallVector<Replacement> build(llvm::StringRef function, double scale, double flops,
                                       llvm::ArrayRef<llvm::StringRef> roles,
                                       llvm::ArrayRef<bool> flags = {}, bool isGradient = false);

private:
  /// A tensor and, where the function is told its strides, its place among those.
  struct Tensor {
    mlir::Value value;
    int64_t laid = -1;
  };
  void readsMask(mlir::Value mask);
  mlir::Value joinedValue(const JoinedParts &joined, mlir::Value written);
  std::optional<JoinedParts> joinResults(StridedBatch &laid, llvm::ArrayRef<mlir::Value> written);
  int64_t lay(mlir::Value tensor, BatchedMatrices::Use use, bool ofKeys);
  int64_t layMask(mlir::Value tensor);
  int64_t gradientScratchBytes(const StridedBatch &laid) const;
  mlir::ArrayAttr numbers(const StridedBatch &batch, double scale, llvm::ArrayRef<bool> flags);

  StepBuilder &builder;
  mlir::Operation *op;
  AttentionSizes sizes;
  llvm::SmallVector<int64_t> scores;
  llvm::SmallVector<BatchedMatrices> matrices;
  llvm::SmallVector<int64_t> masks, maskGradients; // among the matrices
  llvm::SmallVector<Tensor> inputs, results;
};

} // namespace trainc::nn
