// SPDX-License-Identifier: Apache-2.0
//
// Where ONNX's recurrent operators have the parameters of a PyTorch module: several in one tensor,
// and their gates in another order.
#pragma once

#include "compiler/onnx/graph/graph.h"
#include <memory>

namespace trainc::reader {

/// Elements that lie side by side in both.
struct LayoutPiece {
  int64_t ofModule = 0; // the first one's index in the module's tensor
  int64_t place = 0;    // and in the initializer
  int64_t count = 0;
};

/// One parameter of the module.
struct ModuleLayout {
  llvm::SmallVector<int64_t> shape;
  std::vector<LayoutPiece> pieces;
  std::string what; // `weights of inputs`
  std::string name; // weight_ih
  bool isReverse = false;

  /// As a module calls it: weight_ih_l0_reverse.
  std::string nameIn(size_t layer) const {
    return name + "_l" + std::to_string(layer) + (isReverse ? "_reverse" : "");
  }
};

/// Of ONNX's LSTM, GRU and RNN.
bool isRecurrent(llvm::StringRef domain, llvm::StringRef opType);

/// The parameters in weights (input 1), recurrent weights (2) or biases (3) of an LSTM, GRU or RNN,
/// of each direction in turn. Empty for all other inputs, nodes and shapes.
std::vector<ModuleLayout> recurrentLayout(const GraphNode &node, unsigned input,
                                          llvm::ArrayRef<int64_t> shape);

/// The values of such a parameter, as the module has them.
std::unique_ptr<TensorBytes> inModulesOrder(const TensorBytes &tensor, const ModuleLayout &layout);

} // namespace trainc::reader
