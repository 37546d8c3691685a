// SPDX-License-Identifier: Apache-2.0
//
// Builds an ONNX graph node by node from a function: names of values, initializers, and tensors
// that operators spread by themselves.
#pragma once

#include "compiler/onnx/file/model_file.h"
#include "dialects/names/unique_names.h"
#include "dialects/nn/nn.h"
#include "dialects/nn/tensor.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"
#include <string>
#include <vector>

namespace trainc {

/// onnx::TensorProto::DataType of an element type.
int32_t onnxType(mlir::Type element);

/// Says what an input, an output or another value of the graph is.
void describe(onnx::ValueInfoProto &value, llvm::StringRef name, mlir::RankedTensorType type);

using reader::setInteger;
using reader::setIntegers;

class GraphWriter {
public:
  /// What `function` is called outside: names of its arguments and of its results.
  GraphWriter(onnx::GraphProto &graph, mlir::func::FuncOp function,
              llvm::ArrayRef<std::string> inputs, llvm::ArrayRef<std::string> outputs);

  /// The value with all its elements. What is only repeated gets nodes here, when it is needed.
  std::string whole(mlir::Value value);
  /// Operands of a pointwise operator: repeated ones as what is repeated, where the operator then
  /// still makes a tensor of this shape.
  std::vector<std::string> spread(mlir::ValueRange operands, llvm::ArrayRef<int64_t> shape);

  /// A node that makes a value, called as it is. Its further outputs have no name.
  onnx::NodeProto &node(llvm::StringRef opType, llvm::ArrayRef<std::string> inputs,
                        mlir::Value value);
  /// A node on the way to a value: its output.
  std::string part(llvm::StringRef opType, llvm::ArrayRef<std::string> inputs, mlir::Value value);
  /// Names the second output of a node.
  std::string secondOutput(onnx::NodeProto &node);
  /// The last node that was made.
  onnx::NodeProto &last() { return *graph.mutable_node(graph.node_size() - 1); }

  std::string integers(llvm::ArrayRef<int64_t> numbers); // of one axis
  std::string scalar(double number, mlir::Type element);
  std::string scalar(const nn::Tensor &value); // of elements that are all equal
  std::string initializer(llvm::StringRef name, const nn::Tensor &values);
  std::string reshaped(const std::string &x, llvm::ArrayRef<int64_t> shape, mlir::Value value);

  /// The results: what has another name, or none, is copied.
  void finish(mlir::func::FuncOp function, llvm::ArrayRef<std::string> outputs);

private:
  /// A tensor that an operator spreads to the shape of `value` by NumPy's rule.
  struct Thin {
    std::string name;
    llvm::SmallVector<int64_t> shape;
  };
  Thin thin(mlir::Value value);
  Thin thinBroadcast(mlir::Value value, mlir::Value x, llvm::ArrayRef<int64_t> dimensions);
  Thin thinIndex(mlir::Value value, int64_t dimension);
  std::string made(mlir::Value value);
  std::string nameOf(mlir::Value value);
  onnx::NodeProto &add(llvm::StringRef opType, llvm::ArrayRef<std::string> inputs,
                       std::string output);

  onnx::GraphProto &graph;
  UniqueNames names;
  llvm::DenseMap<mlir::Value, std::string> known;  // values with nodes, arguments
  llvm::DenseMap<mlir::Value, std::string> wanted; // results
  llvm::DenseMap<mlir::Value, Thin> thinned;
  llvm::StringMap<mlir::Operation *> bearers; // of a name, of all that would have it
  llvm::StringMap<std::string> shared;        // initializers by content
};

} // namespace trainc
