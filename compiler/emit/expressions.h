// SPDX-License-Identifier: Apache-2.0
//
// Scalar code of kernel bodies as C++ text, the same for every target: a value
// used once becomes part of the expression that uses it, any other a named
// constant. Function names are those of the target's math header.
#pragma once

#include "compiler/emit/source_writer.h"
#include "dialects/kernel/loop_nest.h"

namespace trainc {

/// C++ name of a scalar type; i1 is bool.
llvm::StringRef scalarType(mlir::Type type);
/// C++ name of an element in memory; i1 is uint8_t.
llvm::StringRef elementType(mlir::Type type);

/// A number as C++ text, as in a table of constants: bool is 0 or 1.
std::string literal(mlir::Attribute number);

/// What the emitted function of a kernel is called, and the names in it (of kind kChosenName).
struct KernelNames {
  std::string function;
  llvm::SmallVector<std::string> deviceFunctions; // one for each part of a schedule for cuda
  llvm::SmallVector<std::string> indices;         // one per dimension
  llvm::SmallVector<std::string> buffers;         // one per argument
  /// For each argument the first one that is the same tensor in every launch: they are one in C++.
  llvm::SmallVector<unsigned> same;
  llvm::SmallVector<std::string> types; // of the tensors in its first launch: `f32 [4, 64]`
  NameTable locals;                     // with all of these, for what stands in the body
  // The caller says which points of the only dimension: `element_range points`, for cuda several.
  bool inParts = false;
  int number = 0; // among the kernels of the program
};

/// Whether it stores numbers of one byte, which C++ lets overwrite what has any type.
bool storesBytes(kernel::FunctionOp function);

class ExpressionPrinter {
public:
  ExpressionPrinter(const LoopNest &nest, SourceWriter &writer, const KernelNames &kernel);

  /// C++ text of a dimension's current index, such as `i` or `first + lane`.
  void setIndex(size_t dimension, std::string text) { indices[dimension] = std::move(text); }
  llvm::StringRef index(size_t dimension) const { return indices[dimension]; }
  llvm::StringRef buffer(unsigned argument) const { return buffers[argument]; }
  void setText(mlir::Value value, std::string text) { texts[value] = {std::move(text), 20}; }
  /// The element that a load or store means, such as `x[i * 64 + j]`.
  std::string element(mlir::Operation *access);
  /// Another name for it, such as a lane of a vector: `x_4[lane]`.
  void setElement(mlir::Operation *access, std::string text) { elements[access] = std::move(text); }

  /// Prints the operation as a statement, or keeps it for the expressions of its users.
  void print(mlir::Operation &op);
  /// Text of a value that has been printed, fit as an operand of comma, assignment or call.
  std::string text(mlir::Value value);

  NameTable names;

private:
  struct Text {
    std::string text;
    int precedence; // as in C++: 20 primary ... 1
  };
  bool leavesInt(mlir::Operation &op) const;
  Text expression(mlir::Operation &op);
  Text constant(mlir::Attribute value);
  Text compareIntegers(mlir::Operation &op);
  Text compareFloats(mlir::arith::CmpFOp compare);
  Text selection(mlir::arith::SelectOp select);
  Text conversion(mlir::Operation &op);
  Text operation(mlir::Operation &op, const std::string &sign, int precedence);
  std::string operand(mlir::Value value, int minimum);
  std::string address(unsigned argument);
  std::string indexed(kernel::LoadOp load, const std::string &at);
  std::string loadText(kernel::LoadOp load);
  bool printsInline(mlir::Operation &op, const Text &text);
  std::string temporaryName(mlir::Operation &op);

  const LoopNest &nest;
  SourceWriter &writer;
  bool storesNarrow = false; // math.h says what GCC makes of it
  llvm::DenseMap<mlir::Value, Text> texts;
  llvm::DenseMap<mlir::Operation *, std::string> elements;
  llvm::SmallVector<std::string> indices, buffers;
};

} // namespace trainc
