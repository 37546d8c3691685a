// SPDX-License-Identifier: Apache-2.0
#include "compiler/onnx/graph/recurrent_layout.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;

namespace trainc::reader {

/// Of each gate in ONNX's order, its number in PyTorch's. Empty: no such operator.
static ArrayRef<int64_t> gatesOf(StringRef domain, StringRef opType) {
  static constexpr int64_t kLstm[] = {0, 3, 1, 2}; // i o f c, of i f c o
  static constexpr int64_t kGru[] = {1, 0, 2};     // z r n, of r z n
  static constexpr int64_t kRnn[] = {0};
  if (!domain.empty())
    return {};
  return llvm::StringSwitch<ArrayRef<int64_t>>(opType)
      .Case("LSTM", kLstm)
      .Case("GRU", kGru)
      .Case("RNN", kRnn)
      .Default({});
}

bool isRecurrent(StringRef domain, StringRef opType) { return !gatesOf(domain, opType).empty(); }

std::vector<ModuleLayout> recurrentLayout(const GraphNode &node, unsigned input,
                                          ArrayRef<int64_t> shape) {
  ArrayRef<int64_t> gates = gatesOf(node.domain, node.opType());
  bool isBias = input == 3;
  if (gates.empty() || input < 1 || input > 3 || shape.size() != (isBias ? 2 : 3))
    return {};
  const int64_t halves = isBias ? 2 : 1, columns = isBias ? 1 : shape[2],
                rows = shape[1] / halves / static_cast<int64_t>(gates.size());
  if (rows == 0 || columns == 0 || shape[1] != rows * halves * static_cast<int64_t>(gates.size()))
    return {};
  std::vector<ModuleLayout> result;
  int64_t place = 0;
  for (int64_t direction = 0; direction < shape[0]; ++direction)
    for (int64_t half = 0; half < halves; ++half) {
      bool isOfStates = isBias ? half == 1 : input == 2;
      ModuleLayout &layout = result.emplace_back();
      layout.shape = {rows * static_cast<int64_t>(gates.size())};
      if (!isBias)
        layout.shape.push_back(columns);
      layout.what = std::string(isBias ? "biases" : "weights") + " of " +
                    (isOfStates ? "states" : "inputs") +
                    (direction > 0 ? " of the other direction" : "");
      layout.name = std::string(isBias ? "bias" : "weight") + (isOfStates ? "_hh" : "_ih");
      layout.isReverse = direction > 0;
      for (int64_t gate : gates) {
        layout.pieces.push_back({gate * rows * columns, place, rows * columns});
        place += rows * columns;
      }
    }
  return result;
}

std::unique_ptr<TensorBytes> inModulesOrder(const TensorBytes &tensor, const ModuleLayout &layout) {
  const auto width = static_cast<size_t>(elementBytes(tensor.dataType));
  auto result = std::make_unique<TensorBytes>();
  result->name = tensor.name;
  result->dataType = tensor.dataType;
  result->shape = layout.shape;
  for (const LayoutPiece &piece : layout.pieces)
    result->count += piece.count;
  result->storage.resize(static_cast<size_t>(result->count) * width);
  for (const LayoutPiece &piece : layout.pieces) {
    ArrayRef<char> values = tensor.bytes.slice(static_cast<size_t>(piece.place) * width,
                                               static_cast<size_t>(piece.count) * width);
    llvm::copy(values, result->storage.begin() + piece.ofModule * static_cast<int64_t>(width));
  }
  result->bytes = {result->storage.data(), result->storage.size()};
  return result;
}

} // namespace trainc::reader
