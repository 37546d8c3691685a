// SPDX-License-Identifier: Apache-2.0
//
// nn.scatter_add. It comes from the gradient of gather; no ONNX operator is it.
#include "dialects/nn/builder.h"
#include "dialects/nn/library_step.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace trainc::nn {

LogicalResult ScatterAddOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                             Adaptor adaptor, SmallVectorImpl<Type> &types) {
  auto table = tensorType(adaptor.getTable()), updates = tensorType(adaptor.getUpdates());
  SmallVector<int64_t> shape(tensorType(adaptor.getIndices()).getShape());
  if (table.getRank() > 0)
    llvm::append_range(shape, table.getShape().drop_front());
  if (table.getRank() < 1 || updates.getShape() != ArrayRef(shape)) // scatter_add-c1
    return emitOptionalError(location, "updates have shape indices x rows of the table, found ",
                             updates, " for table ", table, " and indices ",
                             adaptor.getIndices().getType());
  if (table.getElementType() != updates.getElementType()) // scatter_add-c2
    return emitOptionalError(location, "table and updates agree in element type, found ", table,
                             " and ", updates);
  types.push_back(table);
  return success();
}

LogicalResult ScatterAddOp::buildGradient(Builder &builder, ArrayRef<Value> resultGradients,
                                          const llvm::SmallBitVector &needed,
                                          SmallVectorImpl<Value> &operandGradients) {
  operandGradients.assign(3, Value());
  operandGradients[0] = resultGradients[0];
  if (needed[2])
    operandGradients[2] = builder.create<GatherOp>(resultGradients[0], getIndices());
  return success();
}

double ScatterAddOp::flops() { return getUpdates().getType().getNumElements(); }

// Each addition rounds: the order of the updates is part of the meaning.
FailureOr<Tensor> ScatterAddOp::interpret(ArrayRef<Tensor> operands) {
  auto type = getResult().getType();
  std::vector<double> table = operands[0].reals(), updates = operands[2].reals();
  auto rounded = [stored = elementTypeOf(type).stored](double sum) {
    return withHostType(
        stored, [&](auto zero) { return static_cast<double>(static_cast<decltype(zero)>(sum)); });
  };
  int64_t rows = type.getDimSize(0), row = computeProduct(type.getShape().drop_front());
  for (auto [i, index] : llvm::enumerate(operands[1].integers())) {
    if (index < 0 || index >= rows)
      return emitError("index ") << index << " is outside [0, " << rows << ")";
    for (int64_t k = 0; k < row; ++k) {
      double &to = table[index * row + k];
      to = rounded(to + updates[i * row + k]);
    }
  }
  return Tensor::ofReals(type, table);
}

// From the table it reads the rows that are added to.
int64_t ScatterAddOp::bytesRead(unsigned operand) {
  return bytesOf((operand == 0 ? getUpdates() : getOperand(operand)).getType());
}

SmallVector<Replacement> ScatterAddOp::lowerToStep(StepBuilder &builder) {
  SmallVector<Value> inputs{builder.contiguous(getIndices()), builder.contiguous(getUpdates())};
  SmallVector<int64_t> reads{bytesRead(1), bytesRead(2)};
  bool fromZero = matchPattern(getTable(), m_AnyZeroFloat());
  if (!fromZero) {
    inputs.push_back(builder.overwritable(getTable()));
    reads.push_back(bytesRead(0));
  }
  RankedTensorType table = getTable().getType();
  int64_t rows = table.getDimSize(0), columns = table.getNumElements() / std::max<int64_t>(rows, 1);
  SmallVector<int64_t> numbers{getIndices().getType().getNumElements(), rows, columns};
  auto call = builder.create<kernel::CallOp>(TypeRange{table},
                                             fromZero ? "scatter_add_from_zero" : "scatter_add",
                                             "scatter_add", numbers, inputs);
  if (!fromZero)
    call.setInPlace(ArrayRef<int64_t>{2});
  call.setFlops(APFloat(flops()));
  call.setReads(reads);
  call.setWrites({bytesRead(0) + (fromZero ? bytesOf(table) : 0)});
  return {{getResult(), call.getOuts().front()}};
}

} // namespace trainc::nn
