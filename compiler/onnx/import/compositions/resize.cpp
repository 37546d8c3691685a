// SPDX-License-Identifier: Apache-2.0
//
// ONNX Resize and Upsample: interpolation along each resized dimension, one after the other. Sizes
// and scales are known when the model is compiled, so that each is an nn.resample. Formulas are
// those of the operator's specification; indices beyond the edge are those of the edge.
#include "dialects/nn/onnx/onnx_node.h"
#include "dialects/nn/onnx/onnx_refusal.h"
#include "dialects/nn/tensor.h"
#include "llvm/ADT/StringExtras.h"
#include <cmath>

using namespace mlir;

namespace trainc::nn {

static const OnnxRefusal interpolatedIntegers({"Resize", "Upsample"},
                                              "modes linear and cubic of integers");
static const OnnxRefusal
    unknownInput({"Resize"},
                 "input 1 that is not known when the model is compiled where it is read (`scales` "
                 "of operator set 10, the region of tf_crop_and_resize)");

namespace {

struct Axis {
  int64_t dimension, from, to; // sizes
  double scale;
  double start = 0, end = 1; // the part that is cropped, as a share
};

struct Taps {
  std::vector<int64_t> indices; // may be beyond the edges
  std::vector<double> weights;
};

class Resize {
public:
  explicit Resize(OnnxNode &node)
      : node(node), builder(node.builder()), x(node.input(0)), type(tensorType(x)) {}

  /// Upsample, and Resize of opset 10.
  OnnxResults byScalesAlone() {
    mode = node.string("mode", "nearest");
    coordinates = "asymmetric";
    rounding = "floor";
    auto scales = node.opset() >= 9 ? realsOf(1) : node.reals("scales");
    if (!scales)
      return node.refuseUnknown(1, unknownInput.told("scales"));
    return resizeBy(*scales, everyDimension());
  }

  OnnxResults build() {
    mode = node.string("mode", "nearest");
    coordinates = node.string("coordinate_transformation_mode", "half_pixel");
    rounding = node.string("nearest_mode", "round_prefer_floor");
    cubic = node.real("cubic_coeff_a", -0.75);
    excludesOutside = node.integer("exclude_outside", 0) != 0;
    antialias = node.integer("antialias", 0) != 0;
    SmallVector<int64_t> dimensions = everyDimension();
    if (auto axes = node.integers("axes")) {
      dimensions.clear();
      for (int64_t axis : *axes) {
        FailureOr<int64_t> dimension = dimensionOf(node, axis, type.getRank());
        if (failed(dimension))
          return failure();
        dimensions.push_back(*dimension);
      }
    }
    if (node.hasInput(2) && !isEmpty(2))
      return resizeBy(*realsOf(2), dimensions);
    auto sizes = node.hasInput(3) ? node.integers(3) : std::nullopt;
    if (!sizes)
      return node.refuseUnknown(3, "sizes");
    return resizeTo(*sizes, dimensions);
  }

private:
  SmallVector<int64_t> everyDimension() const {
    return llvm::to_vector(llvm::seq<int64_t>(0, type.getRank()));
  }

  bool isEmpty(unsigned input) {
    Tensor known = node.constant(input);
    return known && known.count() == 0;
  }

  std::optional<SmallVector<double>> realsOf(unsigned input) {
    Tensor known = node.hasInput(input) ? node.constant(input) : Tensor();
    if (!known)
      return std::nullopt;
    return llvm::to_vector(known.reals());
  }

  OnnxResults resizeBy(ArrayRef<double> scales, ArrayRef<int64_t> dimensions) {
    if (scales.size() != dimensions.size())
      return node.error("has " + llvm::Twine(scales.size()) + " scales for " +
                        llvm::Twine(dimensions.size()) + " dimensions");
    SmallVector<Axis> axes;
    for (auto [scale, dimension] : llvm::zip(scales, dimensions)) {
      int64_t from = type.getDimSize(dimension);
      double to = std::floor(static_cast<double>(from) * scale);
      if (!(scale > 0) || !(to >= 1) || to > 0x1p31)
        return node.error("scales dimension " + llvm::Twine(dimension) + " of size " +
                          llvm::Twine(from) + " to no size");
      axes.push_back({dimension, from, static_cast<int64_t>(to), scale});
    }
    return along(axes);
  }

