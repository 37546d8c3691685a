// SPDX-License-Identifier: Apache-2.0
//
// Scores of attention as a model writes them: a product of queries and keys that is scaled, masked
// and given other shapes.
#pragma once

#include "dialects/nn/builder.h"
#include "passes/attention/masks.h"

namespace trainc {

/// What is added to scores, or decides which of them `score` takes the place of.
struct WrittenMask {
  mlir::Value value;
  llvm::SmallVector<int64_t> shape; // of the scores there
  std::optional<HiddenKeys> keys;   // if those are all that it hides, and it does nothing else
  bool isCondition = false, holdsForSeen = false;
  double score = 0;
};

struct WrittenScores {
  nn::MatmulOp product;
  llvm::SmallVector<mlir::Operation *> passed; // from the softmax to the product, and that
  double scale = 1;
  llvm::SmallVector<WrittenMask> masks; // in the order in which they are applied
};

/// The scores that `value` is and that nobody else reads; nothing where it is anything else.
std::optional<WrittenScores> writtenScores(mlir::Value value);

/// Takes those masks away that are a reach, where a hidden key has no weight.
std::optional<int64_t> takeReach(llvm::SmallVectorImpl<WrittenMask> &masks);

/// Whether adding them is the same as what the model does with them.
bool canBeAdded(llvm::ArrayRef<WrittenMask> masks);

} // namespace trainc
