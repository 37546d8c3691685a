// SPDX-License-Identifier: Apache-2.0
//
// Which statistics a BatchNormalization is read with.
#pragma once

#include <cstddef>
#include <cstdint>

namespace trainc::nn {

enum class BatchNormMode {
  file,  // what the node says: of a model that is only run
  train, // in training those of the batch, in inference the running ones, which each step replaces
  trainByDefault, // as train, which nobody asked for: a node that says inference is warned of
  trainAllRanks,  // as train, of the batches of all ranks
  frozen          // always the running ones
};

/// Whether a step replaces the running ones.
inline bool trainsStatistics(BatchNormMode mode) {
  return mode != BatchNormMode::file && mode != BatchNormMode::frozen;
}

/// Whether a node says that its statistics are those of the batch: from opset 14 by its attribute
/// training_mode, before by more than one output, before opset 7 by its attribute is_test.
inline bool saysBatchStatistics(int64_t opset, int64_t trainingMode, int64_t isTest,
                                size_t outputs) {
  return opset >= 14 ? trainingMode != 0 : opset < 7 ? isTest == 0 : outputs > 1;
}

} // namespace trainc::nn
