// SPDX-License-Identifier: Apache-2.0
//
// ONNX NonMaxSuppression: the size of its result depends on values, so they must be known.
#include "dialects/nn/onnx/onnx_node.h"

using namespace mlir;

namespace trainc::nn {
namespace {

/// A box by its sides.
struct Box {
  double low[2], high[2];

  double area() const { return (high[0] - low[0]) * (high[1] - low[1]); }
};

struct Limits {
  int64_t boxes = 0; // of each class
  double overlap = 0, score = -INFINITY;
};

} // namespace

static Box boxAt(const Tensor &boxes, int64_t number, bool isCentred) {
  double values[4];
  for (int64_t i = 0; i < 4; ++i)
    values[i] = boxes.real(number * 4 + i);
  Box box;
  for (int d = 0; d < 2; ++d) {
    double a = values[d], b = values[d + 2];
    box.low[d] = isCentred ? a - b / 2 : std::min(a, b);
    box.high[d] = isCentred ? a + b / 2 : std::max(a, b);
  }
  return box;
}

/// The share that is in both of what either covers.
static double overlap(const Box &a, const Box &b) {
  double both = 1;
  for (int d = 0; d < 2; ++d)
    both *= std::max(0.0, std::min(a.high[d], b.high[d]) - std::max(a.low[d], b.low[d]));
  return a.area() <= 0 || b.area() <= 0 || both <= 0 ? 0 : both / (a.area() + b.area() - both);
}

static FailureOr<Limits> readLimits(OnnxNode &node) {
  Limits limits;
  if (node.hasInput(2)) {
    auto most = node.knownInteger(2, "max_output_boxes_per_class");
    if (failed(most))
      return failure();
    limits.boxes = *most;
  }
  if (node.hasInput(3)) {
    auto most = node.knownNumber(3, "iou_threshold");
    if (failed(most))
      return failure();
    limits.overlap = *most;
  }
  if (node.hasInput(4)) {
    auto least = node.knownNumber(4, "score_threshold");
    if (failed(least))
      return failure();
    limits.score = *least;
  }
  return limits;
}

/// Numbers of the boxes of one class that are left, best first.
static std::vector<int64_t> suppress(ArrayRef<Box> boxes, ArrayRef<double> scores,
                                     const Limits &limits) {
  std::vector<int64_t> order, kept;
  for (auto [number, score] : llvm::enumerate(scores))
    if (score > limits.score)
      order.push_back(static_cast<int64_t>(number));
  llvm::stable_sort(order, [&](int64_t a, int64_t b) { return scores[a] > scores[b]; });
  for (int64_t number : order) {
    if (static_cast<int64_t>(kept.size()) >= limits.boxes)
      break;
    bool isHidden = llvm::any_of(kept, [&](int64_t better) {
      return overlap(boxes[better], boxes[number]) > limits.overlap;
    });
    if (!isHidden)
      kept.push_back(number);
  }
  return kept;
}

static OnnxResults importNonMaxSuppression(OnnxNode &node) {
  Tensor boxes = node.constant(0), scores = node.constant(1);
  FailureOr<Limits> limits = readLimits(node);
  if (failed(limits))
    return failure();
  ArrayRef<int64_t> sizes = boxes.shape(), classes = scores.shape();
  if (sizes.size() != 3 || classes.size() != 3 || sizes[2] != 4 || sizes[0] != classes[0] ||
      sizes[1] != classes[2])
    return node.error("expects boxes [N, boxes, 4] and scores [N, classes, boxes]");
  bool isCentred = node.integer("center_point_box", 0) != 0;
  std::vector<double> all = scores.reals();
  std::vector<int64_t> found;
  for (int64_t image = 0; image < sizes[0]; ++image) {
    std::vector<Box> own;
    for (int64_t i = 0; i < sizes[1]; ++i)
      own.push_back(boxAt(boxes, image * sizes[1] + i, isCentred));
    for (int64_t kind = 0; kind < classes[1]; ++kind) {
      auto row = ArrayRef(all).slice((image * classes[1] + kind) * sizes[1], sizes[1]);
      for (int64_t box : suppress(own, row, *limits))
        llvm::append_range(found, ArrayRef<int64_t>{image, kind, box});
    }
  }
  int64_t shape[] = {static_cast<int64_t>(found.size()) / 3, 3};
  return SmallVector<Value>{node.integerLiteral(found, shape)};
}

static OnnxRegistration nonMaxSuppression =
    OnnxRegistration("NonMaxSuppression", 10, importNonMaxSuppression, settingsFrom<2>)
        .gradientOf({})
        .mustKnow(0, "boxes, whose values say how many are left,")
        .mustKnow(1, "scores, whose values say how many boxes are left,")
        .mustKnow(2, "max_output_boxes_per_class")
        .mustKnow(3, "iou_threshold")
        .mustKnow(4, "score_threshold");

} // namespace trainc::nn
