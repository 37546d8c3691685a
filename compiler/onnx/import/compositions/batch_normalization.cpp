// SPDX-License-Identifier: Apache-2.0
//
// ONNX BatchNormalization. As PyTorch's module in train(): in training by the statistics of the
// batch; the running ones keep a mean of these with decaying weights. In inference by the running
// ones. The mode that the file says does not matter: PyTorch's default exporter always says
// inference. A model that is only run is taken at its word.
//
// With --batch-norm all-ranks the batch is that of all ranks, those of a micro-batch together.
//
// The running variance takes the unbiased variance of the batch, as in PyTorch and as its exporters
// mean it; ONNX's operator would take the biased one.
#include "dialects/nn/normalization.h"
#include "dialects/nn/onnx/onnx_node.h"
#include "dialects/nn/onnx/onnx_refusal.h"

using namespace mlir;

namespace trainc::nn {

static const OnnxRefusal ofEachElement({"BatchNormalization"}, "`spatial` = 0");

namespace {

class BatchNormalization {
public:
  explicit BatchNormalization(OnnxNode &node)
      : node(node), builder(node.builder()), x(node.input(0)), type(tensorType(x)),
        saysBatch(saysBatchStatistics(node.opset(), node.integer("training_mode", 0),
                                      node.integer("is_test", 0), node.numOutputs())) {}

  OnnxResults build() {
    if (failed(check()))
      return failure();
    BatchNormMode mode = node.batchNormMode();
    bool hasBuffers = node.buffer(3) && node.buffer(4);
    allRanks = mode == BatchNormMode::trainAllRanks;
    if (trainsStatistics(mode) && hasBuffers)
      return replacingStatistics();
    if (trainsStatistics(mode))
      return node.error("its running statistics are not initializers, so that no step can replace "
                        "them",
                        "--batch-norm frozen");
    bool ofBatch = mode == BatchNormMode::file && saysBatch;
    SmallVector<Value> results{ofBatch ? byBatch() : byRunningStatistics()};
    if (ofBatch)
      addOutputs(results);
    return results;
  }

private:
  LogicalResult check() {
    if (!isa<FloatType>(type.getElementType()) || type.getRank() < 2)
      return node.error("its operand is not of a float type with batch and channels");
    auto perChannel = type.clone(type.getShape().slice(1, 1));
    for (unsigned i = 1; i < 5; ++i)
      if (tensorType(node.input(i)) != perChannel) {
        static constexpr const char *names[] = {"scale", "bias", "mean", "variance"};
        return node.error(llvm::Twine("its ") + names[i - 1] + " does not fit the input",
                          "one number for each of the " + llvm::Twine(type.getDimSize(1)) +
                              " channels, of the input's type");
      }
    if (node.opset() < 9 && node.integer("spatial", 1) == 0)
      return node.error(ofEachElement.told(
          "normalizes each element by itself (spatial = 0), which is not supported"));
    epsilon = node.real("epsilon", 1e-5f);
    momentum = node.real("momentum", 0.9f);
    if (!(epsilon >= 0))
      return node.error("epsilon is negative");
    return success();
  }

  int64_t count() const { return type.getNumElements() / type.getDimSize(1); } // per channel

  Value spread(Value channels) { return builder.broadcast(channels, {1}, type.getShape()); }

  Value scaleAndShift(Value normalized) {
    Value scaled = builder.mul(normalized, spread(node.input(1)));
    return builder.add(builder.named("scaled", scaled), spread(node.input(2)));
  }

  Value byBatch() {
    return scaleAndShift(builder.named(
        "normalized", builder.create<BatchNormOp>(x, llvm::APFloat(epsilon), allRanks)));
  }

  Value byRunningStatistics() {
    Value variance = node.input(4);
    Value rstd = builder.named(
        "running_rstd", builder.create<RsqrtOp>(
                            builder.add(variance, builder.constant(epsilon, variance.getType()))));
    Value centered = builder.named("centered", builder.sub(x, spread(node.input(3))));
    return scaleAndShift(builder.named("normalized", builder.mul(centered, spread(rstd))));
  }

