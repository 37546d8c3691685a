// SPDX-License-Identifier: Apache-2.0
//
// Large constants as what they were before an exporter wrote them out: the broadcast
// of a smaller one where all slices along a dimension are equal, and the comparison of
// indices where a triangle or a band of one value lies in another (causal and window
// masks). Values are compared bit by bit. Left as they are they would be tables of
// megabytes that every step reads.
#include "dialects/nn/raised_pattern.h"
#include <cstring>
#include <utility>

using namespace mlir;

namespace trainc::nn {
namespace {

constexpr int64_t kLarge = 4096; // bytes; smaller tables are as quick to read as to compute

/// The elements as they lie in memory, a byte for a bool.
std::vector<char> elementsOf(DenseElementsAttr value) {
  if (!value.getElementType().isInteger(1))
    return {value.getRawData().begin(), value.getRawData().end()};
  auto bools = value.getValues<bool>();
  return {bools.begin(), bools.end()};
}

DenseElementsAttr tensorOf(ArrayRef<char> elements, RankedTensorType type) {
  if (!type.getElementType().isInteger(1))
    return DenseElementsAttr::getFromRawBuffer(type, elements);
  return DenseElementsAttr::get(
      type, ArrayRef(reinterpret_cast<const bool *>(elements.data()), elements.size()));
}

bool isLarge(ConstantOp op) {
  auto dense = dyn_cast<DenseElementsAttr>(op.getValue());
  return dense && !dense.isSplat() &&
         dense.getNumElements() * elementBytes(dense.getElementType()) > kLarge;
}

/// Drops a dimension of `size` slices of `inner` bytes if they are equal; false otherwise.
bool dropEqualSlices(std::vector<char> &elements, size_t size, size_t inner) {
  for (size_t row = 0; row < elements.size(); row += size * inner)
    for (size_t slice = 1; slice < size; ++slice)
      if (std::memcmp(&elements[row], &elements[row + slice * inner], inner) != 0)
        return false;
  const size_t rows = elements.size() / (size * inner);
  for (size_t row = 1; row < rows; ++row)
    std::memmove(&elements[row * inner], &elements[row * size * inner], inner);
  elements.resize(rows * inner);
  return true;
}

struct RaiseEqualSlices : OpRewritePattern<ConstantOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ConstantOp op, PatternRewriter &rewriter) const override {
    if (!isLarge(op))
      return failure();
    auto type = op.getType();
    std::vector<char> elements = elementsOf(cast<DenseElementsAttr>(op.getValue()));
    SmallVector<int64_t> kept, shape;
    size_t inner = elementBytes(type.getElementType());
    for (int64_t d = type.getRank() - 1; d >= 0; --d) {
      const int64_t size = type.getDimSize(d);
      if (dropEqualSlices(elements, size, inner))
        continue;
      kept.insert(kept.begin(), d);
      shape.insert(shape.begin(), size);
      inner *= size;
    }
    if (shape == type.getShape())
      return failure();
    Value small = rewriter.create<ConstantOp>(op.getLoc(), tensorOf(elements, type.clone(shape)));
    rewriter.replaceOpWithNewOp<BroadcastOp>(op, type, small, kept);
    return success();
  }
};

/// One value where first <= column - row < last, another one elsewhere.
struct Band {
  int64_t first = 0, last = 0;
  const char *inside = nullptr, *outside = nullptr; // their bits
};

/// Finds the band of a matrix all of whose diagonals are equal along themselves.
std::optional<Band> bandOf(ArrayRef<char> elements, int64_t rows, int64_t columns, size_t bytes) {
  auto at = [&](int64_t row, int64_t column) {
    return &elements[(row * columns + column) * bytes];
  };
  for (int64_t row = 1; row < rows; ++row)
    if (std::memcmp(at(row, 1), at(row - 1, 0), (columns - 1) * bytes) != 0)
      return std::nullopt;
  auto diagonal = [&](int64_t d) { return d < 0 ? at(-d, 0) : at(0, d); };
  const int64_t lowest = 1 - rows;
  SmallVector<int64_t> changes; // diagonals that differ from the one below
  for (int64_t d = lowest + 1; d < columns; ++d)
    if (std::memcmp(diagonal(d), diagonal(d - 1), bytes) != 0) {
      changes.push_back(d);
      if (changes.size() > 2)
        return std::nullopt;
    }
  if (changes.empty())
    return std::nullopt;
  Band band{changes.front(), changes.size() == 2 ? changes.back() : columns,
            diagonal(changes.front()), diagonal(lowest)};
  if (changes.size() == 2 && std::memcmp(diagonal(band.last), band.outside, bytes) != 0)
    return std::nullopt;
  return band;
}

struct RaiseBand : OpRewritePattern<ConstantOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ConstantOp op, PatternRewriter &rewriter) const override {
    auto type = op.getType();
    if (!isLarge(op) || type.getRank() != 2)
      return failure();
    Type element = type.getElementType();
    const size_t bytes = elementBytes(element);
    std::vector<char> elements = elementsOf(cast<DenseElementsAttr>(op.getValue()));
    auto band = bandOf(elements, type.getDimSize(0), type.getDimSize(1), bytes);
    if (!band)
      return failure();
    Builder builder(rewriter, op.getLoc());
    const bool isBool = element.isInteger(1);
    if (isBool && !*band->inside && band->last == type.getDimSize(1)) { // true below one diagonal
      band->last = std::exchange(band->first, 1 - type.getDimSize(0));
      std::swap(band->inside, band->outside);
    }
    Value inside = compareIndices(builder, type, *band);
    if (isBool) {
      rewriter.replaceOp(op, *band->inside ? inside : builder.create<NotOp>(inside));
      return success();
    }
    auto splat = [&](const char *bits) {
      return builder.constant(tensorOf(ArrayRef(bits, bytes), type)); // one element: a splat
    };
    rewriter.replaceOp(op, builder.select(inside, splat(band->inside), splat(band->outside)));
    return success();
  }

private:
  static Value compareIndices(Builder &builder, RankedTensorType type, const Band &band) {
    auto indices = type.clone(builder.op().getI64Type());
    Value row = builder.create<IotaOp>(indices, 0), column = builder.create<IotaOp>(indices, 1);
    auto shifted = [&](int64_t by) {
      return by == 0 ? row : builder.add(row, builder.constant(static_cast<double>(by), indices));
    };
    auto from = [&] { return builder.create<GreaterOrEqualOp>(column, shifted(band.first)); };
    auto to = [&] { return builder.create<LessOp>(column, shifted(band.last)); };
    if (band.last == type.getDimSize(1))
      return from();
    if (band.first == 1 - type.getDimSize(0))
      return to();
    return builder.create<AndOp>(from(), to());
  }
};

} // namespace

static RaiseRegistration constant([](RewritePatternSet &patterns) {
  patterns.add<RaiseEqualSlices, RaiseBand>(patterns.getContext());
});

} // namespace trainc::nn
