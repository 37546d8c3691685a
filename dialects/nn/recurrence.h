// SPDX-License-Identifier: Apache-2.0
//
// What nn.lstm, nn.gru and nn.rnn share: shape rules, the call of the runtime's function, and the
// reading of ONNX's LSTM, GRU and RNN.
#pragma once

#include "dialects/nn/library_step.h"
#include "dialects/nn/onnx/onnx_node.h"
#include "runtime/kernels/recurrent_cells.h"

namespace trainc::nn {

/// The sizes of `blocks` gates and their recurrent weight; fails without a message where they are
/// none of a recurrence.
mlir::FailureOr<recurrence_sizes> recurrenceSizes(mlir::RankedTensorType gates,
                                                  mlir::RankedTensorType r, int64_t blocks);

/// An operand and the shape that follows from the sizes; lengths are of i64, others of `element`.
struct SizedOperand {
  llvm::StringRef name;
  mlir::Value operand;
  llvm::SmallVector<int64_t> shape;
};
mlir::LogicalResult checkOperands(std::optional<mlir::Location> location, mlir::Type element,
                                  llvm::ArrayRef<SizedOperand> operands);

/// That each of `count` names is an activation whose slope follows from its value, and has two
/// numbers; that `clip` is not negative.
mlir::LogicalResult checkActivations(std::optional<mlir::Location> location,
                                     mlir::ArrayAttr activations, llvm::ArrayRef<double> alphas,
                                     llvm::ArrayRef<double> betas, const llvm::APFloat &clip,
                                     size_t count);

/// A cell's functions, as the runtime's and the interpreter take them.
struct CellFunctions {
  llvm::SmallVector<int64_t> kinds;
  llvm::ArrayRef<double> alphas, betas;
  double clip;

  any_gate<double> gate(size_t number) const {
    return {static_cast<activation>(kinds[number]), alphas[number], betas[number]};
  }
  bounded<double, any_gate<double>> boundedGate(size_t number) const {
    return {gate(number), clip};
  }
};
CellFunctions cellFunctions(mlir::ArrayAttr activations, llvm::ArrayRef<double> alphas,
                            llvm::ArrayRef<double> betas, const llvm::APFloat &clip);
template <typename Op> CellFunctions cellFunctions(Op op) {
  return cellFunctions(op.getActivations(), op.getAlphas(), op.getBetas(), op.getClip());
}

/// A call of the runtime's function in the place of a recurrence.
struct RecurrenceCall {
  llvm::StringRef library, function;
  int64_t blocks;
  recurrence_sizes sizes;
  std::optional<bool> flag;                 // after the common numbers
  llvm::SmallVector<int64_t> inPlace;       // of each result, the operand it overwrites or -1
  llvm::SmallVector<llvm::StringRef> roles; // of each result, in names
};
llvm::SmallVector<Replacement> lowerRecurrence(StepBuilder &builder, mlir::Operation *op,
                                               const CellFunctions &functions, bool reverse,
                                               const RecurrenceCall &call);

/// Multiplications with r and what the cells cost, roughly.
double recurrenceFlops(const recurrence_sizes &sizes, int64_t blocks);

/// The states or cells of [steps + 1, ...] that the steps began with, or what they gave.
mlir::Value beforeSteps(Builder &builder, mlir::Value states, bool reverse);
mlir::Value behindSteps(Builder &builder, mlir::Value states, bool reverse);
/// Elements `first` to `first + count` of the blocks that the last dimension has.
mlir::Value blocksOf(Builder &builder, mlir::Value gates, int64_t hidden, int64_t first,
                     int64_t count = 1);
/// The product of all steps that is the gradient of r: gradients of blocks with what r met.
mlir::Value weightOfSteps(Builder &builder, mlir::Value gradients, mlir::Value met);

/// What the reference interpreter walks over: one element of the state at a step.
template <typename Visit>
void forEachCell(const recurrence_sizes &sizes, llvm::ArrayRef<int64_t> lengths, int64_t step,
                 Visit visit) {
  for (int64_t sequence = 0; sequence < sizes.batch; ++sequence)
    for (int64_t j = 0; j < sizes.hidden; ++j)
      visit(sequence, j, step < lengths[sequence]);
}

// ---- ONNX

/// One direction of a layer, ready for its operation.
struct RecurrentDirection {
  mlir::Value gates, r, bias, peepholes, h, c, lengths; // bias: that of W, then that of R
  mlir::ArrayAttr activations;
  llvm::SmallVector<double> alphas, betas;
  double clip;
  bool reverse;
};
struct RecurrentResults {
  mlir::Value states, cell; // cell: the last, or null
};

struct RecurrentKind {
  int64_t blocks;                        // gates
  llvm::ArrayRef<llvm::StringRef> usual; // activations
  bool hasCell;
};

/// Reads a node, builds the directions by `build` and puts the outputs together.
OnnxResults
importRecurrent(OnnxNode &node, const RecurrentKind &kind,
                llvm::function_ref<RecurrentResults(Builder &, const RecurrentDirection &)> build);

/// W, R, biases and peepholes.
OnnxWeight weightsOfRecurrent(unsigned input, llvm::ArrayRef<int64_t> shape);

} // namespace trainc::nn