  OnnxResults resizeTo(ArrayRef<int64_t> sizes, ArrayRef<int64_t> dimensions) {
    if (sizes.size() != dimensions.size())
      return node.error("has " + llvm::Twine(sizes.size()) + " sizes for " +
                        llvm::Twine(dimensions.size()) + " dimensions");
    std::string policy = node.string("keep_aspect_ratio_policy", "stretch");
    SmallVector<Axis> axes;
    std::optional<double> common;
    for (auto [size, dimension] : llvm::zip(sizes, dimensions)) {
      int64_t from = type.getDimSize(dimension);
      if (size < 1 || from < 1 || size > INT32_MAX)
        return node.error("resizes dimension " + llvm::Twine(dimension) + " from " +
                          llvm::Twine(from) + " to " + llvm::Twine(size));
      double scale = static_cast<double>(size) / static_cast<double>(from);
      common = !common                  ? scale
               : policy == "not_larger" ? std::min(*common, scale)
                                        : std::max(*common, scale);
      axes.push_back({dimension, from, size, scale});
    }
    if (policy != "stretch")
      for (Axis &axis : axes) {
        axis.scale = *common;
        axis.to = std::max<int64_t>(
            1, static_cast<int64_t>(std::floor(*common * static_cast<double>(axis.from) + 0.5)));
      }
    return along(axes);
  }

  OnnxResults along(SmallVectorImpl<Axis> &axes) {
    if (failed(readCrop(axes)))
      return failure();
    SmallVector<int64_t> shape(type.getShape());
    for (const Axis &axis : axes)
      shape[axis.dimension] = axis.to;
    if (failed(countElements(node, shape)))
      return failure();
    if (!isa<FloatType>(type.getElementType()) && mode != "nearest")
      return node.error(interpolatedIntegers.told("interpolates numbers that are not floats"),
                        "mode nearest");
    Value y = x;
    for (const Axis &axis : axes)
      if (axis.to != axis.from || axis.scale != 1 || coordinates == "tf_crop_and_resize")
        y = resample(y, axis);
    if (coordinates == "tf_crop_and_resize")
      y = fillOutside(y, axes);
    return SmallVector<Value>{y};
  }

  LogicalResult readCrop(MutableArrayRef<Axis> axes) {
    if (coordinates != "tf_crop_and_resize")
      return success();
    auto region = realsOf(1);
    if (!region)
      return node.refuseUnknown(1, unknownInput.told("region"));
    if (region->size() != 2 * axes.size())
      return node.error("its region has " + llvm::Twine(region->size()) +
                        " numbers, expected a start and an end for each dimension");
    for (auto [i, axis] : llvm::enumerate(axes)) {
      axis.start = (*region)[i];
      axis.end = (*region)[axes.size() + i];
    }
    return success();
  }

  /// Where an element of the result lies along the operand.
  double position(const Axis &axis, int64_t element) const {
    auto i = static_cast<double>(element), from = static_cast<double>(axis.from),
         to = static_cast<double>(axis.to), resized = axis.scale * from;
    if (coordinates == "align_corners")
      return resized == 1 ? 0 : i * (from - 1) / (resized - 1);
    if (coordinates == "asymmetric")
      return i / axis.scale;
    if (coordinates == "tf_half_pixel_for_nn")
      return (i + 0.5) / axis.scale;
    if (coordinates == "tf_crop_and_resize")
      return to == 1
                 ? 0.5 * (axis.start + axis.end) * (from - 1)
                 : axis.start * (from - 1) + i * (axis.end - axis.start) * (from - 1) / (to - 1);
    if (coordinates == "pytorch_half_pixel" && to == 1)
      return 0;
    double middle = (i + 0.5) / axis.scale - 0.5;
    return coordinates == "half_pixel_symmetric" ? from / 2 * (1 - to / resized) + middle : middle;
  }

  Taps nearest(double at) const {
    double low = std::floor(at), share = at - low;
    bool up = share > 0 && (rounding == "ceil" || share > 0.5 ||
                            (rounding == "round_prefer_ceil" && share == 0.5));
    return {{static_cast<int64_t>(low) + (up && rounding != "floor" ? 1 : 0)}, {1}};
  }

  // Keys' cubic convolution.
  double cubicWeight(double distance) const {
    double s = std::abs(distance), a = cubic;
    if (s <= 1)
      return ((a + 2) * s - (a + 3)) * s * s + 1;
    return s < 2 ? ((a * s - 5 * a) * s + 8 * a) * s - 4 * a : 0;
  }

  Taps interpolated(double at, double scale) const {
    double low = std::floor(at), shrinks = antialias ? std::min(scale, 1.0) : 1.0;
    int64_t reach = mode == "linear" ? 1 : 2;
    auto first = static_cast<int64_t>(std::floor(-static_cast<double>(reach) / shrinks)) + 1;
    Taps taps;
    for (int64_t offset = first; offset <= 1 - first; ++offset) {
      double distance = (static_cast<double>(offset) - (at - low)) * shrinks;
      taps.indices.push_back(static_cast<int64_t>(low) + offset);
      taps.weights.push_back(mode == "linear" ? std::max(0.0, 1 - std::abs(distance))
                                              : cubicWeight(distance));
    }
    return taps;
  }

