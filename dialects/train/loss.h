// SPDX-License-Identifier: Apache-2.0
//
// What a loss answers. Each is one file in losses/, which registers it; the
// list in error messages and in the documentation comes from the registry.
#pragma once

#include "dialects/nn/builder.h"
#include <string>
#include <vector>

namespace trainc::train {

/// What an evaluation tells people besides the loss.
struct Metric {
  llvm::StringRef name; // `accuracy`
  /// A float for each label that is a class, else for each element of the output; its mean is
  /// shown.
  mlir::Value values;
};

struct Loss {
  llvm::StringRef name;
  llvm::StringRef description;
  /// The labels are class numbers below the output's last size, -100 where ignored.
  bool labelsAreClasses = false;
  /// Type of the input `labels` for an output of this type; null where the loss takes no labels or
  /// where it cannot be computed from such an output: then `problem` says why.
  mlir::RankedTensorType (*labelType)(mlir::RankedTensorType output, std::string &problem);
  /// The scalar loss; `labels` is null where labelType is. Null where the loss is the mean of
  /// what `buildElements` makes.
  mlir::Value (*build)(nn::Builder &builder, mlir::Value output, mlir::Value labels) = nullptr;
  /// The loss of each element of the output.
  mlir::Value (*buildElements)(nn::Builder &builder, mlir::Value output,
                               mlir::Value labels) = nullptr;
  /// Null where the loss alone tells.
  std::vector<Metric> (*buildMetrics)(nn::Builder &builder, mlir::Value output,
                                      mlir::Value labels) = nullptr;
};

constexpr int64_t kIgnoreIndex = -100; // PyTorch's default

struct LossRegistration {
  explicit LossRegistration(const Loss &loss);
};

/// Null where no loss has the name.
const Loss *findLoss(llvm::StringRef name);
/// All losses, by name.
std::vector<const Loss *> listLosses();

/// Labels of the output's own type: of mse and bce_with_logits.
mlir::RankedTensorType labelsLikeOutput(mlir::RankedTensorType output, std::string &problem);
/// Mean absolute and mean squared error of outputs that are to equal their labels.
std::vector<Metric> errorMetrics(nn::Builder &builder, mlir::Value output, mlir::Value labels);

} // namespace trainc::train
