// SPDX-License-Identifier: Apache-2.0
//
// ONNX Range: start + i * step.
#include "dialects/nn/interpreter.h"
#include "dialects/nn/onnx/onnx_node.h"
#include "dialects/nn/onnx/onnx_refusal.h"
#include <cmath>

using namespace mlir;

namespace trainc::nn {

static const OnnxRefusal longRanges({"Range"}, "more than 2^24 elements");

static OnnxResults importRange(OnnxNode &node) {
  constexpr const char *settings[] = {"start", "limit", "step"};
  for (auto [i, what] : llvm::enumerate(settings))
    if (failed(node.knownNumber(i, what)))
      return failure();
  double start = node.constant(0).real(0), step = node.constant(2).real(0);
  if (step == 0)
    return node.error("its step is 0", "a step that leads from its start to its limit");
  double size = std::ceil((node.constant(1).real(0) - start) / step);
  if (std::isnan(size))
    return node.error("its bounds and step give no number of elements");
  const bool canCount = size <= static_cast<double>(kLargestTensor);
  SmallVector<int64_t> shape{canCount ? static_cast<int64_t>(std::max(size, 0.0)) : kLargestTensor};
  if (shape[0] > kLargestFolded)
    return node.error(
        longRanges.told((canCount ? "has " + llvm::Twine(shape[0]) : "has more than 2^40") +
                        " elements, at most " + llvm::Twine(kLargestFolded) + " are supported"));
  Builder &builder = node.builder();
  Value first = builder.reshape(node.input(0), {}), stride = builder.reshape(node.input(2), {});
  auto type = tensorType(first);
  if (tensorType(stride) != type ||
      tensorType(node.input(1)).getElementType() != type.getElementType())
    return node.error("its bounds and step have different element types",
                      "insert a Cast before the node");
  Value index = builder.create<IotaOp>(type.clone(shape), 0);
  Value distance = builder.mul(index, builder.broadcastTo(stride, shape));
  return SmallVector<Value>{builder.add(builder.broadcastTo(first, shape), distance)};
}

static OnnxRegistration range = OnnxRegistration("Range", 11, importRange, settingsFrom<0>)
                                    .gradientOf({})
                                    .mustKnow(0, "start")
                                    .mustKnow(1, "limit")
                                    .mustKnow(2, "step");

} // namespace trainc::nn
