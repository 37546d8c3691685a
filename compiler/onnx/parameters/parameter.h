// SPDX-License-Identifier: Apache-2.0
//
// What an initializer of a file is: the one record of it, from the file to the tables of the
// program (docs/parameter_rules.md).
#pragma once

#include "compiler/export_entry.h"
#include "llvm/ADT/ArrayRef.h"
#include <memory>

namespace trainc {

namespace reader {
struct QuantizedWeight;
struct TensorBytes;
} // namespace reader

enum class Role { trained, frozen, buffer, tied, constant, unused };

/// What the module's state, or another initializer of the file, calls the same tensor.
struct TensorName {
  std::string name;
  bool transposed = false;
};

struct Parameter {
  Parameter() = default; // of an adapter, which the file does not have
  explicit Parameter(const reader::TensorBytes &tensor);

  // In the file.
  const reader::TensorBytes *tensor = nullptr;
  std::string name; // of the initializer, which the program uses, too
  std::vector<int64_t> shape;
  bool isDouble = false;
  llvm::ArrayRef<char> bytes;  // little endian, mapped; owned by the model or its file
  llvm::ArrayRef<char> inFile; // as the file has them, perhaps in 16 bits; empty: not in one piece
  size_t firstUse = SIZE_MAX;  // node and input, for the order
  // A frozen weight that the file has as integers, under their name; it has no `bytes`.
  std::shared_ptr<const reader::QuantizedWeight> quantized;
  bool isPartOfQuantized = false; // scales or zero points of such a weight
  bool isOfAdapter = false;

  // What becomes of it.
  Role role = Role::constant;
  std::string reason;
  bool decays = false;
  std::string group;              // of the recipe; empty: in none
  size_t groupNumber = 0;         // from 1; 0: in none
  bool isFixed = false;           // an input, by --constant
  bool isSetting = false;         // an operator must know it
  bool isAsked = false;           // integers that stand for a weight, in an unknown form
  bool isAnswered = false;        // by --freeze: no question about it is left
  Parameter *canonical = nullptr; // of a tied one: the parameter
  bool transposed = false;        // of a tied one: it is the parameter's transpose
  std::vector<TensorName> tied;   // of a parameter: the initializers that are tied to it

  // In the module.
  std::string moduleName;             // for patterns and adapters; else the initializer's
  std::vector<TensorName> inState;    // tensors of the module's state with all its elements
  std::vector<StatePiece> pieces;     // of tensors of the state whose order is another
  std::vector<std::string> stackedOf; // the module's parameters that it holds, where several
  bool exporterMade = false;          // an intermediate value that the exporter computed
  bool isPart = false;                // elements that the exporter chose of a parameter

  /// A tensor of the program, which its files of parameters hold.
  bool isParameter() const {
    return role == Role::trained || role == Role::frozen || role == Role::buffer;
  }
  bool isFrozen() const { return role == Role::frozen; }
  /// Floats, or integers that stand for floats.
  bool isOfFloats() const;
};

} // namespace trainc
