// SPDX-License-Identifier: Apache-2.0
//
// ONNX GroupNormalization: layer norm of each sample's groups of channels, then a scale and a bias
// per channel (below opset 21 per group). InstanceNormalization has one channel per group.
#include "dialects/nn/onnx/onnx_node.h"

using namespace mlir;

namespace trainc::nn {

// Input `index` (scale or bias) of `count` elements, repeated for the channels of its group and in
// the shape of `type`.
static FailureOr<Value> perChannel(OnnxNode &node, unsigned index, int64_t count,
                                   RankedTensorType type) {
  Builder &builder = node.builder();
  Value values = node.input(index);
  int64_t channels = type.getDimSize(1), repeated = channels / std::max<int64_t>(count, 1);
  if (tensorType(values) != type.clone(ArrayRef(count)))
    return node.error(llvm::Twine(index == 1 ? "scale" : "bias") + " does not fit the input",
                      "one number for each of the " + llvm::Twine(count) +
                          (count == channels ? " channels" : " groups"));
  if (repeated > 1)
    values = builder.reshape(builder.broadcast(values, {0}, {count, repeated}), {channels});
  return builder.broadcast(values, {1}, type.getShape());
}

// `count` numbers scale and shift the channels of `groups`.
static OnnxResults normalize(OnnxNode &node, int64_t groups, int64_t count) {
  Builder &builder = node.builder();
  Value x = node.input(0);
  RankedTensorType type = tensorType(x);
  double epsilon = node.real("epsilon", 1e-5f);
  if (!isa<FloatType>(type.getElementType()))
    return node.error("its operand is not of a float type", "insert a Cast before the node");
  if (epsilon < 0)
    return node.error("epsilon is negative");
  ArrayRef<int64_t> shape = type.getShape();
  int64_t size = shape[1] / groups;
  for (int64_t extent : shape.drop_front(2))
    size *= extent;
  Value flat = builder.reshape(x, {shape[0], groups, size});
  Value y = builder.reshape(
      builder.named("normalized", builder.create<LayerNormOp>(flat, llvm::APFloat(epsilon))),
      shape);
  FailureOr<Value> scale = perChannel(node, 1, count, type);
  FailureOr<Value> bias = perChannel(node, 2, count, type);
  if (failed(scale) || failed(bias))
    return failure();
  return SmallVector<Value>{builder.add(builder.named("scaled", builder.mul(y, *scale)), *bias)};
}

static OnnxResults importGroups(OnnxNode &node, bool perGroup) {
  RankedTensorType type = tensorType(node.input(0));
  int64_t groups = node.integer("num_groups", 0);
  if (type.getRank() < 2)
    return node.error("its operand has rank " + llvm::Twine(type.getRank()) +
                      ", expected 2 or more");
  int64_t channels = type.getDimSize(1);
  if (groups < 1 || channels % groups != 0)
    return node.error("cannot divide " + llvm::Twine(channels) + " channels into " +
                      llvm::Twine(groups) + " groups");
  return normalize(node, groups, perGroup ? groups : channels);
}

static OnnxResults importGroupsScaledByGroup(OnnxNode &node) { return importGroups(node, true); }
static OnnxResults importGroupsScaledByChannel(OnnxNode &node) { return importGroups(node, false); }

static OnnxResults importInstanceNormalization(OnnxNode &node) {
  RankedTensorType type = tensorType(node.input(0));
  if (type.getRank() < 2 || type.getDimSize(1) < 1)
    return node.error("its operand has no channels");
  return normalize(node, type.getDimSize(1), type.getDimSize(1));
}

static OnnxWeight weightsOfNormalization(unsigned input, ArrayRef<int64_t>) {
  return input == 1 ? OnnxWeight::scale : input == 2 ? OnnxWeight::bias : OnnxWeight::none;
}

static OnnxRegistration scaledByGroup("GroupNormalization", 18, importGroupsScaledByGroup,
                                      weightsOfNormalization);
static OnnxRegistration scaledByChannel("GroupNormalization", 21, importGroupsScaledByChannel,
                                        weightsOfNormalization);
static OnnxRegistration instanceNormalization("InstanceNormalization", 6,
                                              importInstanceNormalization, weightsOfNormalization);

} // namespace trainc::nn
