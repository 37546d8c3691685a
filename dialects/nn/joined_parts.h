// SPDX-License-Identifier: Apache-2.0
//
// Tensors that are put side by side to make another one: gradients of what a split gave.
#pragma once

#include "dialects/nn/nn.h"

namespace trainc::nn {

struct JoinedParts {
  mlir::Value whole;                  // which, with casts, is the parts side by side
  mlir::RankedTensorType type;        // of the whole, with elements as the parts have them
  llvm::SmallVector<int64_t> begins;  // of each part: elements from the begin of a row of the whole
  llvm::SmallVector<int64_t> lengths; // of a part's row
  int64_t length = 0;                 // of a row of the whole
};

/// What the parts make together, if nobody else reads them: each is padded with zeros along one
/// dimension and all are added, none over another. Rows are what that dimension and those after it
/// hold.
std::optional<JoinedParts> joinedParts(llvm::ArrayRef<mlir::Value> parts);

} // namespace trainc::nn
