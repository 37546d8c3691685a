// SPDX-License-Identifier: Apache-2.0
//
// nn.segment_broadcast. It comes from optimizers; no ONNX operator is it.
#include "dialects/nn/library_step.h"

using namespace mlir;

namespace trainc::nn {

LogicalResult SegmentBroadcastOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                                   Adaptor adaptor, SmallVectorImpl<Type> &types) {
  auto values = tensorType(adaptor.getValues()), segments = tensorType(adaptor.getSegments());
  if (values.getRank() != 1 ||
      segments.getShape() !=
          ArrayRef({values.getNumElements(), int64_t(2)})) // segment_broadcast-c1
    return emitOptionalError(location, "takes one value for each pair of i64, found ", values,
                             " and ", segments);
  auto elements = static_cast<int64_t>(adaptor.getElements());
  if (elements < 1) // segment_broadcast-c2
    return emitOptionalError(location, "elements is positive, found ", elements);
  types.push_back(values.clone(ArrayRef(elements)));
  return success();
}

double SegmentBroadcastOp::flops() { return 0; }

FailureOr<Tensor> SegmentBroadcastOp::interpret(ArrayRef<Tensor> operands) {
  auto type = getResult().getType();
  std::vector<double> values = operands[0].reals(), result(type.getNumElements(), 0);
  std::vector<int64_t> bounds = operands[1].integers();
  int64_t end = 0;
  for (auto [s, value] : llvm::enumerate(values)) {
    if (bounds[2 * s] < end || bounds[2 * s + 1] > type.getNumElements())
      return emitOpError("segment ")
             << bounds[2 * s] << " to " << bounds[2 * s + 1] << " is out of range or order";
    end = bounds[2 * s + 1];
    for (int64_t i = bounds[2 * s]; i < end; ++i)
      result[i] = value;
  }
  return Tensor::ofReals(type, result);
}

SmallVector<Replacement> SegmentBroadcastOp::lowerToStep(StepBuilder &builder) {
  SmallVector<int64_t> numbers{getValues().getType().getNumElements(),
                               static_cast<int64_t>(getElements())};
  SmallVector<Value> inputs{builder.contiguous(getValues()), builder.contiguous(getSegments())};
  auto call = builder.create<kernel::CallOp>(TypeRange{getResult().getType()}, "segment_broadcast",
                                             "segments", numbers, inputs);
  return {{getResult(), call.getOuts().front()}};
}

} // namespace trainc::nn
