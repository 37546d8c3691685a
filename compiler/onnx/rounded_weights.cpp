// SPDX-License-Identifier: Apache-2.0
//
// By blocks: the scale of one, rounded to bf16, then its integers by that scale. So what a scale
// loses costs no accuracy but in the largest value of the block.
#include "compiler/onnx/rounded_weights.h"
#include "runtime/kernels/dequantize.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

using namespace llvm;

namespace trainc {

namespace {

constexpr int64_t kBlock = 32; // elements that share a scale
constexpr int kZeroOfFour = 8; // the integer that stands for 0
constexpr const char *kScales = ".scales";

struct RoundedBlock {
  bfloat16 scale;
  std::array<int8_t, kBlock> integers;
};

RoundedBlock roundBlock(const float *values, bool toFourBits) {
  float largest = 0;
  for (int64_t i = 0; i < kBlock; ++i)
    if (std::fabs(values[i]) > std::fabs(largest))
      largest = values[i];
  RoundedBlock block;
  block.scale = bfloat16(toFourBits ? largest / -8 : std::fabs(largest) / 127);
  const auto scale = static_cast<float>(block.scale);
  const float low = toFourBits ? 0 : -127, high = toFourBits ? 15 : 127,
              zero = toFourBits ? kZeroOfFour : 0;
  for (int64_t i = 0; i < kBlock; ++i) {
    const float number = scale == 0 ? zero : std::round(values[i] / scale) + zero;
    block.integers[i] = static_cast<int8_t>(std::clamp(number, low, high));
  }
  return block;
}

} // namespace

std::optional<FrozenWeight> roundedWeight(const Parameter &parameter, StringRef frozenType) {
  const bool toFourBits = frozenType == "int4";
  const std::vector<int64_t> &shape = parameter.shape;
  if ((!toFourBits && frozenType != "int8") || shape.size() < 2 || shape.back() % kBlock != 0)
    return std::nullopt;
  const int64_t length = shape.back(), blocks = length / kBlock,
                rows = std::accumulate(shape.begin(), shape.end() - 1, int64_t{1},
                                       std::multiplies<>());
  FrozenWeight weight{{parameter.name, toFourBits ? "u8" : "i8", shape},
                      shape,
                      {toFourBits ? 4 : 8, toFourBits ? 0 : 1, toFourBits ? kZeroOfFour : 0, rows,
                       length, 1, kBlock, length, blocks, 1, 0, blocks}};
  if (toFourBits)
    weight.tensor.shape.back() /= 2;
  weight.scales = {parameter.name + kScales, "bf16", shape};
  weight.scales.shape.back() = blocks;
  return weight;
}

void forEachRounded(ArrayRef<char> floats, bool toFourBits, bool areScales,
                    llvm::function_ref<void(ArrayRef<char>)> take) {
  constexpr size_t kBlocks = 512; // of a piece
  std::vector<char> piece;
  std::array<float, kBlock> values;
  for (; !floats.empty(); floats = floats.drop_front(sizeof values)) {
    std::memcpy(values.data(), floats.data(), sizeof values);
    const RoundedBlock block = roundBlock(values.data(), toFourBits);
    const auto *integers = reinterpret_cast<const char *>(block.integers.data());
    if (areScales) {
      const auto *scale = reinterpret_cast<const char *>(&block.scale);
      piece.insert(piece.end(), scale, scale + sizeof block.scale);
    } else if (toFourBits) {
      for (int64_t i = 0; i < kBlock; i += 2)
        piece.push_back(static_cast<char>(integers[i] | integers[i + 1] << 4));
    } else {
      piece.insert(piece.end(), integers, integers + kBlock);
    }
    if (piece.size() >= kBlocks * kBlock || floats.size() == sizeof values) {
      take(piece);
      piece.clear();
    }
  }
}

} // namespace trainc