  Value resample(Value y, const Axis &axis) {
    std::vector<Taps> elements;
    size_t most = 1;
    for (int64_t i = 0; i < axis.to; ++i) {
      double at = position(axis, i);
      Taps taps = mode == "nearest" ? nearest(at) : interpolated(at, axis.scale);
      bringInside(taps, axis.from);
      most = std::max(most, taps.indices.size());
      elements.push_back(std::move(taps));
    }
    SmallVector<int64_t> indices;
    SmallVector<double> weights;
    for (Taps &taps : elements) { // nearest has one tap each
      taps.indices.resize(most, taps.indices.back());
      taps.weights.resize(most, 0);
      llvm::append_range(indices, taps.indices);
      llvm::append_range(weights, taps.weights);
    }
    if (isa<FloatType>(type.getElementType()))
      return builder.create<ResampleOp>(y, axis.dimension, most, indices, weights);
    auto known = RankedTensorType::get({axis.to}, builder.op().getI64Type());
    Value rows = builder.constant(Tensor::ofIntegers(known, indices).attribute());
    Value gathered = builder.create<GatherOp>(builder.exchange(y, 0, axis.dimension), rows);
    return builder.exchange(gathered, 0, axis.dimension);
  }

  /// Clamps indices, joins those of one element, and makes the weights' sum one where it has to be.
  void bringInside(Taps &taps, int64_t size) const {
    Taps inside;
    double sum = 0;
    for (auto [index, weight] : llvm::zip(taps.indices, taps.weights)) {
      if (excludesOutside && (index < 0 || index >= size))
        continue;
      int64_t clamped = std::clamp<int64_t>(index, 0, size - 1);
      sum += weight;
      if (weight == 0)
        continue;
      if (!inside.indices.empty() && inside.indices.back() == clamped)
        inside.weights.back() += weight;
      else {
        inside.indices.push_back(clamped);
        inside.weights.push_back(weight);
      }
    }
    if (inside.indices.empty())
      inside = {{0}, {0}};
    if ((excludesOutside || antialias) && sum != 0)
      for (double &weight : inside.weights)
        weight /= sum;
    taps = std::move(inside);
  }

  Value fillOutside(Value y, ArrayRef<Axis> axes) {
    auto shape = tensorType(y).getShape();
    auto i1 = builder.op().getI1Type();
    Value filling = builder.constant(node.real("extrapolation_value", 0), y.getType());
    for (const Axis &axis : axes) {
      SmallVector<int64_t> inside;
      for (int64_t i = 0; i < axis.to; ++i) {
        double at = position(axis, i);
        inside.push_back(at >= 0 && at <= static_cast<double>(axis.from - 1));
      }
      if (llvm::all_of(inside, [](int64_t one) { return one; }))
        continue;
      Value mask = builder.constant(
          Tensor::ofIntegers(RankedTensorType::get({axis.to}, i1), inside).attribute());
      y = builder.select(builder.broadcast(mask, {axis.dimension}, shape), y, filling);
    }
    return y;
  }

  OnnxNode &node;
  Builder &builder;
  Value x;
  RankedTensorType type;
  std::string mode, coordinates, rounding;
  double cubic = -0.75;
  bool excludesOutside = false, antialias = false;
};

} // namespace

static OnnxResults importResize(OnnxNode &node) { return Resize(node).build(); }
static OnnxResults importUpsample(OnnxNode &node) { return Resize(node).byScalesAlone(); }

// Its crop and its scales or sizes stand after the input.
static const StringRef kResizeModes[] = {"nearest", "linear", "cubic"};
static OnnxRegistration resizeByScales("Resize", 10, importUpsample, settingsFrom<1>);
static OnnxRegistration resize =
    OnnxRegistration("Resize", 11, importResize, settingsFrom<1>)
        .takes("mode", kResizeModes)
        .takes("nearest_mode", {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"})
        .takes("coordinate_transformation_mode",
               {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
                "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize"})
        .takes("keep_aspect_ratio_policy", {"stretch", "not_larger", "not_smaller"})
        .mustKnow(2, "scales")
        .mustKnow(3, "sizes");
static OnnxRegistration upsample = OnnxRegistration("Upsample", 7, importUpsample, settingsFrom<1>)
                                       .takes("mode", kResizeModes)
                                       .mustKnow(1, "scales");

} // namespace trainc::nn
