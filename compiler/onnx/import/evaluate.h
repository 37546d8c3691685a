// SPDX-License-Identifier: Apache-2.0
//
// Runs an imported model in the reference interpreter of nn.
#pragma once

#include "compiler/onnx/file/model_file.h"
#include "compiler/onnx/reader.h"

namespace trainc {

using NamedTensors = std::map<std::string, nn::Tensor>;

/// A tensor of the file's bytes; none where no tensor here has its element type. Without `copy` it
/// may refer to the bytes.
nn::Tensor tensorOfBytes(mlir::MLIRContext &context, const reader::TensorBytes &bytes, bool copy);

/// What a parameter begins with, in the file's precision and the shape of `type`; it may refer to
/// the file.
nn::Tensor initialValue(const Parameter &parameter, mlir::RankedTensorType type);

struct EvaluatedTensor {
  std::string name; // of the ONNX value
  nn::Tensor value;
  bool isOutput = true;
  std::string planName = {}; // what plans call it; empty: no operation computes it
};

/// The model's outputs in its order, or with `all` every value that an output needs,
/// in the order in which they are computed. `inputs` are
/// the model's, of its shapes and types; `parameters` may replace initial values. A model that
/// set-precision turned to f64 takes f32 values as they are.
mlir::FailureOr<std::vector<EvaluatedTensor>> evaluateModel(Model &model,
                                                            const NamedTensors &inputs,
                                                            const NamedTensors &parameters,
                                                            bool all, Report &report);

} // namespace trainc
