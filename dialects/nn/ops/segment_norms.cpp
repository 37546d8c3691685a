// SPDX-License-Identifier: Apache-2.0
//
// nn.segment_norms. It comes from optimizers; no ONNX operator is it.
#include "dialects/nn/library_step.h"
#include <cmath>

using namespace mlir;

namespace trainc::nn {

// Pieces of each segment, which threads share. Enough for a segment that is nearly the whole arena.
static constexpr int64_t kPieces = 64;

LogicalResult SegmentNormsOp::inferReturnTypes(MLIRContext *context,
                                               std::optional<Location> location, Adaptor adaptor,
                                               SmallVectorImpl<Type> &types) {
  auto x = tensorType(adaptor.getX()), segments = tensorType(adaptor.getSegments());
  if (x.getRank() != 1 || segments.getRank() != 2 ||
      segments.getDimSize(1) != 2) // segment_norms-c1
    return emitOptionalError(location, "takes a flat tensor and pairs of i64, found ", x, " and ",
                             segments);
  types.push_back(RankedTensorType::get({segments.getDimSize(0)}, Float64Type::get(context)));
  return success();
}

double SegmentNormsOp::flops() { return 2.0 * getX().getType().getNumElements(); }

FailureOr<Tensor> SegmentNormsOp::interpret(ArrayRef<Tensor> operands) {
  std::vector<double> x = operands[0].reals(), norms;
  std::vector<int64_t> bounds = operands[1].integers();
  for (size_t s = 0; s < bounds.size(); s += 2) {
    if (bounds[s] < 0 || bounds[s + 1] > static_cast<int64_t>(x.size()))
      return emitOpError("segment ") << bounds[s] << " to " << bounds[s + 1]
                                     << " is out of range for " << x.size() << " elements";
    double sum = 0;
    for (int64_t i = bounds[s]; i < bounds[s + 1]; ++i)
      sum += x[i] * x[i];
    norms.push_back(std::sqrt(sum));
  }
  return Tensor::ofReals(getResult().getType(), norms);
}

SmallVector<Replacement> SegmentNormsOp::lowerToStep(StepBuilder &builder) {
  int64_t segments = getResult().getType().getNumElements();
  SmallVector<int64_t> numbers{segments, kPieces, getX().getType().getNumElements()};
  SmallVector<Value> inputs{builder.contiguous(getX()), builder.contiguous(getSegments())};
  auto call = builder.create<kernel::CallOp>(TypeRange{getResult().getType()}, "segment_norms",
                                             "segments", numbers, inputs);
  call.setScratchBytes(segments * kPieces * static_cast<int64_t>(sizeof(double)));
  call.setFlops(APFloat(flops()));
  return {{getResult(), call.getOuts().front()}};
}

} // namespace trainc::nn
