// SPDX-License-Identifier: Apache-2.0
//
// ONNX GridSample of images and volumes: each element of the result is interpolated at a place that
// the grid gives, -1 to 1 along width, height and depth. Formulas are those of PyTorch's
// grid_sample. Neighbours are gathered, their indices brought inside; the gradient reaches both
// image and grid.
#include "dialects/nn/onnx/onnx_node.h"

using namespace mlir;

namespace trainc::nn {
namespace {

// One of the grid's coordinates, of the shape [N, height, width] or [N, depth, height, width] of
// the result.
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
    int64_t rank = type.getRank(), space = rank - 2;
    if ((space != 2 && space != 3) || places.getRank() != rank ||
        places.getShape().back() != space || places.getDimSize(0) != type.getDimSize(0))
      return node.error("expects an image [N, C, H, W] and a grid [N, height, width, 2], or a "
                        "volume [N, C, D, H, W] and a grid [N, depth, height, width, 3]");
    shape.assign(places.getShape().begin(), places.getShape().end() - 1);
    grid = builder.cast(grid, type.getElementType());
    int64_t rows = type.getDimSize(0);
    for (int64_t d = 0; d < space; ++d) { // the grid has the last dimension first
      int64_t size = type.getDimSize(d + 2);
      sizes.push_back(size);
      around.push_back(neighbours(coordinate(grid, space - 1 - d, size)));
      rows *= size;
    }
    SmallVector<int64_t> order{0}; // channels after
    llvm::append_range(order, llvm::seq<int64_t>(2, rank));
    order.push_back(1);
    channels = builder.reshape(builder.transpose(x, order), {rows, type.getDimSize(1)});
    auto indices = RankedTensorType::get(shape, builder.op().getI64Type());
    addNeighbours(builder.create<IotaOp>(indices, 0), {}, 0);
    order.assign({0, rank - 1});
    llvm::append_range(order, llvm::seq<int64_t>(1, rank - 1));
    return SmallVector<Value>{builder.transpose(sum, order)};
  }

private:
  /// Adds what is around the places: `index` counts the elements before dimension `d`, `weights`
  /// are those along these.
  void addNeighbours(Value index, ArrayRef<Value> weights, size_t d) {
    if (d == around.size()) {
      Value part = builder.create<GatherOp>(channels, index);
      for (Value weight : weights)
        part = weighed(part, weight);
      sum = sum ? builder.add(sum, part) : part;
      return;
    }
    Value before = builder.scale(index, static_cast<double>(sizes[d]));
    for (const Neighbour &one : around[d]) {
      SmallVector<Value> all(weights);
      all.push_back(one.weight);
      addNeighbours(builder.add(before, one.index), all, d + 1);
    }
  }

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
    Value share =
        builder.reshape(builder.slice(grid, tensorType(grid).getRank() - 1, which, 1), shape);
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
  SmallVector<int64_t> shape, sizes; // of the grid without its last dimension, of the image's space
  std::vector<std::vector<Neighbour>> around; // the places, along each dimension of space
  Value channels, sum; // those of all elements, a row each; the result so far
};

} // namespace

static OnnxRegistration gridSample =
    OnnxRegistration("GridSample", 16, [](OnnxNode &node) { return GridSample(node).build(); })
        .takes("mode", {"bilinear", "linear", "nearest", "bicubic", "cubic"})
        .takes("padding_mode", {"zeros", "border", "reflection"});

} // namespace trainc::nn
