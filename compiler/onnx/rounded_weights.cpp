// SPDX-License-Identifier: Apache-2.0
#include "compiler/onnx/rounded_weights.h"
#include "runtime/kernels/rounded_block.h"
#include "llvm/ADT/STLExtras.h"
#include <array>
#include <cstring>
#include <numeric>

using namespace llvm;

namespace trainc {

/// Of its scales; no other parameter has it.
static std::string nameOfScales(const Model &model, const std::string &weight) {
  std::string name = weight + ".scales";
  while (
      any_of(model.parameters, [&](const Parameter &parameter) { return parameter.name == name; }))
    name += "_";
  return name;
}

std::optional<FrozenWeight> roundedWeight(const Model &model, const Parameter &parameter,
                                          StringRef frozenType) {
  const bool toFourBits = frozenType == "int4";
  const std::vector<int64_t> &shape = parameter.shape;
  if ((!toFourBits && frozenType != "int8") || shape.size() < 2 ||
      shape.back() % rounded_block_size != 0)
    return std::nullopt;
  const int64_t length = shape.back(), blocks = length / rounded_block_size;
  quantized_layout layout = {};
  layout.bits = toFourBits ? 4 : 8;
  layout.is_signed = toFourBits ? 0 : 1;
  layout.zero = toFourBits ? zero_of_four_bits : 0;
  layout.outer = std::accumulate(shape.begin(), shape.end() - 1, int64_t{1}, std::multiplies<>());
  layout.length = layout.row = length;
  layout.inner = layout.scale_block = 1;
  layout.block = rounded_block_size;
  layout.scale_outer = layout.zero_outer = blocks;
  FrozenWeight weight{{parameter.name, toFourBits ? "u8" : "i8", shape}, shape, layout};
  if (toFourBits)
    weight.tensor.shape.back() /= 2;
  weight.scales = {nameOfScales(model, parameter.name), "bf16", shape};
  weight.scales.shape.back() = blocks;
  return weight;
}

void forEachRounded(ArrayRef<char> floats, bool toFourBits, bool areScales,
                    llvm::function_ref<void(ArrayRef<char>)> take) {
  constexpr size_t kBlocks = 512; // of a piece
  std::vector<char> piece;
  std::array<float, rounded_block_size> values;
  for (; !floats.empty(); floats = floats.drop_front(sizeof values)) {
    std::memcpy(values.data(), floats.data(), sizeof values);
    const rounded_block block = round_block(values.data(), toFourBits);
    const auto *integers = reinterpret_cast<const char *>(block.integers);
    if (areScales) {
      const auto *scale = reinterpret_cast<const char *>(&block.scale);
      piece.insert(piece.end(), scale, scale + sizeof block.scale);
    } else if (toFourBits) {
      for (int64_t i = 0; i < rounded_block_size; i += 2)
        piece.push_back(static_cast<char>(integers[i] | integers[i + 1] << 4));
    } else {
      piece.insert(piece.end(), integers, integers + rounded_block_size);
    }
    if (piece.size() >= kBlocks * rounded_block_size || floats.size() == sizeof values) {
      take(piece);
      piece.clear();
    }
  }
}

} // namespace trainc
