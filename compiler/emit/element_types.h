// SPDX-License-Identifier: Apache-2.0
//
// Element types in emitted sources: all that C++, CUDA and the runtime's tables call
// them, in one table.
#pragma once

#include "mlir/IR/Attributes.h"
#include "mlir/IR/Types.h"
#include "llvm/ADT/StringRef.h"
#include <string>

namespace trainc {

struct ElementType {
  llvm::StringRef name;    // in comments: `f32`, `bool`
  llvm::StringRef scalar;  // C++ type of a value; i1 is bool
  llvm::StringRef stored;  // C++ type of an element in memory; i1 is uint8_t
  llvm::StringRef runtime; // enumerator of data_type in runtime/data_types.h
  llvm::StringRef zero, one;
  llvm::StringRef largest, smallest; // infinities where the type has them
};

/// What a tensor's element type, or a scalar's type, is called. One that nothing can be emitted for
/// is an internal error.
const ElementType &elementTypeOf(mlir::Type type);

/// A number of one of the types, as in a table of constants: bool is 0 or 1.
std::string literal(mlir::Attribute number);

} // namespace trainc
