// SPDX-License-Identifier: Apache-2.0
//
// Element types of tensors: everything that depends on which one it is, in one table. Others
// ask for the fact that they need, so that a new type is a row here.
#pragma once

#include "dialects/errors/internal_error.h"
#include "mlir/IR/Types.h"
#include "runtime/kernels/narrow_float.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>

namespace trainc {

/// C++ types that hold elements.
enum class HostType { bf16, f16, f32, f64, u8, i8, u16, i16, u32, i32, i64 };

struct ElementType {
  llvm::StringRef name; // in comments: `f32`, `bool`
  int64_t bytes;        // of an element in memory; a bool takes one
  HostType stored;      // what an element is in memory, little endian; bool is 0 or 1
  bool hasEpilogues;    // products of them in the libraries; f64 serves tests

  // In emitted sources:
  llvm::StringRef scalarName;  // C++ type of a value; i1 is bool
  llvm::StringRef storedName;  // C++ type of an element in memory; i1 is uint8_t
  llvm::StringRef runtimeName; // enumerator of data_type in runtime/files/data_types.h
  llvm::StringRef zero, one;
  llvm::StringRef largest, smallest; // infinities where the type has them
  // The header of the C++ type of floats that memory alone has (isNarrowFloat), else empty.
  llvm::StringRef header = {};
  bool isOfLittleRange = false; // gradients as small as f32 has them would become 0
};

/// The facts of an element type, or of a tensor's. An unknown type is an internal error.
const ElementType &elementTypeOf(mlir::Type type);

/// C++ types of elements in emitted sources, each once.
llvm::SmallVector<llvm::StringRef> storedTypeNames();

/// i64: what shapes, positions and indices are.
bool isIndexElement(mlir::Type element);

/// Whether memory alone has such floats: they are computed and added up in f32.
bool isNarrowFloat(mlir::Type element);
/// What elements of a type are added up in: f32 for narrow floats, else the type itself.
mlir::Type sumTypeOf(mlir::Type element);

int64_t elementBytes(mlir::Type element);
int64_t bytesOf(mlir::Type tensor); // in memory

/// The same tensor with rows, its last dimension, that begin `pitch` elements apart; pad-rows.
mlir::RankedTensorType withRowPitch(mlir::RankedTensorType type, int64_t pitch);
/// 0: one row follows the other.
int64_t rowPitchOf(mlir::RankedTensorType type);

/// Calls `function` with a zero of the C++ type.
template <typename Function> auto withHostType(HostType type, Function function) {
  // NOLINTBEGIN(bugprone-branch-clone): the calls differ in their arguments' types
  switch (type) {
  case HostType::bf16:
    return function(bfloat16());
  case HostType::f16:
    return function(float16());
  case HostType::f32:
    return function(float());
  case HostType::f64:
    return function(double());
  case HostType::u8:
    return function(uint8_t());
  case HostType::i8:
    return function(int8_t());
  case HostType::u16:
    return function(uint16_t());
  case HostType::i16:
    return function(int16_t());
  case HostType::u32:
    return function(uint32_t());
  case HostType::i32:
    return function(int32_t());
  case HostType::i64:
    return function(int64_t());
  }
  // NOLINTEND(bugprone-branch-clone)
  internalError("a type of the host has no C++ type");
}

} // namespace trainc
