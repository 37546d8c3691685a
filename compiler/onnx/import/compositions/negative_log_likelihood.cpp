// SPDX-License-Identifier: Apache-2.0
//
// ONNX NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss: of scores [N, C, ...] and labels
// [N, ...], the weighted negative log-probability of each label's class; weights are by class. Mean
// divides by the sum of the weights that count. The plain mean of a softmax is nn.cross_entropy.
#include "dialects/nn/label_loss.h"
#include "dialects/nn/onnx/onnx_node.h"

using namespace mlir;

namespace trainc::nn {
namespace {

class LabelLoss {
public:
  explicit LabelLoss(OnnxNode &node)
      : node(node), builder(node.builder()), labels(node.input(1)),
        reduction(node.string("reduction", "mean")) {
    if (node.hasAttribute("ignore_index"))
      ignored = builder.op().getI64IntegerAttr(node.integer("ignore_index", 0));
  }

  OnnxResults likelihood() {
    if (failed(check()))
      return failure();
    return SmallVector<Value>{loss(scores)};
  }

  OnnxResults crossEntropy() {
    if (failed(check()))
      return failure();
    bool isPlainMean = reduction == "mean" && !node.hasInput(2);
    if (isPlainMean && !node.outputUsed(1))
      return SmallVector<Value>{plainMean()};
    Value logProbabilities = builder.create<LogSoftmaxOp>(scores);
    return SmallVector<Value>{isPlainMean ? plainMean() : loss(logProbabilities),
                              builder.move(logProbabilities, tensorType(scores).getRank() - 1, 1)};
  }

private:
  LogicalResult check() {
    ArrayRef<int64_t> shape = tensorType(node.input(0)).getShape();
    if (shape.size() < 2 || tensorType(labels).getRank() != static_cast<int64_t>(shape.size()) - 1)
      return node.error("expects scores [N, C, ...] and labels [N, ...]");
    scores = moveLast(builder, node.input(0), 1);
    if (tensorType(scores).getShape().drop_back() != tensorType(labels).getShape())
      return node.error("the labels do not have the shape of the scores without the classes");
    if (node.hasInput(2) && tensorType(node.input(2)).getShape() != ArrayRef<int64_t>{shape[1]})
      return node.error("its weights are not one number for each of " + llvm::Twine(shape[1]) +
                        " classes");
    if (node.hasInput(2) &&
        tensorType(node.input(2)).getElementType() != tensorType(node.input(0)).getElementType())
      return node.error("its weights and scores have different element types",
                        "insert a Cast before the node");
    if (reduction != "mean" && reduction != "sum" && reduction != "none")
      return node.error("reduction '" + reduction + "' is none of mean, sum and none");
    return success();
  }

  Value plainMean() { return builder.create<CrossEntropyOp>(scores, labels, ignored); }

  /// The loss for log-probabilities with the classes last.
  Value loss(Value logProbabilities) {
    LabelLosses rows =
        labelLosses(builder, logProbabilities, labels,
                    {ignored, node.hasInput(2) ? node.input(2) : Value(), /*labelSmoothing=*/0});
    if (reduction == "none")
      return rows.losses;
    return reduction == "sum" ? sumOf(builder, rows.losses) : meanOf(builder, rows);
  }

  OnnxNode &node;
  Builder &builder;
  Value scores, labels; // classes last
  std::string reduction;
  IntegerAttr ignored; // without the attribute every label counts
};

} // namespace

// Last stand the weights of classes, which no loss learns.
static OnnxRegistration likelihood(
    "NegativeLogLikelihoodLoss", 12, [](OnnxNode &node) { return LabelLoss(node).likelihood(); },
    settingsFrom<2>);
static OnnxRegistration crossEntropy(
    "SoftmaxCrossEntropyLoss", 12, [](OnnxNode &node) { return LabelLoss(node).crossEntropy(); },
    settingsFrom<2>);

} // namespace trainc::nn
