// SPDX-License-Identifier: Apache-2.0
//
// ONNX ReverseSequence: the first elements of each sequence in reverse order, as many as a tensor
// of lengths says, the others as they are. Lengths may be computed when the step runs; one that is
// larger than the sequence indexes beyond it and is reported as such.
#include "dialects/nn/onnx/onnx_node.h"

using namespace mlir;

namespace trainc::nn {

static OnnxResults importReverseSequence(OnnxNode &node) {
  Builder &builder = node.builder();
  Value x = node.input(0), lengths = builder.cast(node.input(1), builder.op().getI64Type());
  auto type = tensorType(x);
  int64_t batchAxis = node.integer("batch_axis", 1), timeAxis = node.integer("time_axis", 0);
  if (type.getRank() < 2 || batchAxis + timeAxis != 1 || batchAxis * timeAxis != 0)
    return node.error("expects an operand of rank 2 or more, its axes 0 and 1");
  int64_t batch = type.getDimSize(batchAxis), time = type.getDimSize(timeAxis);
  if (tensorType(lengths).getShape() != ArrayRef<int64_t>{batch})
    return node.error("its lengths are not one for each of " + llvm::Twine(batch) + " sequences");
  if (auto known = node.integers(1))
    for (int64_t length : *known)
      if (length < 0 || length > time)
        return node.error("a sequence is " + llvm::Twine(length) + " long, expected 0 to " +
                          llvm::Twine(time));
  Value timeFirst = builder.exchange(x, 0, timeAxis);
  SmallVector<int64_t> shape(tensorType(timeFirst).getShape()), rows{time * batch};
  llvm::append_range(rows, ArrayRef(shape).drop_front(2));

  auto places = RankedTensorType::get({time, batch}, builder.op().getI64Type());
  Value at = builder.create<IotaOp>(places, 0), sequence = builder.create<IotaOp>(places, 1);
  Value length = builder.broadcast(lengths, {1}, places.getShape());
  Value last = builder.sub(length, builder.constant(1, places));
  Value from = builder.select(builder.create<LessOp>(at, length), builder.sub(last, at), at);
  Value row = builder.add(builder.scale(from, static_cast<double>(batch)), sequence);
  Value gathered = builder.create<GatherOp>(builder.reshape(timeFirst, rows),
                                            builder.reshape(row, {time * batch}));
  return SmallVector<Value>{builder.exchange(builder.reshape(gathered, shape), 0, timeAxis)};
}

static OnnxRegistration reverseSequence("ReverseSequence", 10, importReverseSequence);

} // namespace trainc::nn
