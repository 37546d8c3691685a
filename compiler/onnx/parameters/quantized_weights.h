// SPDX-License-Identifier: Apache-2.0
//
// Weights that a file has as integers of 4 or 8 bits with scales.
#pragma once

#include "compiler/onnx/graph/graph.h"
#include "runtime/kernels/dequantize.h"

namespace trainc::reader {

/// Element i of a tensor of `shape` is (integer - zero) * scale.
struct QuantizedWeight {
  llvm::SmallVector<int64_t> shape;
  quantized_layout layout = {};
  const TensorBytes *integers = nullptr, *scales = nullptr;
  const TensorBytes *zeros = nullptr; // null: layout.zero
  bool isOutByIn = false;             // a matrix [out, in], as PyTorch's linear layers have it

  int64_t count() const { return layout.outer * layout.length * layout.inner; }
  /// Its elements in f32.
  std::vector<float> values() const;
};

/// The node's input that is such a weight; none: the operator has none.
std::optional<unsigned> quantizedInput(llvm::StringRef domain, llvm::StringRef opType);

/// What all nodes that read the integers make of them. None, with a message, where they are not
/// such a weight: where other nodes read them, too, or scales are computed.
std::optional<QuantizedWeight> quantizedWeight(const ModelFile &file, const Graph &graph,
                                               const TensorBytes &integers, std::string &why);

/// A weight's name without what tools for quantization add to that of the weight in the module.
std::string withoutQuantization(llvm::StringRef name);

/// The words for it in tables: `uint4 in blocks of 32`.
std::string quantizedForm(const QuantizedWeight &weight);

} // namespace trainc::reader
