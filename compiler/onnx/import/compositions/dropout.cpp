// SPDX-License-Identifier: Apache-2.0
//
// ONNX Dropout. Where the file says that it drops (training_mode, before operator set 7 no
// is_test), it does in training; in inference, and where it says nothing, it is nothing.
#include "dialects/nn/dropout.h"
#include "compiler/onnx/import/compositions/random.h"

using namespace mlir;

namespace trainc::nn {

static FailureOr<double> ratioOf(OnnxNode &node) {
  if (node.opset() < 12)
    return node.real("ratio", 0.5);
  if (!node.hasInput(1))
    return 0.5;
  return node.knownNumber(1, "ratio");
}

static FailureOr<bool> drops(OnnxNode &node) {
  if (node.opset() < 7)
    return node.integer("is_test", 0) == 0;
  if (!node.hasInput(2))
    return false;
  FailureOr<int64_t> training = node.knownInteger(2, "training_mode");
  if (failed(training))
    return failure();
  return *training != 0;
}

static OnnxResults importDropout(OnnxNode &node) {
  FailureOr<double> ratio = ratioOf(node);
  FailureOr<bool> training = drops(node);
  if (failed(ratio) || failed(training))
    return failure();
  if (!(*ratio >= 0 && *ratio <= 1))
    return node.error("its ratio is " + llvm::Twine(std::to_string(*ratio)) +
                      ", expected one within [0, 1]");
  Builder &builder = node.builder();
  Value x = node.input(0);
  auto type = tensorType(x);
  auto maskType = node.opset() < 10 ? type : type.clone(builder.op().getI1Type());
  Value all = node.outputUsed(1) ? builder.constant(1, maskType) : Value();
  if (!*training || *ratio == 0)
    return SmallVector<Value>{x, all};
  Value random = randomBits(node, type.getShape(), kDropoutBits);
  auto dropped = static_cast<int64_t>(std::round(std::ldexp(*ratio, kDropoutBits)));
  Value keep = builder.named("keep", keptElements(builder, random, dropped));
  // A factor, as in PyTorch: what is not a number stays none.
  Value mask = builder.named("mask", dropoutMask(builder, keep, dropped, type));
  Value y = builder.create<TrainingFormOp>(builder.mul(x, mask), x);
  if (!all)
    return SmallVector<Value>{y, all};
  Value kept = builder.cast(keep, maskType.getElementType());
  return SmallVector<Value>{y, builder.create<TrainingFormOp>(kept, all)};
}

// Its ratio and mode stand after the input.
static OnnxRegistration dropout = OnnxRegistration("Dropout", 6, importDropout, settingsFrom<1>)
                                      .mustKnow(1, "ratio")
                                      .mustKnow(2, "training_mode");

} // namespace trainc::nn
