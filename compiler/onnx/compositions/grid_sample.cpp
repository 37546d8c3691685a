// SPDX-License-Identifier: Apache-2.0
//
// ONNX GridSample of images: each element of the result is interpolated at a place that the grid
// gives, -1 to 1 along width and height. Formulas are those of PyTorch's grid_sample. Neighbours
// are gathered, their indices brought inside; the gradient reaches both image and grid.
#include "dialects/nn/onnx_node.h"

using namespace mlir;

namespace trainc::nn {
namespace {

// One of the grid's coordinates, of the shape [N, height, width] of the result.
struct Coordinate {
  Value place; // in elements of the image
  int64_t size;
};

struct Neighbour {
  Value index, weight; // i64 inside, and null for a weight of one
};

class GridSample {
public:
  explicit GridSample(OnnxNode &node) : node(node), builder(node.builder()) {}

  OnnxResults build() {
    Value x = node.input(0), grid = node.input(1);
    auto type = tensorType(x), places = tensorType(grid);
    mode = node.string("mode", node.opset() < 20 ? "bilinear" : "linear");
    mode = mode == "bilinear" ? "linear" : mode == "bicubic" ? "cubic" : mode;
    padding = node.string("padding_mode", "zeros");
    alignsCorners = node.integer("align_corners", 0) != 0;
    if (type.getRank() != 4 || places.getRank() != 4 || places.getDimSize(3) != 2 ||
        places.getDimSize(0) != type.getDimSize(0))
      return node.error("expects an image [N, C, H, W] and a grid [N, height, width, 2]");
    int64_t batch = type.getDimSize(0), channels = type.getDimSize(1), height = type.getDimSize(2),
            width = type.getDimSize(3);
    shape.assign(places.getShape().begin(), places.getShape().end() - 1);
    grid = builder.cast(grid, type.getElementType());
    std::vector<Neighbour> columns = neighbours(coordinate(grid, 0, width));
    std::vector<Neighbour> rows = neighbours(coordinate(grid, 1, height));

    Value rowsOfChannels =
        builder.reshape(builder.transpose(x, {0, 2, 3, 1}), {batch * height * width, channels});
    auto indices = RankedTensorType::get(shape, builder.op().getI64Type());
    Value image = builder.scale(builder.create<IotaOp>(indices, 0), static_cast<double>(height));
    Value sum;
    for (const Neighbour &row : rows)
      for (const Neighbour &column : columns) {
        Value index = builder.scale(builder.add(image, row.index), static_cast<double>(width));
        index = builder.add(index, column.index);
        Value part = weighed(builder.create<GatherOp>(rowsOfChannels, index), row.weight);
        part = weighed(part, column.weight);
        sum = sum ? builder.add(sum, part) : part;
      }
    return SmallVector<Value>{builder.transpose(sum, {0, 3, 1, 2})};
  }

private:
  Value number(double value, Value like) { return builder.constant(value, like.getType()); }

  Value clamped(Value x, double low, double high) {
    x = builder.create<MaximumOp>(x, number(low, x));
    return builder.create<MinimumOp>(x, number(high, x));
  }

  Value weighed(Value part, Value weight) {
    return weight ? builder.mul(part, builder.expand(weight, -1, tensorType(part).getShape()))
                  : part;
  }

  Coordinate coordinate(Value grid, int64_t which, int64_t size) {
    Value share = builder.reshape(builder.slice(grid, 3, which, 1), shape);
    auto elements = static_cast<double>(size);
    Value fromStart = builder.add(share, number(1, share));
    Value place =
        alignsCorners
            ? builder.scale(fromStart, (elements - 1) / 2)
            : builder.scale(builder.sub(builder.scale(fromStart, elements), number(1, share)), 0.5);
    if (mode != "cubic") // there each neighbour by itself
      place = bounded(place, size);
    return {place, size};
  }

  /// Border and reflection bring a place inside.
  Value bounded(Value place, int64_t size) {
    auto last = static_cast<double>(size - 1);
    if (padding == "zeros")
      return place;
    if (padding == "reflection")
      place = reflected(place, alignsCorners ? 0 : -0.5, alignsCorners ? last : last + 0.5);
    return clamped(place, 0, last);
  }

  Value reflected(Value place, double low, double high) {
    double span = high - low;
    if (span == 0)
      return number(0, place);
    Value distance = builder.create<AbsOp>(builder.sub(place, number(low, place)));
    Value turns = builder.create<FloorOp>(builder.div(distance, number(span, place)));
    Value rest = builder.sub(distance, builder.scale(turns, span));
    Value half = builder.scale(turns, 0.5);
    Value isEven = builder.create<EqualOp>(half, builder.create<FloorOp>(half));
    Value back = builder.sub(number(span, place), rest);
    return builder.add(builder.select(isEven, rest, back), number(low, place));
  }

  std::vector<Neighbour> neighbours(Coordinate along) {
    if (mode == "nearest")
      return {neighbour(builder.create<RoundOp>(along.place), Value(), along.size)};
    Value low = builder.create<FloorOp>(along.place), share = builder.sub(along.place, low);
    std::vector<Neighbour> list;
    bool linear = mode == "linear";
    for (int64_t offset = linear ? 0 : -1; offset <= (linear ? 1 : 2); ++offset) {
      auto distance = static_cast<double>(offset);
      Value place = builder.add(low, number(distance, low));
      Value apart = builder.create<AbsOp>(builder.sub(share, number(distance, share)));
      Value weight = linear ? builder.sub(number(1, apart), apart) : cubicWeight(apart, offset);
      list.push_back(neighbour(linear ? place : bounded(place, along.size), weight, along.size));
    }
    return list;
  }

  // Keys' cubic convolution with a = -0.75: within one, or up to two.
  Value cubicWeight(Value s, int64_t offset) {
    constexpr double a = -0.75;
    bool near = offset == 0 || offset == 1;
    const double coefficients[] = {near ? a + 2 : a, near ? -(a + 3) : -5 * a, near ? 0 : 8 * a,
                                   near ? 1 : -4 * a};
    Value sum = number(coefficients[0], s);
    for (double next : llvm::drop_begin(coefficients))
      sum = builder.add(builder.mul(sum, s), number(next, s));
    return sum;
  }

  /// Outside of the image its weight is zero where it is padded with zeros.
  Neighbour neighbour(Value place, Value weight, int64_t size) {
    auto last = static_cast<double>(size - 1);
    if (padding == "zeros") {
      Value isInside =
          builder.create<AndOp>(builder.create<GreaterOrEqualOp>(place, number(0, place)),
                                builder.create<LessOrEqualOp>(place, number(last, place)));
      weight = builder.select(isInside, weight ? weight : number(1, place), number(0, place));
    }
    Value index = builder.cast(place, builder.op().getI64Type());
    return {clamped(index, 0, last), weight};
  }

  OnnxNode &node;
  Builder &builder;
  std::string mode, padding;
  bool alignsCorners = false;
  SmallVector<int64_t> shape; // of the grid without its last dimension
};

} // namespace

static OnnxRegistration gridSample =
    OnnxRegistration("GridSample", 16, [](OnnxNode &node) { return GridSample(node).build(); })
        .takes("mode", {"bilinear", "linear", "nearest", "bicubic", "cubic"})
        .takes("padding_mode", {"zeros", "border", "reflection"});

} // namespace trainc::nn
