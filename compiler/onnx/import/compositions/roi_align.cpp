// SPDX-License-Identifier: Apache-2.0
//
// ONNX RoiAlign: of each box of an image as many parts as asked for, each the mean of samples
// between elements, or the largest of their weighed neighbours (so ONNX defines it). As in
// torchvision the gradient reaches the image and not the boxes.
#include "dialects/nn/onnx/onnx_node.h"
#include "dialects/nn/onnx/onnx_refusal.h"

using namespace mlir;

namespace trainc::nn {

static const OnnxRefusal unknownBoxes(
    {"RoiAlign"},
    "input 1 that is not known when the model is compiled where `sampling_ratio` is 0");

namespace {

/// Neighbours of the samples along one axis of space: index and weight, [rois, parts, samples].
struct Neighbours {
  Value indices[2], weights[2];
};

class RoiAlign {
public:
  explicit RoiAlign(OnnxNode &node) : node(node), builder(node.builder()) {}

  OnnxResults build() {
    if (failed(readAttributes()) || failed(checkInputs()))
      return failure();
    FailureOr<Neighbours> vertical = along(1, parts[0], height);
    FailureOr<Neighbours> horizontal = along(0, parts[1], width);
    if (failed(vertical) || failed(horizontal))
      return failure();
    ArrayRef<int64_t> rows = tensorType(vertical->weights[0]).getShape();
    ArrayRef<int64_t> columns = tensorType(horizontal->weights[0]).getShape();
    shape = {boxes, rows[1], rows[2], columns[1], columns[2]};
    SmallVector<int64_t> gathered(shape);
    gathered.push_back(channels);
    if (failed(countElements(node, gathered)))
      return failure();
    Value y = pooled(*vertical, *horizontal);
    if (!isMax)
      y = builder.div(y, builder.broadcast(countOfMean(), 0, tensorType(y).getShape()));
    return SmallVector<Value>{builder.transpose(y, {0, 3, 1, 2})};
  }

private:
  LogicalResult readAttributes() {
    std::string mode = node.string("mode", "avg");
    std::string coordinates = node.string("coordinate_transformation_mode",
                                          node.opset() < 16 ? "output_half_pixel" : "half_pixel");
    isMax = mode == "max";
    isHalfPixel = coordinates == "half_pixel";
    scale = node.real("spatial_scale", 1);
    samples = std::max<int64_t>(node.integer("sampling_ratio", 0), 0);
    const char *names[] = {"output_height", "output_width"};
    for (auto [part, name] : llvm::zip(parts, names)) {
      part = node.integer(name, 1);
      if (part < 1)
        return node.error(llvm::Twine(name) + " is " + llvm::Twine(part) + ", expected 1 or more");
    }
    return success();
  }

  LogicalResult checkInputs() {
    auto image = tensorType(node.input(0)), rois = tensorType(node.input(1));
    element = image.getElementType();
    if (image.getRank() != 4 || !isa<FloatType>(element) || image.getNumElements() == 0)
      return node.error("expects an image [N, C, H, W] of floats");
    batch = image.getDimSize(0), channels = image.getDimSize(1);
    height = image.getDimSize(2), width = image.getDimSize(3);
    if (rois.getRank() != 2 || rois.getDimSize(1) != 4 || !isa<FloatType>(rois.getElementType()))
      return node.error("expects rois [boxes, 4] of floats");
    boxes = rois.getDimSize(0);
    Tensor known = node.constant(2);
    if (known ? known.shape() != ArrayRef(boxes)
              : tensorType(node.input(2)).getShape() != ArrayRef(boxes))
      return node.error("expects a batch index for each of " + llvm::Twine(boxes) + " boxes");
    for (int64_t index : known ? known.integers() : std::vector<int64_t>())
      if (index < 0 || index >= batch)
        return node.error("batch index " + llvm::Twine(index) + " is out of range for " +
                          llvm::Twine(batch) + " images");
    corners = builder.create<DetachOp>(builder.cast(node.input(1), element));
    return success();
  }

  Value number(double value, Value like) { return builder.constant(value, like.getType()); }

  /// One coordinate of each corner in elements of the image, [boxes].
  Value corner(int64_t column) {
    Value place =
        builder.scale(builder.reshape(builder.slice(corners, 1, column, 1), boxes), scale);
    return isHalfPixel ? builder.sub(place, number(0.5, place)) : place;
  }

  /// How many samples each part of a box has along an axis: a number for all boxes; or, where
  /// nothing is asked for, as many as the part covers elements.
  FailureOr<std::vector<int64_t>> countSamples(int64_t column, int64_t partCount) {
    std::vector<int64_t> counts(boxes, samples);
    if (samples > 0)
      return counts;
    Tensor known = node.constant(1);
    if (!known)
      return node.refuseUnknown(1, unknownBoxes.told("rois, where sampling_ratio is 0,"));
    auto rounded = [&](double value) { // as the step would be
      return Tensor::ofReals(RankedTensorType::get({}, element), value).real(0);
    };
    double offset = isHalfPixel ? 0.5 : 0;
    for (int64_t box = 0; box < boxes; ++box) {
      auto at = [&](int64_t place) {
        return rounded(rounded(known.real(box * 4 + place) * rounded(scale)) - offset);
      };
      double size = rounded(at(column + 2) - at(column));
      if (!isHalfPixel)
        size = std::max(size, 1.0);
      double most = std::ceil(rounded(size / static_cast<double>(partCount)));
      if (!(most < static_cast<double>(kLargestTensor)))
        return node.error("box " + llvm::Twine(box) + " is too large");
      counts[box] = std::max<int64_t>(0, static_cast<int64_t>(most));
    }
    return counts;
  }

