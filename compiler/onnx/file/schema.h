// SPDX-License-Identifier: Apache-2.0
//
// What ONNX declares of its own operators, in every operator set that is read here.
#pragma once

#include "compiler/onnx/graph/graph.h"

namespace trainc::reader {

/// Operator sets that are read; schemas.inc declares these.
constexpr int64_t kOldestOpset = 6, kNewestOpset = 28;

/// Inputs, outputs and attributes of an operator; see schemas.inc.
struct Declaration {
  const char *opType;
  int64_t since;      // the first operator set for which it holds
  const char *inputs; // a letter each: r required, o optional, v any number of them
  const char *types;  // a letter each: i integers, b bools, the same capital: one type, - any
  unsigned leastInputs;
  const char *outputs; // likewise
  unsigned leastOutputs;
  const char *attributes; // `name:kind`, with ! where one must be there, between spaces
};

/// Null where the operator set has no such operator.
const Declaration *findDeclaration(llvm::StringRef opType, int64_t opset);

/// The first operator set that has the operator, 0 where none does.
int64_t firstOpset(llvm::StringRef opType);

/// The first operator set that has it no more, 0 where there is none.
int64_t endOpset(llvm::StringRef opType);

/// What an attribute holds, as declarations call it, such as `ints`; empty where it does not say.
llvm::StringRef kindOf(const onnx::AttributeProto &attribute);

/// What a node of ONNX's own domain has that its declaration does not, or lacks; empty where all is
/// well. Importers need not check that.
std::string checkNode(const GraphNode &node);

/// What an input is of: `bool`, or as MLIR writes it; empty where there is none.
struct InputType {
  std::string element;
  bool isConstant = false;
};

/// The same of the element types of its inputs. Exporters mix widths of integers, and of floats
/// where one is a constant: importers take that or refuse it.
std::string checkTypes(const GraphNode &node, llvm::ArrayRef<InputType> inputs);

/// Whether such a node computes something else than one with the same inputs and attributes in the
/// newest operator set.
bool hasOlderMeaning(const GraphNode &node);

/// Whether such a node is one of another operator set, too, and computes the same there.
bool meansTheSame(const GraphNode &node, int64_t opset);

} // namespace trainc::reader