  // momentum * running + factor * of the batch
  Value mix(StringRef role, Value running, Value ofBatch, Value factor) {
    Value kept = builder.scale(running, momentum);
    return builder.named(role, builder.add(kept, builder.mul(ofBatch, factor)));
  }
  Value mix(StringRef role, Value running, Value ofBatch) {
    return mix(role, running, ofBatch, builder.constant(1 - momentum, ofBatch.getType()));
  }

  // (1 - momentum) times what makes the variance unbiased. How many ranks there are the step knows.
  Value factorOfVariance(const Normalization &ofBatch) {
    auto count = static_cast<double>(this->count());
    auto type = tensorType(ofBatch.variance);
    if (!ofBatch.ranks)
      return builder.constant((1 - momentum) * (count / (count - 1)), type);
    Value all = builder.scale(ofBatch.ranks, count);
    Value unbiased = builder.div(all, builder.sub(all, builder.constant(1, all.getType())));
    Value factor = builder.cast(builder.scale(unbiased, 1 - momentum), type.getElementType());
    return builder.broadcast(factor, {}, type.getShape());
  }

  OnnxResults replacingStatistics() {
    if (count() < 2)
      return node.error("has one value per channel in a batch, which has no variance",
                        "a larger batch, or --batch-norm frozen");
    if (!saysBatch && node.batchNormMode() == BatchNormMode::trainByDefault)
      node.warning("batch-norm-mode",
                   "the file says inference mode; in training it takes the statistics of the batch "
                   "and updates the running ones, as PyTorch's train() does",
                   "--batch-norm frozen, which keeps the running statistics, as eval() does; or "
                   "--batch-norm train, which says that this is meant");
    Normalization ofBatch(builder, x, batchDimensions(x), epsilon, allRanks);
    warnOfMomentum();
    node.replaceBuffer(3, mix("running_mean", node.buffer(3), ofBatch.mean));
    node.replaceBuffer(
        4, mix("running_variance", node.buffer(4), ofBatch.variance, factorOfVariance(ofBatch)));
    Value training = byBatch(), inference = byRunningStatistics();
    SmallVector<Value> results{builder.create<TrainingFormOp>(training, inference)};
    if (saysBatch)
      addOutputs(results);
    return results;
  }

  // PyTorch's momentum=None is the mean of all batches, which ONNX cannot say.
  void warnOfMomentum() {
    bool stays = momentum == 1;
    if (stays || momentum == 0)
      node.warning("batch-norm-momentum",
                   std::string("its momentum is ") +
                       (stays
                            ? "1, with which the running statistics stay as they are"
                            : "0, with which the running statistics are those of the last batch") +
                       ": PyTorch's exporters write that for momentum=" + (stays ? "0.0" : "1.0") +
                       ", and for momentum=None, where the module keeps the mean of all batches",
                   "a number as the module's momentum (0.1) if it is None, and the export again; "
                   "else nothing");
  }

  // What ONNX calls the running statistics.
  void addOutputs(SmallVector<Value> &results) {
    if (!node.outputUsed(1) && !node.outputUsed(2))
      return;
    Normalization ofBatch(builder, x, batchDimensions(x), epsilon, allRanks);
    results.push_back(mix("next_mean", node.input(3), ofBatch.mean));
    results.push_back(mix("next_variance", node.input(4), ofBatch.variance));
  }

  OnnxNode &node;
  Builder &builder;
  Value x;
  RankedTensorType type;
  bool saysBatch, allRanks = false;
  double epsilon = 0, momentum = 0;
};

} // namespace

static OnnxResults importBatchNormalization(OnnxNode &node) {
  return BatchNormalization(node).build();
}

static OnnxWeight weightsOfBatchNormalization(unsigned input, ArrayRef<int64_t>) {
  constexpr OnnxWeight kInputs[] = {OnnxWeight::none, OnnxWeight::scale, OnnxWeight::bias,
                                    OnnxWeight::statistic, OnnxWeight::statistic};
  return input < std::size(kInputs) ? kInputs[input] : OnnxWeight::none;
}

static OnnxRegistration batchNormalizationRegistration("BatchNormalization", 6,
                                                       importBatchNormalization,
                                                       weightsOfBatchNormalization);

} // namespace trainc::nn