  Value listOf(ArrayRef<int64_t> numbers) {
    std::vector<double> reals(numbers.begin(), numbers.end());
    return node.literal(Tensor::ofReals(RankedTensorType::get(boxes, element), reals));
  }

  FailureOr<Neighbours> along(int64_t column, int64_t partCount, int64_t size) {
    FailureOr<std::vector<int64_t>> counts = countSamples(column, partCount);
    if (failed(counts))
      return failure();
    int64_t most = 1;
    for (auto [box, count] : llvm::enumerate(*counts)) {
      most = std::max(most, count);
      taken.resize(boxes, 1);
      taken[box] *= count;
    }
    SmallVector<int64_t> places{boxes, partCount, most};
    if (failed(countElements(node, places)))
      return failure();
    auto type = RankedTensorType::get(places, element);
    Value start = corner(column), length = builder.sub(corner(column + 2), start);
    if (!isHalfPixel)
      length = builder.create<MaximumOp>(length, number(1, length));
    Value step = builder.div(length, number(static_cast<double>(partCount), length));
    auto spread = [&](Value ofBox) { return builder.broadcast(ofBox, 0, places); };
    Value count = spread(listOf(*counts)), sample = builder.create<IotaOp>(type, 2);
    Value isTaken = builder.create<LessOp>(sample, count);
    if (isMax) { // the last one again changes nothing
      Value last = builder.sub(count, number(1, count));
      sample = builder.create<MinimumOp>(sample, last);
      isTaken = builder.create<GreaterOp>(count, number(0, count));
    }
    Value within = builder.div(builder.add(sample, number(0.5, sample)),
                               builder.create<MaximumOp>(count, number(1, count)));
    Value place = builder.add(builder.create<IotaOp>(type, 1), within);
    place = builder.add(spread(start), builder.mul(place, spread(step)));
    return neighbours(place, isTaken, size);
  }

  Neighbours neighbours(Value place, Value isTaken, int64_t size) {
    auto last = static_cast<double>(size - 1);
    Value isInside =
        builder.create<AndOp>(builder.create<GreaterOrEqualOp>(place, number(-1, place)),
                              builder.create<LessOrEqualOp>(place, number(last + 1, place)));
    isInside = builder.create<AndOp>(isInside, isTaken);
    place = builder.create<MaximumOp>(place, number(0, place));
    place = builder.create<MinimumOp>(place, number(last, place));
    Value low = builder.create<FloorOp>(place), upper = builder.sub(place, low);
    Value one = number(1, place), zero = number(0, place);
    Value high = builder.create<MinimumOp>(builder.add(low, one), number(last, place));
    Type i64 = builder.op().getI64Type();
    Value indices[] = {builder.cast(low, i64), builder.cast(high, i64)};
    for (Value &index : indices) { // within known bounds, so that it needs no check
      index = builder.create<MaximumOp>(index, number(0, index));
      index = builder.create<MinimumOp>(index, number(last, index));
    }
    return {{indices[0], indices[1]},
            {builder.select(isInside, builder.sub(one, upper), zero),
             builder.select(isInside, upper, zero)}};
  }

  Value pooled(const Neighbours &rows, const Neighbours &columns) {
    Value image = builder.transpose(node.input(0), {0, 2, 3, 1});
    image = builder.reshape(image, {batch * height * width, channels});
    Type i64 = builder.op().getI64Type();
    Value images = builder.create<IotaOp>(RankedTensorType::get(batch, i64), 0);
    Value ofBox = builder.create<GatherOp>(images, node.input(2)); // where it is checked
    Value first = builder.broadcast(builder.scale(ofBox, static_cast<double>(height)), 0, shape);
    const int64_t vertical[] = {0, 1, 2}, horizontal[] = {0, 3, 4};
    Value whole;
    for (int i = 0; i < 2; ++i)
      for (int j = 0; j < 2; ++j) {
        Value row = builder.add(first, builder.broadcast(rows.indices[i], vertical, shape));
        Value index = builder.add(builder.scale(row, static_cast<double>(width)),
                                  builder.broadcast(columns.indices[j], horizontal, shape));
        Value weight = builder.mul(builder.broadcast(rows.weights[i], vertical, shape),
                                   builder.broadcast(columns.weights[j], horizontal, shape));
        Value part = builder.create<GatherOp>(image, index);
        part = builder.mul(part, builder.expand(weight, -1, tensorType(part).getShape()));
        whole = !whole  ? part
                : isMax ? builder.create<MaximumOp>(whole, part)
                        : builder.add(whole, part);
      }
    return isMax ? builder.reduceMax(whole, {2, 4}) : builder.reduceSum(whole, {2, 4});
  }

  /// How many samples the mean of a part is of, by box.
  Value countOfMean() {
    for (int64_t &count : taken)
      count = std::max<int64_t>(count, 1);
    return listOf(taken);
  }

  OnnxNode &node;
  Builder &builder;
  bool isMax = false, isHalfPixel = false;
  double scale = 1;
  int64_t samples = 0, parts[2] = {1, 1};
  int64_t batch = 0, channels = 0, height = 0, width = 0, boxes = 0;
  Type element;
  Value corners;
  std::vector<int64_t> taken; // samples of each part, by box
  SmallVector<int64_t> shape; // of the samples: boxes, parts and samples of rows, of columns
};

} // namespace

static OnnxRegistration roiAlign =
    OnnxRegistration("RoiAlign", 10, [](OnnxNode &node) { return RoiAlign(node).build(); })
        .gradientOf({0})
        .takes("mode", {"avg", "max"})
        .takes("coordinate_transformation_mode", {"half_pixel", "output_half_pixel"});

} // namespace trainc::nn
