// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/program.h"
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

namespace trainc {

/// A tensor that has its values from a parameter, by another name: an initializer of the model's
/// file that export writes, or what the module's state holds.
struct ExportEntry {
  std::string name;
  std::string parameterName;
  bool transposed = false;
  std::string type = {}; // of 16 bits, `f16` or `bf16`, that the file has; empty: the parameter's
  std::vector<int64_t> shape = {}; // of integers in the file: `i4`, `u4`, `i8` or `u8`
};

/// Elements of a tensor of the module's state that lie side by side in a parameter, too, whose
/// others come from elsewhere or have another order.
struct StatePiece {
  std::string tensor;
  std::string parameterName;
  int64_t from = 0, to = 0, count = 0; // the first in each, and how many
};

/// Of an element of the types that files of parameters have: `f64`, `f32`, `bf16`, `f16`, `u8`,
/// `i8`.
inline int64_t bytesOfType(const std::string &type) {
  return type == "f64" ? 8 : type == "f32" ? 4 : type == "u8" || type == "i8" ? 1 : 2;
}

/// A tensor that the trainer maps: the type of its elements, and where in the block of all of them.
struct FrozenTensor {
  std::string name, type; // `f32`, `bf16`, `f16`, `u8` or `i8`
  std::vector<int64_t> shape;
  int64_t offset = 0; // bytes

  int64_t bytes() const {
    return std::accumulate(shape.begin(), shape.end(), bytesOfType(type), std::multiplies<>());
  }
};

/// A weight that the trainer maps. One as integers with scales has their layout, and its zero
/// points a name where there are any.
struct FrozenWeight {
  FrozenTensor tensor;
  std::vector<int64_t> shape = {}; // of one as integers
  std::optional<quantized_layout> layout = {};
  FrozenTensor scales = {}, zeros = {};
};

/// A part of a file of external data that the trainer maps: bytes from `begin` on, at `offset` of
/// the block of all frozen tensors; both are multiples of pages.
struct FrozenPart {
  std::string path;
  int64_t begin = 0, bytes = 0, offset = 0;
};

/// Frozen tensors that stay where they are, by their places in that block.
struct FrozenFiles {
  std::vector<FrozenPart> parts;
  std::vector<std::pair<std::string, int64_t>> places;
  int64_t bytes = 0; // that parts take, up to the next page
};

/// A tensor of the module's state that is compiled into the program.
struct StateConstant {
  std::string name;
  int64_t bytes = 0;
  uint32_t checksum = 0; // crc32c
};

/// A low-rank adapter beside a weight, by the names of its parameters.
struct AdapterEntry {
  std::string module; // path of the layer in PyTorch's module, where the file says so
  std::string weight, a, b;
  double alpha = 0, dropout = 0;
  // Whether the weight is [in, out], as GPT-2's Conv1D has it, and not [out, in]: in the program,
  // and in the module.
  bool isInByOut = false, isModulesInByOut = false;
  size_t layers = 0; // that read the weight
};

} // namespace trainc
